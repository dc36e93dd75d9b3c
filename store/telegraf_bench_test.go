package store_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/nats-io/nats.go/jetstream"
)

// telegrafVariable is the path of a telegraf program with inputs.nats_consumer, outputs.http,
// parsers.json and serializers.csv.
const telegrafVariable = "COURIER_TELEGRAF"

// BenchmarkIngestByTelegraf writes the samples of BenchmarkIngest with telegraf into the same table
// and roll-ups, with the fastest settings: CSV over HTTP, and many unacknowledged messages, which
// needs a consumer created in advance.
func BenchmarkIngestByTelegraf(b *testing.B) {
	program := os.Getenv(telegrafVariable)
	if program == "" {
		b.Skipf("set %s to the path of telegraf", telegrafVariable)
	}
	const samples = 300_000
	server := bustest.NewServer(b)
	server.Connect(b)
	publishRaw(b, server.URL(), samples, 1)
	for b.Loop() {
		address := storetest.Address(b, "http")
		d := storetest.Open(b, address)
		must(b, d.Migrate(b.Context()))
		forTelegraf(b, server.URL())
		config := filepath.Join(b.TempDir(), "telegraf.conf")
		must(b, os.WriteFile(config, []byte(telegrafConfig(b, server.URL(), address)), 0o600))
		b.ReportMetric(rate(samples, func() {
			telegraf(b, program, config, d, samples)
		}), "samples/s")
	}
}

// telegraf runs until the table has all samples.
func telegraf(b *testing.B, program, config string, d *store.Database, samples uint64) {
	ctx, cancel := context.WithTimeout(b.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, "--config", config)
	command.Stderr = os.Stderr
	must(b, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	defer func() { cancel(); <-ended }()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for selectNumber(b, d, "SELECT count() AS n FROM node_sample") < samples {
		select {
		case <-tick.C:
		case err := <-ended:
			ended <- err
			b.Fatalf("telegraf ended: %v", err)
		case <-ctx.Done():
			b.Fatalf("telegraf wrote %d of %d samples",
				selectNumber(b, d, "SELECT count() AS n FROM node_sample"), samples)
		}
	}
}

func forTelegraf(b *testing.B, address string) {
	js := streams(b, address)
	_ = js.DeleteConsumer(b.Context(), schemas.StreamNode, "telegraf_consumers") // there may be none
	_, err := js.CreatePushConsumer(
		b.Context(),
		schemas.StreamNode,
		jetstream.ConsumerConfig{Durable: "telegraf_consumers", DeliverGroup: "telegraf_consumers",
			DeliverSubject: "deliver.telegraf", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 200_000,
			AckWait: 2 * time.Minute, FilterSubject: schemas.NodeSubject("*", schemas.EventSample)},
	)
	must(b, err)
}

func telegrafConfig(b *testing.B, server, address string) string {
	at, err := url.Parse(address)
	must(b, err)
	password, _ := at.User.Password()
	var names []string
	for _, name := range store.ColumnNames(schemas.Sample{}) {
		if name != "sequence" {
			names = append(names, name)
		}
	}
	csv := strings.Replace(`"field.`+strings.Join(names, `", "field.`)+`"`, `"field.at"`,
		`"timestamp"`, 1)
	insert := url.QueryEscape(fmt.Sprintf("INSERT INTO node_sample (%s) FORMAT CSV",
		strings.Join(names, ",")))
	return fmt.Sprintf(`[agent]
  interval = "1s"
  flush_interval = "1s"
  metric_batch_size = 50000
  metric_buffer_limit = 400000
  omit_hostname = true
  skip_processors_after_aggregators = true
  quiet = true
[[inputs.nats_consumer]]
  servers = [%q]
  subjects = []
  jetstream_subjects = ["node.*.sample"]
  jetstream_stream = "NODE"
  queue_group = "telegraf_consumers"
  pending_message_limit = 400000
  pending_bytes_limit = 536870912
  max_undelivered_messages = 200000
  data_format = "json"
  json_string_fields = ["event_id", "node", "boot_id", "cpu_model"]
  json_time_key = "at"
  json_time_format = "2006-01-02T15:04:05.999999999Z07:00"
  tagexclude = ["subject"]
  name_override = "node_sample"
[[outputs.http]]
  url = "http://%s/?database=%s&date_time_input_format=best_effort&query=%s"
  username = %q
  password = %q
  timeout = "60s"
  use_batch_format = true
  data_format = "csv"
  csv_timestamp_format = "2006-01-02T15:04:05.000Z07:00"
  csv_header = false
  csv_columns = [%s]
`, server, at.Host, strings.TrimPrefix(at.Path, "/"), insert, at.User.Username(), password, csv)
}
