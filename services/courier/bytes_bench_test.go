//go:build linux

package main

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store/storetest"

	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkBytesPerEvent measures the disk space of a sample and an epoch in NATS and ClickHouse:
// 500 samples of each of a hundred nodes, two seconds apart, with all fields set to different
// numbers, and 20,000 epochs.
func BenchmarkBytesPerEvent(b *testing.B) {
	const nodes, samples, epochs = 100, 50_000, 20_000
	for b.Loop() {
		server, address := bustest.NewServer(b), storetest.NewServer(b).Address(b)
		log := server.Connect(b)
		spawn(b, "store", "--nats-url="+server.URL(), "--clickhouse-url="+address)
		js, err := jetstream.New(dial(b, server.URL()))
		if err != nil {
			b.Fatal(err)
		}
		begin := time.Now().Add(-time.Hour)
		random := rand.New(rand.NewPCG(1, 2))
		for n := range samples {
			s := fleetSample("boot", fleetNodes, n*fleetNodes/nodes)
			s.Node = fmt.Sprint("node-", n%nodes)
			s.Number = uint64(n / nodes)
			s.EventID, s.At = schemas.SampleID(s.Node, "boot", s.Number), begin.Add(
				time.Duration(s.Number)*fleetInterval,
			)
			for _, figure := range []*float64{
				s.CPURatio, s.IOWaitRatio, s.CPUPressureRatio, s.IOPressureRatio,
				s.MemoryPressureRatio, s.LoadAverage, s.MemoryAvailableBytes,
				s.DiskReadBytesPerSecond, s.DiskWrittenBytesPerSecond, s.DiskBusyRatio,
				s.NetworkReceivedBytesPerSecond, s.NetworkTransmittedBytesPerSecond,
			} {
				*figure = sixDigits(*figure * random.Float64())
			}
			put(b, js, s)
		}
		for n := range epochs {
			e := fleetEpoch("boot", n)
			e.DurationSeconds += random.Float64()
			*e.Accuracy -= 0.1 * random.Float64()
			put(b, js, e)
		}
		<-js.PublishAsyncComplete()
		for _, w := range []eventSize{
			{"sample", schemas.StreamNode, "node_sample", samples},
			{"epoch", schemas.StreamJob, "job_epoch", epochs},
		} {
			w.report(b, log, address)
		}
	}
}

// eventSize measures one kind of event.
type eventSize struct {
	name, stream, table string
	count               uint64
}

// report reports the bytes per event in the log, and in the table after its parts were merged.
func (w eventSize) report(b *testing.B, log *bus.Bus, address string) {
	b.Helper()
	info, err := log.StreamInfo(within(b, 10*time.Second), w.stream)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Bytes)/float64(info.Messages), "B/"+w.name+"-log")
	d := storetest.Open(b, address)
	await(b, w.table, func() bool {
		n, err := count(b, d, "SELECT count() AS n FROM "+w.table)
		return err == nil && n == w.count
	})
	if err := d.Exec(b.Context(), "OPTIMIZE TABLE "+w.table+" FINAL"); err != nil {
		b.Fatal(err)
	}
	bytes, err := count(b, d, "SELECT sum(bytes_on_disk) AS n FROM system.parts"+
		" WHERE active AND table = '"+w.table+"'")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(bytes)/float64(w.count), "B/"+w.name+"-table")
}
