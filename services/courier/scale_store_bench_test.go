//go:build linux

package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"courier/schemas"
	"courier/store/storetest"

	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkScaleStores runs one, two and four stores in separate processes with one NATS server and
// one ClickHouse. It reports samples and epochs per second from the log to the tables, with both
// streams at once, and the processor time per event of all stores, NATS and ClickHouse. One store
// at a time writes a stream. All processes share the processors of this machine, so the costs
// scale, but not the rate.
func BenchmarkScaleStores(b *testing.B) {
	for _, stores := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("stores=%d", stores), func(b *testing.B) {
			benchmarkScaleStores(b, stores)
		})
	}
}

func benchmarkScaleStores(b *testing.B, stores int) {
	const samples, epochs = 150_000, 50_000
	clickhouse := storetest.NewServer(b)
	url, nats, log := natsProcess(b)
	parts := map[string][]int{"nats": {nats}, "clickhouse": {clickhouse.Process(b).Pid}}
	for range stores {
		parts["stores"] = append(parts["stores"],
			spawn(b, "store", "--nats-url="+url, "--clickhouse-url="+
				clickhouse.Address(b)).cmd.Process.Pid)
	}
	awaitRest(b, parts["stores"], parts["clickhouse"]) // after the migration
	js, err := jetstream.New(dial(b, url))
	if err != nil {
		b.Fatal(err)
	}
	for round := uint64(1); b.Loop(); round++ {
		before := map[string]float64{}
		for part := range parts {
			before[part] = spentBy(b, parts[part])
		}
		begin, boot := time.Now(), fmt.Sprint("boot-", round)
		for n := range samples {
			put(b, js, fleetSample(boot, fleetNodes, n))
			if n%(samples/epochs) == 0 {
				put(b, js, fleetEpoch(boot, n/(samples/epochs)))
			}
		}
		<-js.PublishAsyncComplete()
		await(b, "all in the tables", func() bool {
			done := uint64(0)
			for _, d := range schemas.StoreDurables() {
				behind, err := log.Backlog(within(b, 10*time.Second), d)
				if err != nil {
					b.Fatal(err)
				}
				done += behind.Done
			}
			return done >= round*(samples+epochs)
		})
		b.ReportMetric((samples+epochs)/time.Since(begin).Seconds(), "events/s")
		for part := range parts {
			b.ReportMetric((spentBy(b, parts[part])-before[part])/(samples+epochs)*1e6,
				"us/event-"+part)
		}
	}
}

// awaitRest waits until processes have used little processor time for a second.
func awaitRest(b *testing.B, all ...[]int) {
	b.Helper()
	pids := slices.Concat(all...)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	<-tick.C
	for before, now := 0.0, spentBy(b, pids); now-before > 0.2; before, now = now, spentBy(b,
		pids) {
		<-tick.C
	}
}

// spentBy returns the processor time of processes in seconds.
func spentBy(b *testing.B, pids []int) (seconds float64) {
	b.Helper()
	for _, pid := range pids {
		seconds += processSeconds(b, pid)
	}
	return seconds
}

// put publishes a message with events of one subject, without waiting for its acknowledgement.
func put(b *testing.B, js jetstream.JetStream, events ...schemas.Event) {
	b.Helper()
	var message any = events
	if len(events) == 1 {
		message = events[0]
	}
	data, err := schemas.Marshal(message)
	if err == nil {
		_, err = js.PublishAsync(events[0].Subject(), data,
			jetstream.WithMsgID(schemas.MessageID(events)), jetstream.WithStallWait(time.Minute))
	}
	if err != nil {
		b.Fatal(err)
	}
}
