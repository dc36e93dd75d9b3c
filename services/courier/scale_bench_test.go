//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/server"
	"courier/schemas"
	"courier/store/storetest"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// BenchmarkScale runs one, two and four advisors in separate processes with one NATS server. It
// reports answers per second with 64 concurrent requests, the processor time of all advisors per
// answer and of each advisor per epoch and sample, while two hundred jobs run. It also
// reports the time per job event that an additional advisor needs to replay the log. All processes
// share the processors of this machine, so the costs scale, but not the rate.
func BenchmarkScale(b *testing.B) {
	for _, advisors := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("advisors=%d", advisors), func(b *testing.B) {
			benchmarkScale(b, advisors)
		})
	}
}

func benchmarkScale(b *testing.B, advisors int) {
	const jobs, requests, epochs, samples = 200, 20_000, 50_000, 20_000
	s := newScale(b, advisors)
	s.begin(b, jobs)
	for round := 0; b.Loop(); round++ {
		before, begin := s.spent(b), time.Now()
		s.request(b, requests)
		took := time.Since(begin).Seconds()
		after := s.spent(b)
		b.ReportMetric(requests/took, "answers/s")
		b.ReportMetric((after.advisors-before.advisors)/requests*1e6, "us/answer-advisors")
		b.ReportMetric((after.nats-before.nats)/requests*1e6, "us/answer-nats")

		before = s.spent(b)
		s.progress(b, jobs, epochs, round)
		after = s.awaitIdle(b)
		b.ReportMetric((after.advisors-before.advisors)/float64(advisors)/epochs*1e6,
			"us/epoch-advisor")
		b.ReportMetric((after.nats-before.nats)/epochs*1e6, "us/epoch-nats")

		before = after
		s.sample(b, samples, round)
		after = s.awaitIdle(b)
		b.ReportMetric((after.advisors-before.advisors)/float64(advisors)/samples*1e6,
			"us/sample-advisor")
		b.ReportMetric((after.nats-before.nats)/samples*1e6, "us/sample-nats")
	}
	begin := time.Now()
	s.add(b)
	b.ReportMetric(time.Since(begin).Seconds()/s.events(b)*1e6, "us/event-start")
}

// scale has the processes of one benchmark.
type scale struct {
	url      string
	log      *bus.Bus
	nats     int
	advisors []int
}

// spent is processor time in seconds.
type spent struct{ nats, advisors float64 }

// newScale starts NATS, lets a trainer fit a thousand epochs, and starts the advisors.
func newScale(b *testing.B, advisors int) *scale {
	b.Helper()
	s := &scale{}
	s.url, s.nats, s.log = natsProcess(b)
	publishPast(b, s.log, "past", 1000)
	trainer := spawn(b, "trainer", "--nats-url="+s.url)
	await(b, "regressors", func() bool {
		var reply schemas.TrainReply
		err := s.log.Request(within(b, 30*time.Second), schemas.SubjectRegressorTrain,
			&schemas.TrainRequest{}, &reply)
		return err == nil && len(reply.Promoted) == len(schemas.Targets())
	})
	trainer.kill()
	for range advisors {
		s.add(b)
	}
	return s
}

// natsRole is the first argument of a test binary that runs as a NATS server. Its directory and
// port follow.
const natsRole = "nats-server-of-tests"

