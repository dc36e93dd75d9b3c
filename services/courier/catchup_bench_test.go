//go:build linux

package main

import (
	"fmt"
	"testing"
	"time"

	"courier/schemas"
	"courier/store/storetest"

	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkCatchUp starts stores in separate processes with a log of 800,000 samples and empty tables,
// with one and with a hundred samples in a message. It measures samples per second, the processor time
// per sample of all stores, NATS and ClickHouse, and the highest memory of a store. All processes share
// the processors of this machine.
func BenchmarkCatchUp(b *testing.B) {
	for _, c := range []struct{ each, stores int }{{1, 1}, {100, 1}, {1, 4}} {
		b.Run(fmt.Sprintf("samples_per_message=%d/stores=%d", c.each, c.stores), func(b *testing.B) {
			benchmarkCatchUp(b, c.each, c.stores)
		})
	}
}

func benchmarkCatchUp(b *testing.B, each, stores int) {
	const samples = 800_000
	for b.Loop() {
		b.StopTimer()
		clickhouse := storetest.NewServer(b)
		url, nats, log := natsProcess(b)
		js, err := jetstream.New(dial(b, url), jetstream.WithPublishAsyncMaxPending(1000))
		if err != nil {
			b.Fatal(err)
		}
		putSamples(b, js, samples, each)
		d := storetest.Open(b, clickhouse.Address(b))
		if err := d.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		parts := map[string][]int{"nats": {nats}, "clickhouse": {clickhouse.Process(b).Pid}}
		awaitRest(b, parts["nats"], parts["clickhouse"])
		before := map[string]float64{}
		for part, pids := range parts {
			before[part] = spentBy(b, pids)
		}
		b.StartTimer()
		begin := time.Now()
		for range stores {
			parts["store"] = append(parts["store"], spawn(b, "store", "--nats-url="+url,
				"--clickhouse-url="+clickhouse.Address(b)).cmd.Process.Pid)
		}
		await(b, "all in the tables", func() bool {
			behind, err := log.Backlog(within(b, 10*time.Second), schemas.StoreDurables()[1])
			if err != nil {
				b.Fatal(err)
			}
			return behind.Done >= uint64(samples/each)
		})
		b.ReportMetric(samples/time.Since(begin).Seconds(), "samples/s")
		for part, pids := range parts {
			b.ReportMetric((spentBy(b, pids)-before[part])/samples*1e6, "us/sample-"+part)
		}
		b.ReportMetric(statusMB(b, parts["store"][0], "VmHWM"), "MB/store")
	}
}

// putSamples fills the log with samples of many nodes, with the given number in a message.
func putSamples(b *testing.B, js jetstream.JetStream, samples, each int) {
	b.Helper()
	begin := time.Now().Add(-4 * time.Hour)
	for m := range samples / each {
		events := make([]schemas.Event, each)
		for i := range events {
			s := fleetSample("boot", fleetNodes, m%fleetNodes+fleetNodes*(m/fleetNodes*each+i))
			s.At = begin.Add(time.Duration(s.Number) * fleetInterval)
			events[i] = s
		}
		put(b, js, events...)
	}
	<-js.PublishAsyncComplete()
}
