//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
	"courier/store/storetest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// fleetVariable sets the duration of BenchmarkFleet; the default is half a minute.
const fleetVariable = "COURIER_FLEET"

const (
	fleetInterval     = 2 * time.Second // interval of the samples of a node
	fleetJobEpochs    = 50
	fleetEpochSeconds = 6 // mean over models and batch sizes
	fleetBatchSize    = 64
	fleetNodes        = 1000 // of the benchmarks that only write
)

// BenchmarkFleet runs a cluster of 1,000 and of 10,000 nodes. Each node sends a sample every 2 s
// and runs jobs of 50 epochs one after another, with a mean epoch time of 6 s. Every job is
// submitted first. NATS, the store, ClickHouse, the advisor, the trainer and the gateway are
// separate processes.
//
// The benchmark reports the CPU cores of each process, its highest memory, the growth of its memory
// from the second to the last third, the maximum lag of the tables, and the time from the
// publication of an epoch to its advice (advice is only published if it changed).
func BenchmarkFleet(b *testing.B) {
	lasts, err := time.ParseDuration(cmp.Or(os.Getenv(fleetVariable), "30s"))
	if err != nil {
		b.Fatalf("%s: %v", fleetVariable, err)
	}
	for _, nodes := range []int{1000, 10_000} {
		b.Run(fmt.Sprint("nodes=", nodes), func(b *testing.B) {
			for b.Loop() {
				benchmarkFleet(b, nodes, lasts)
			}
		})
	}
}

func benchmarkFleet(b *testing.B, nodes int, lasts time.Duration) {
	clickhouse := storetest.NewServer(b)
	url, nats, log := natsProcess(b)
	address := clickhouse.Address(b)
	start := func(args ...string) int { return spawn(b, args...).cmd.Process.Pid }
	parts := map[string]int{
		"nats":       nats,
		"clickhouse": clickhouse.Process(b).Pid,
		"store":      start("store", "--nats-url="+url, "--clickhouse-url="+address),
		"trainer":    start("trainer", "--nats-url="+url, "--clickhouse-url="+address),
		"advisor":    start("advisor", "--nats-url="+url),
		"gateway": start("gateway", "--nats-url="+url,
			fmt.Sprint("--http-address=127.0.0.1:", storetest.FreePort(b))),
	}

	f := newFleet(nodes, lasts)
	await(b, "an answering advisor", func() bool {
		var page schemas.JobList
		return log.Request(within(b, time.Second), schemas.SubjectJobList,
			&schemas.JobListRequest{}, &page) == nil
	})
	before := map[string]float64{}
	for part, pid := range parts {
		before[part] = processSeconds(b, pid)
	}

	published := make(chan error, 1)
	go func() { published <- f.publish(b.Context(), url) }()
	thirds, lag, err := f.watch(b, log, parts, published)
	if err != nil {
		b.Fatal(err)
	}

	took := time.Since(f.begin).Seconds()
	for part, pid := range parts {
		b.ReportMetric((processSeconds(b, pid)-before[part])/took, part+"-cores")
		b.ReportMetric(statusMB(b, pid, "VmHWM"), part+"-MB")
		b.ReportMetric(thirds[part][2]-thirds[part][1], part+"-MB-growth")
	}
	b.ReportMetric(float64(f.samples)/took, "samples/s")
	b.ReportMetric(float64(f.epochs)/took, "epochs/s")
	b.ReportMetric(lag.Seconds(), "lag-s")
	f.report(b)
}

// fleet is a cluster of nodes with one job on each.
type fleet struct {
	begin time.Time
	lasts time.Duration
	boot  string
	nodes []fleetNode

	samples, epochs int
	failed          int // submissions that failed

	mu        sync.Mutex
	published map[string]publishedEpoch // the last of each job
	latencies []float64                 // milliseconds
}

// fleetNode is a node and its current job.
type fleetNode struct {
	due     time.Duration // of the next epoch or submission, since the start; waiting: it is submitted
	number  int           // of the job on this node
	setting schemas.Setting
	epoch   uint32
}

// waiting is when a node is due whose submission has no answer yet.
const waiting = time.Duration(math.MaxInt64)