func init() {
	if len(os.Args) > 3 && os.Args[1] == natsRole {
		if err := natsServer(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// natsServer is the main function of a NATS server.
func natsServer(args []string) error {
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	s, err := server.New(server.Options{DataDir: args[0], Port: port, Start: patience}, log)
	if err != nil {
		return err
	}
	return errors.Join(s.Start(ctx), s.Wait(ctx))
}

// natsProcess starts NATS in a separate process, creates all streams, and connects to it.
func natsProcess(b *testing.B) (url string, pid int, log *bus.Bus) {
	b.Helper()
	port := storetest.FreePort(b)
	url = fmt.Sprintf("nats://127.0.0.1:%d", port)
	pid = spawn(b, natsRole, filepath.Join(b.TempDir(), "jetstream"), strconv.Itoa(port)).cmd.Process.Pid
	log = connect(b, url)
	await(b, "the streams", func() bool { return log.Prepare(within(b, 5*time.Second)) == nil })
	return url, pid, log
}

// add starts an advisor and waits until it answers, too.
func (s *scale) add(b *testing.B) {
	b.Helper()
	s.advisors = append(s.advisors, spawn(b, "advisor", "--nats-url="+s.url).cmd.Process.Pid)
	nc := dial(b, s.url)
	await(b, "all advisors", func() bool {
		answers, err := nc.SubscribeSync(nats.NewInbox())
		if err != nil {
			b.Fatal(err)
		}
		defer func() { _ = answers.Unsubscribe() }() // the connection ends with the benchmark
		if err := nc.PublishRequest("$SRV.PING.courier-advisor", answers.Subject, nil); err != nil {
			b.Fatal(err)
		}
		n := 0
		for ; n < len(s.advisors); n++ {
			if _, err := answers.NextMsg(50 * time.Millisecond); err != nil {
				break
			}
		}
		return n == len(s.advisors)
	})
}

// events returns the number of job events in the log, which an advisor reads when it starts.
func (s *scale) events(b *testing.B) float64 {
	b.Helper()
	info, err := s.log.StreamInfo(within(b, 10*time.Second), schemas.StreamJob)
	if err != nil {
		b.Fatal(err)
	}
	return float64(info.Messages)
}

func (s *scale) spent(b *testing.B) spent {
	b.Helper()
	all := spent{nats: processSeconds(b, s.nats)}
	for _, pid := range s.advisors {
		all.advisors += processSeconds(b, pid)
	}
	return all
}

// awaitIdle waits until all processes are idle.
func (s *scale) awaitIdle(b *testing.B) spent {
	b.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	last := s.spent(b)
	for {
		<-tick.C
		now := s.spent(b)
		if now.advisors-last.advisors < 0.01*float64(len(s.advisors)) {
			return now
		}
		last = now
	}
}

func askedAt(node int) schemas.JobRequest {
	return schemas.JobRequest{
		Model: "model-1", CPUs: schemas.CPUs{2}, BatchSizes: []int{16, 32, 64, 128}, Epochs: 1000,
		SLO: schemas.Duration(time.Hour), Nodes: []string{fmt.Sprint("node-", node)},
	}
}

func jobName(n int) string { return fmt.Sprint("now-", n) }

// begin submits and starts jobs, two per node.
func (s *scale) begin(b *testing.B, jobs int) {
	b.Helper()
	for n := range jobs {
		q := askedAt(n / 2)
		q.JobID = jobName(n)
		var a schemas.Advice
		if err := s.log.Request(
			within(b, 10*time.Second), schemas.SubjectJobSubmit, &q, &a,
		); err != nil {
			b.Fatal(err)
		}
		e := &schemas.Started{Setting: settingOf(n), NodeCores: 16}
		e.EventID, e.At, e.JobID, e.Run = schemas.StartedID(q.JobID, 1), time.Now().UTC(), q.JobID, 1
		if _, err := s.log.Publish(within(b, 10*time.Second), e); err != nil {
			b.Fatal(err)
		}
	}
	s.awaitIdle(b)
}

func settingOf(n int) schemas.Setting {
	return schemas.Setting{
		Model: "model-1", BatchSize: 64, CPUs: 2, Epochs: 1000, Nodes: []string{fmt.Sprint("node-", n/2)},
	}
}

// request sends requests from 64 goroutines.
func (s *scale) request(b *testing.B, requests int) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(requests))
	var all sync.WaitGroup
	for w := range 64 {
		all.Go(func() {
			q := askedAt(w)
			for left.Add(-1) >= 0 {
				ctx, cancel := context.WithTimeout(b.Context(), 10*time.Second)
				var a schemas.Advice
				err := s.log.Request(ctx, schemas.SubjectJobPredict, &q, &a)
				cancel()
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// progress publishes epochs of the running jobs in turn.
func (s *scale) progress(b *testing.B, jobs, epochs, round int) {
	b.Helper()
	for n := range epochs {
		accuracy, job := 0.9, n%jobs
		e := &schemas.Epoch{
			Setting: settingOf(job), NodeCores: 16, Epoch: uint32((round*epochs+n)/jobs) + 1,
			DurationSeconds: 0.6, DurationSource: schemas.DurationReported, Accuracy: &accuracy,
		}
		e.EventID, e.At, e.JobID, e.Run = schemas.EpochID(jobName(job), 1, e.Epoch), time.Now().UTC(), jobName(job), 1
		if _, err := s.log.Publish(within(b, 10*time.Second), e); err != nil {
			b.Fatal(err)
		}
	}
}

// sample publishes samples of a hundred nodes in turn.
func (s *scale) sample(b *testing.B, samples, round int) {
	b.Helper()
	js, err := jetstream.New(dial(b, s.url))
	if err != nil {
		b.Fatal(err)
	}
	for n := range samples {
		put(b, js, fleetSample(fmt.Sprint("boot-", round), fleetNodes, n*10))
	}
	<-js.PublishAsyncComplete()
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
