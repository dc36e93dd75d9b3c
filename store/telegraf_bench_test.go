package store_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"
	"courier/store/storetest/cluster"

	"github.com/nats-io/nats.go/jetstream"
)

// telegrafVariable is the path of a telegraf program with inputs.nats_consumer, outputs.http,
// parsers.json and serializers.csv.
const telegrafVariable = "COURIER_TELEGRAF"

// telegraf writes the samples of the log into the same table and roll-ups as the store, until the
// table has all of them. It has the fastest settings: CSV over HTTP, and many unacknowledged
// messages, which needs a consumer created in advance.
func telegraf(b *testing.B, program, config string, d *store.Database, samples uint64) {
	ctx, cancel := context.WithTimeout(b.Context(), patience)
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

// prepareTelegraf creates the consumer of telegraf, which begins at the start of the log.
func prepareTelegraf(b *testing.B, address string) {
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

// telegrafConfig returns the path of the configuration of telegraf.
func telegrafConfig(b *testing.B, server string, engine *storetest.Server) string {
	at, err := url.Parse(engine.Address(b))
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
	text := fmt.Sprintf(`[agent]
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
  url = "%s/?database=%s&date_time_input_format=best_effort&query=%s"
  username = %q
  password = %q
  timeout = "60s"
  use_batch_format = true
  data_format = "csv"
  csv_timestamp_format = "2006-01-02T15:04:05.000Z07:00"
  csv_header = false
  csv_columns = [%s]
`, server, engine.HTTPAddress(b), strings.TrimPrefix(at.Path, "/"), insert, at.User.Username(),
		password, csv)
	path := filepath.Join(b.TempDir(), "telegraf.conf")
	must(b, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// BenchmarkCluster_Ingest measures how fast stores write samples from the log to one server, and to
// the two shards of a cluster, on the same processors. It reports samples per second, and the
// processor time per sample of the log server and the store (one process), and of the engines.
func BenchmarkCluster_Ingest(b *testing.B) {
	const samples = 500_000
	b.Run("servers=1", func(b *testing.B) {
		server := storetest.NewServer(b)
		d := storetest.Open(b, server.Address(b))
		must(b, d.Migrate(b.Context()))
		ingest(b, samples, []*storetest.Server{server}, func(*bus.Bus) (runner, []*store.Database) {
			return nil, []*store.Database{d}
		})
	})
	b.Run("shards=2", func(b *testing.B) {
		servers := cluster.Start(b, 1, 1)
		engines := []*storetest.Server{servers.Server(0), servers.Server(1)}
		ingest(b, samples, engines, func(log *bus.Bus) (runner, []*store.Database) {
			o := store.Options{URL: servers.URL(0, "courier"), Timeout: patience}
			c, err := store.OpenCluster(b.Context(), log, o, cluster.Name, discard, nil)
			must(b, err)
			b.Cleanup(func() { must(b, c.Close()) })
			must(b, c.Migrate(b.Context()))
			return c, c.Databases()
		})
	})
}

// BenchmarkCluster_Lag publishes a sample of each of 1,000 nodes every two seconds, and reports how
// far the tables of one server, and of a cluster with two shards, are behind the log: the age of the
// oldest sample that readers do not see yet, looked up ten times per second.
func BenchmarkCluster_Lag(b *testing.B) {
	b.Run("servers=1", func(b *testing.B) {
		d, log := storetest.Open(b, storetest.NewServer(b).Address(b)), bustest.New(b)
		must(b, d.Migrate(b.Context()))
		measureLag(b, log, store.New(log, d, discard, nil, store.Options{}), d)
	})
	b.Run("shards=2", func(b *testing.B) {
		servers, log := cluster.Start(b, 1, 1), bustest.New(b)
		o := store.Options{URL: servers.URL(0, "courier"), Timeout: patience}
		c, err := store.OpenCluster(b.Context(), log, o, cluster.Name, discard, nil)
		must(b, err)
		b.Cleanup(func() { must(b, c.Close()) })
		must(b, c.Migrate(b.Context()))
		measureLag(b, log, c, storetest.Open(b, servers.URL(1, "courier")))
	})
}

// measureLag measures one store while samples are published for half a minute.
func measureLag(b *testing.B, log *bus.Bus, s runner, readers *store.Database) {
	const nodes, interval, lookups = 1000, 2 * time.Second, 300
	perTick := nodes / int(interval/(100*time.Millisecond))
	for b.Loop() {
		stop := run(b, s)
		tick := time.NewTicker(100 * time.Millisecond)
		publishedAt := []time.Time{time.Now()} // by sequence
		var lags []time.Duration
		for range lookups {
			<-tick.C
			for range perTick {
				test, n := newTestLog(), len(publishedAt)
				test.at = time.Now()
				test.sample(fmt.Sprintf("node-%d", n%nodes), uint64(n/nodes))
				publish(b, log, test.events)
				publishedAt = append(publishedAt, time.Now())
			}
			position, err := readers.Position(b.Context(), schemas.StreamNode)
			must(b, err)
			if oldest := int(position) + 1; oldest < len(publishedAt) {
				lags = append(lags, time.Since(publishedAt[oldest]))
			}
		}
		tick.Stop()
		stop()
		slices.Sort(lags)
		b.ReportMetric(lags[len(lags)*95/100].Seconds(), "p95-lag-s")
		b.ReportMetric(lags[len(lags)-1].Seconds(), "max-lag-s")
	}
}

// discard is a log that nobody reads.
var discard = slog.New(slog.DiscardHandler)

// runner is a store of a server or of a cluster.
type runner interface {
	Run(ctx context.Context) error
}

// ingest measures one store that writes the samples of a new log.
func ingest(
	b *testing.B, samples int, engines []*storetest.Server,
	open func(log *bus.Bus) (runner, []*store.Database),
) {
	server := bustest.NewServer(b)
	log := server.Connect(b)
	publishRaw(b, server.URL(), samples, 1)
	for b.Loop() {
		s, databases := open(log)
		if s == nil {
			s = store.New(log, databases[0], discard, nil, store.Options{})
		}
		own, engine := processorSeconds(b, os.Getpid()), engineSeconds(b, engines)
		perSecond := rate(samples, func() {
			stop := run(b, s)
			for _, d := range databases {
				awaitHandled(b, log, d, uint64(samples))
			}
			stop()
		})
		own, engine = processorSeconds(b, os.Getpid())-own, engineSeconds(b, engines)-engine
		b.ReportMetric(perSecond, "samples/s")
		b.ReportMetric(own/float64(samples)*1e6, "store-cpu-µs/sample")
		b.ReportMetric(engine/float64(samples)*1e6, "engine-cpu-µs/sample")
	}
	rows := uint64(0)
	_, databases := open(log)
	for _, d := range databases {
		rows += selectNumber(b, d, "SELECT count() AS n FROM node_sample")
	}
	if rows != uint64(samples) {
		b.Errorf("%d rows, want %d", rows, samples)
	}
}

// awaitHandled waits until the writer of a database has handled samples.
func awaitHandled(b *testing.B, log *bus.Bus, d *store.Database, samples uint64) {
	ctx, cancel := context.WithTimeout(b.Context(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, durable := range d.Durables() {
		for durable.Stream == schemas.StreamNode {
			behind, err := log.Backlog(ctx, durable)
			must(b, err)
			if behind.Done >= samples {
				break
			}
			<-tick.C
		}
	}
}

func engineSeconds(b *testing.B, engines []*storetest.Server) (seconds float64) {
	for _, e := range engines {
		seconds += processorSeconds(b, e.Process(b).Pid)
	}
	return seconds
}

// processorSeconds returns the user and system time of a process and of its children that have
// ended (fields 14 to 17 of proc(5), in hundredths of a second).
func processorSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	must(b, err)
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	ticks := 0.0
	for _, f := range fields[11:15] {
		n, err := strconv.ParseFloat(string(f), 64)
		must(b, err)
		ticks += n
	}
	return ticks / 100
}