type publishedEpoch struct {
	epoch uint32
	at    time.Time
}

// newFleet returns a fleet whose first jobs start at uniform intervals over the time of one job.
func newFleet(nodes int, lasts time.Duration) *fleet {
	f := &fleet{
		lasts:     lasts,
		nodes:     make([]fleetNode, nodes),
		published: map[string]publishedEpoch{},
	}
	rampUp := min(fleetJobEpochs*fleetEpochSeconds*time.Second, lasts/4)
	for i := range f.nodes {
		f.nodes[i].due = rampUp * time.Duration(i) / time.Duration(nodes)
	}
	return f
}

// publish publishes each event at its time, in the encoding of a collector.
func (f *fleet) publish(ctx context.Context, url string) error {
	nc, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4000))
	if err != nil {
		return err
	}
	heard, err := nc.Subscribe(schemas.JobSubject("*", schemas.EventAdvice), f.measureLatency)
	if err != nil {
		return err
	}
	defer func() { _ = heard.Unsubscribe() }() // the connection is closed next

	put := func(e schemas.Event) error {
		data, err := schemas.Marshal(e)
		if err != nil {
			return err
		}
		options := []jetstream.PublishOpt{
			jetstream.WithMsgID(e.ID()),
			jetstream.WithStallWait(time.Minute),
		}
		_, err = js.PublishAsync(e.Subject(), data, options...)
		return err
	}
	f.boot = strconv.FormatInt(time.Now().UnixNano(), 36)
	submissions := make(chan int, len(f.nodes))
	submitted := f.submitters(ctx, nc, submissions)
	defer close(submissions)

	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for f.begin = time.Now(); time.Since(f.begin) < f.lasts; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case s := <-submitted:
			if err := f.start(s, put); err != nil {
				return err
			}
			continue
		case <-tick.C:
		}
		if err := f.publishDue(put, submissions); err != nil {
			return err
		}
	}
	<-js.PublishAsyncComplete()
	return nil
}

// publishDue sends the samples and epochs that are due. After the end of a job it requests the next
// one.
func (f *fleet) publishDue(put func(schemas.Event) error, submissions chan<- int) error {
	passed := time.Since(f.begin)
	for ; time.Duration(f.samples)*fleetInterval/time.Duration(len(f.nodes)) < passed; f.samples++ {
		if err := put(fleetSample(f.boot, len(f.nodes), f.samples)); err != nil {
			return err
		}
	}
	for node := range f.nodes {
		n := &f.nodes[node]
		if n.due >= passed {
			continue
		}
		if n.epoch == fleetJobEpochs || n.setting.Epochs == 0 {
			if n.epoch == fleetJobEpochs {
				if err := put(f.finished(node)); err != nil {
					return err
				}
			}
			n.due = waiting
			submissions <- node
			continue
		}
		e := f.nextEpoch(node)
		f.note(e)
		if err := put(e); err != nil {
			return err
		}
		f.epochs++
		n.due += seconds(f.epochSeconds(node))
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// submission is an answered request for the next job of a node.
type submission struct {
	node   int
	advice *schemas.Advice // nil: rejected or without an answer
}

// submitters submit the next job of each node in a channel, until the channel is closed.
func (f *fleet) submitters(ctx context.Context, nc *nats.Conn, nodes <-chan int) <-chan submission {
	answered := make(chan submission, len(f.nodes))
	for range 32 {
		go func() {
			for node := range nodes {
				answered <- submission{node, f.submit(ctx, nc, node)}
			}
		}()
	}
	return answered
}

func (f *fleet) submit(ctx context.Context, nc *nats.Conn, node int) *schemas.Advice {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"id":          f.job(node, f.nodes[node].number+1),
		"model":       fmt.Sprint("model-", node%12),
		"cpus":        2,
		"batch_sizes": []int{32, 64, 128, 256},
		"epochs":      fleetJobEpochs,
		"slo":         fmt.Sprintf("%ds", fleetJobEpochs*fleetEpochSeconds*3/2),
		"nodes":       []string{fleetNodeName(node)},
	})
	if err != nil {
		return nil
	}
	reply, err := nc.RequestWithContext(ctx, schemas.SubjectJobSubmit, body)
	if err != nil {
		return nil
	}
	var a schemas.Advice
	if json.Unmarshal(reply.Data, &a) != nil || a.Chosen == nil {
		return nil
	}
	return &a
}

