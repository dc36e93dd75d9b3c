//go:build linux

package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/store/storetest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// fleetVariable is how long BenchmarkFleet lasts; half a minute is the default.
const fleetVariable = "COURIER_FLEET"

const (
	fleetNodes           = 1000
	fleetInterval        = 2 * time.Second
	fleetEpochsPerSecond = 200
)

// BenchmarkFleet publishes what a thousand nodes and two hundred epochs a second make,
// while NATS, the store and ClickHouse, each a process, take it: how old the oldest event
// was that no table had yet, at worst; the store's memory at its highest, and how much
// higher it was in the last third than in the second; and processors that each part takes.
func BenchmarkFleet(b *testing.B) {
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(fleetVariable), "30s"))
	if err != nil {
		b.Fatalf("%s: %v", fleetVariable, err)
	}
	clickhouse := storetest.NewServer(b)
	url, nats, log := natsProcess(b)
	store := spawn(b, "store", "--nats-url="+url, "--clickhouse-url="+clickhouse.Address(b))
	parts := map[string]int{"nats": nats, "store": store.cmd.Process.Pid, "clickhouse": clickhouse.Process(b).Pid}
	for b.Loop() {
		before := map[string]float64{}
		for part, pid := range parts {
			before[part] = processSeconds(b, pid)
		}
		f := &fleet{begin: time.Now(), lasts: lasts}
		published := make(chan error, 1)
		go func() { published <- f.publish(url) }()
		lag, thirds, err := f.watch(b, log, parts["store"], published)
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(f.begin).Seconds()
		for part, pid := range parts {
			b.ReportMetric((processSeconds(b, pid)-before[part])/took, part+"-cores")
		}
		b.ReportMetric(float64(f.count)/took, "events/s")
		b.ReportMetric(lag.Seconds(), "lag-s")
		b.ReportMetric(statusMB(b, parts["store"], "VmHWM"), "MB/store")
		b.ReportMetric(thirds[2]-thirds[1], "MB/growth")
	}
}

// fleet is what the nodes publish.
type fleet struct {
	begin time.Time
	lasts time.Duration
	count int
}

// publish sends each event at its time, as a collector encodes it.
func (f *fleet) publish(url string) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4000))
	if err != nil {
		return err
	}
	put := func(e schemas.Event) error {
		data, err := schemas.Marshal(e)
		if err != nil {
			return err
		}
		f.count++
		_, err = js.PublishAsync(e.Subject(), data, jetstream.WithMsgID(e.ID()), jetstream.WithStallWait(time.Minute))
		return err
	}
	boot := strconv.FormatInt(f.begin.UnixNano(), 36)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for samples, epochs := 0, 0; time.Since(f.begin) < f.lasts; <-tick.C {
		passed := time.Since(f.begin)
		for ; time.Duration(samples)*fleetInterval/fleetNodes < passed; samples++ {
			if err := put(f.sample(boot, samples)); err != nil {
				return err
			}
		}
		for ; float64(epochs) < passed.Seconds()*fleetEpochsPerSecond; epochs++ {
			if err := put(f.epoch(boot, epochs)); err != nil {
				return err
			}
		}
	}
	<-js.PublishAsyncComplete()
	return nil
}

func (f *fleet) sample(boot string, n int) *schemas.Sample {
	node, number := fmt.Sprint("node-", n%fleetNodes), uint64(n/fleetNodes+1)
	wave := 0.5 + 0.4*math.Sin(float64(n)/1e4)
	figure := func(scale float64) *float64 { v := sixDigits(wave * scale); return &v }
	s := &schemas.Sample{Node: node, BootID: boot, Number: number, IntervalSeconds: fleetInterval.Seconds(), Cores: 64, CPURatio: figure(1), IOWaitRatio: figure(0.1), CPUPressureRatio: figure(0.2),
		IOPressureRatio: figure(0.05), MemoryPressureRatio: figure(0.01), LoadAverage: figure(60), MemoryTotalBytes: figure(5e11), MemoryAvailableBytes: figure(3e11), DiskReadBytesPerSecond: figure(1e8),
		DiskWrittenBytesPerSecond: figure(5e7), DiskBusyRatio: figure(0.6), NetworkReceivedBytesPerSecond: figure(1e8), NetworkTransmittedBytesPerSecond: figure(1e8), CPUModel: "a processor", SpeedOperationsPerSecond: figure(1e9)}
	s.EventID, s.At = schemas.SampleID(node, boot, number), time.Now().UTC()
	return s
}

// sixDigits is a figure as a collector tells it.
func sixDigits(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	return v
}

// epoch is of one of 200 jobs that run at once, fifty epochs each.
func (f *fleet) epoch(boot string, n int) *schemas.Epoch {
	const jobs, epochs = 200, 50
	number := n / jobs
	job, accuracy := fmt.Sprintf("job-%s-%d-%d", boot, n%jobs, number/epochs), 0.9
	e := &schemas.Epoch{Setting: schemas.Setting{Model: "model", BatchSize: 64, CPUs: 2, Epochs: epochs, Nodes: []string{fmt.Sprint("node-", n%jobs)}}, Epoch: uint32(number%epochs) + 1,
		DurationSeconds: 1, DurationSource: schemas.DurationReported, Accuracy: &accuracy}
	e.EventID, e.At, e.JobID, e.Run = schemas.EpochID(job, 1, e.Epoch), time.Now().UTC(), job, 1
	return e
}

// watch looks once a second until all is published and stored, and returns the greatest
// lag, and the store's highest memory, in MB, in each third of the time.
func (f *fleet) watch(b *testing.B, log *bus.Bus, store int, published <-chan error) (lag time.Duration, thirds [3]float64, err error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	over := false
	for {
		select {
		case err := <-published:
			if err != nil {
				return lag, thirds, err
			}
			over = true
		case <-tick.C:
		}
		waits := false
		for _, d := range schemas.StoreDurables() {
			behind, err := log.Backlog(within(b, 10*time.Second), d)
			if err != nil {
				return lag, thirds, err
			}
			if !behind.Oldest.IsZero() {
				waits = true
				lag = max(lag, time.Since(behind.Oldest))
			}
		}
		if over && !waits {
			return lag, thirds, nil
		}
		third := min(2, int(3*time.Since(f.begin)/f.lasts))
		thirds[third] = max(thirds[third], statusMB(b, store, "VmRSS"))
	}
}