// start starts the submitted job. A job without an answer is submitted again.
func (f *fleet) start(s submission, put func(schemas.Event) error) error {
	n := &f.nodes[s.node]
	if s.advice == nil {
		f.failed++
		n.due = time.Since(f.begin) + time.Second
		return nil
	}
	n.number++
	n.epoch = 0
	n.setting = schemas.Setting{
		Model: fmt.Sprint("model-", s.node%12), BatchSize: s.advice.Chosen.BatchSize, CPUs: 2,
		Epochs: fleetJobEpochs, Nodes: []string{fleetNodeName(s.node)},
	}
	e := &schemas.Started{Setting: n.setting}
	e.JobID, e.Run, e.At = f.job(s.node, n.number), 1, time.Now().UTC()
	e.EventID = schemas.StartedID(e.JobID, 1)
	n.due = time.Since(f.begin) + seconds(f.epochSeconds(s.node))
	return put(e)
}

// epochSeconds returns the next epoch time of the job on a node: a law of model and batch size with
// 3 % noise.
func (f *fleet) epochSeconds(node int) float64 {
	s := &f.nodes[node].setting
	model := 0.75 + 0.5*float64(node%12)/11
	batch := 0.5 + 0.5*fleetBatchSize/float64(max(s.BatchSize, 1))
	return fleetEpochSeconds * model * batch * math.Exp(0.03*rand.NormFloat64())
}

func fleetNodeName(node int) string { return fmt.Sprint("node-", node) }

func (f *fleet) job(node, number int) string {
	return fmt.Sprintf("job-%s-%d-%d", f.boot, node, number)
}

// fleetSample returns the n-th sample of all nodes, which send in turn.
func fleetSample(boot string, nodes, n int) *schemas.Sample {
	node, number := fleetNodeName(n%nodes), uint64(n/nodes+1)
	wave := 0.5 + 0.4*math.Sin(float64(n)/1e4)
	figure := func(scale float64) *float64 { v := sixDigits(wave * scale); return &v }
	s := &schemas.Sample{
		Node: node, BootID: boot, Number: number,
		IntervalSeconds: fleetInterval.Seconds(), Cores: 64,

		CPURatio: figure(1), IOWaitRatio: figure(0.1), CPUPressureRatio: figure(0.2),
		IOPressureRatio: figure(0.05), MemoryPressureRatio: figure(0.01), LoadAverage: figure(60),

		MemoryTotalBytes: figure(5e11), MemoryAvailableBytes: figure(3e11),
		DiskReadBytesPerSecond: figure(1e8), DiskWrittenBytesPerSecond: figure(5e7),
		DiskBusyRatio: figure(0.6), NetworkReceivedBytesPerSecond: figure(1e8),
		NetworkTransmittedBytesPerSecond: figure(1e8),

		CPUModel: "a processor", SpeedOperationsPerSecond: new(1e9),
	}
	s.EventID, s.At = schemas.SampleID(node, boot, number), time.Now().UTC()
	return s
}

// fleetEpoch returns the n-th epoch of 200 concurrent jobs with 50 epochs each.
func fleetEpoch(boot string, n int) *schemas.Epoch {
	const jobs = 200
	slot, number := n%jobs, n/jobs
	accuracy := 0.9
	e := &schemas.Epoch{
		Setting: schemas.Setting{
			Model: "model", BatchSize: fleetBatchSize, CPUs: 2, Epochs: fleetJobEpochs,
			Nodes: []string{fleetNodeName(slot)},
		},
		Epoch:           uint32(number%fleetJobEpochs) + 1,
		DurationSeconds: 1,
		DurationSource:  schemas.DurationReported,
		Accuracy:        &accuracy,
	}
	e.JobID, e.Run = fmt.Sprintf("job-%s-%d-%d", boot, slot, number/fleetJobEpochs), 1
	e.EventID, e.At = schemas.EpochID(e.JobID, 1, e.Epoch), time.Now().UTC()
	return e
}

// sixDigits rounds to six digits, as a collector does.
func sixDigits(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 6, 64), 64)
	return v
}

func (f *fleet) nextEpoch(node int) *schemas.Epoch {
	n := &f.nodes[node]
	n.epoch++
	accuracy := 0.9 - 0.5/float64(n.epoch)
	e := &schemas.Epoch{
		Setting: n.setting, Epoch: n.epoch, DurationSeconds: f.epochSeconds(node),
		DurationSource: schemas.DurationReported, Accuracy: &accuracy, NodeCores: 64,
	}
	e.JobID, e.Run, e.At = f.job(node, n.number), 1, time.Now().UTC()
	e.EventID = schemas.EpochID(e.JobID, 1, e.Epoch)
	return e
}

func (f *fleet) finished(node int) *schemas.Ended {
	n := &f.nodes[node]
	e := &schemas.Ended{Outcome: schemas.EventFinished, EpochsDone: n.epoch, Setting: n.setting}
	e.JobID, e.Run, e.At = f.job(node, n.number), 1, time.Now().UTC()
	e.EventID = schemas.EndedID(e.JobID, 1, e.Outcome)
	n.epoch, n.setting.Epochs = 0, 0
	f.mu.Lock()
	delete(f.published, e.JobID)
	f.mu.Unlock()
	return e
}

// note records the time of publication of an epoch.
func (f *fleet) note(e *schemas.Epoch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.published[e.JobID] = publishedEpoch{e.Epoch, e.At}
}

// measureLatency records the time from an epoch to its advice.
func (f *fleet) measureLatency(m *nats.Msg) {
	var a struct {
		JobID      string `json:"job_id"`
		EpochsDone uint32 `json:"epochs_done"`
		Run        uint32 `json:"run"`
	}
	if json.Unmarshal(m.Data, &a) != nil || a.Run == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if p, ok := f.published[a.JobID]; ok && p.epoch == a.EpochsDone {
		f.latencies = append(f.latencies, float64(time.Since(p.at).Microseconds())/1000)
	}
}

func (f *fleet) report(b *testing.B) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b.ReportMetric(float64(f.failed), "unanswered")
	b.ReportMetric(float64(len(f.latencies))/f.lasts.Seconds(), "advice/s")
	if len(f.latencies) == 0 {
		b.Error("no advice was received")
		return
	}
	slices.Sort(f.latencies)
	b.ReportMetric(f.latencies[len(f.latencies)/2], "advice-p50-ms")
	b.ReportMetric(f.latencies[len(f.latencies)*99/100], "advice-p99-ms")
}

// watch polls once per second until all events are published and stored. It returns the highest
// memory of each process in each third of the time in MB, and the maximum lag of the tables.
func (f *fleet) watch(
	b *testing.B, log *bus.Bus, parts map[string]int, published <-chan error,
) (thirds map[string][3]float64, lag time.Duration, err error) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	thirds = map[string][3]float64{}
	for begin, over := time.Now(), false; ; {
		select {
		case err := <-published:
			if err != nil {
				return thirds, lag, err
			}
			over = true
		case <-tick.C:
		}
		behind, err := longestLag(b, log)
		if err != nil {
			return thirds, lag, err
		}
		lag = max(lag, behind)
		if over && behind == 0 {
			return thirds, lag, nil
		}
		third := min(2, int(3*time.Since(begin)/f.lasts))
		for part, pid := range parts {
			highest := thirds[part]
			highest[third] = max(highest[third], statusMB(b, pid, "VmRSS"))
			thirds[part] = highest
		}
	}
}

// longestLag returns the age of the oldest event that no table has; 0 if there is none.
func longestLag(b *testing.B, log *bus.Bus) (lag time.Duration, err error) {
	for _, d := range schemas.StoreDurables() {
		behind, err := log.Backlog(within(b, 10*time.Second), d)
		if err != nil {
			return lag, err
		}
		if !behind.Oldest.IsZero() {
			lag = max(lag, time.Since(behind.Oldest))
		}
	}
	return lag, nil
}
