//go:build linux

package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

const (
	loadLanes  = 8
	loadPause  = 8 * time.Millisecond // between two events of a lane
	runEpochs  = 20                   // of one run of a lane's job
	lateCopies = 50                   // one event in so many is published again, later
)

// load publishes samples and epochs until it is stopped. It repeats each event until it is
// acknowledged, and publishes some again afterwards, as the replay of a spool does.
type load struct {
	bus   *bus.Bus
	lanes []*lane
	end   context.CancelFunc
	all   sync.WaitGroup

	mu       sync.Mutex
	sequence map[string]uint64 // last acknowledged, by stream
	copies   int
}

// lane is one publisher with its published events.
type lane struct {
	name    string
	samples uint64
	epochs  uint32 // of all runs
	ended   uint32 // runs
	turn    int
	old     []schemas.Event // some that may be published again
}

func startLoad(t *testing.T, url string) *load {
	t.Helper()
	b, err := bus.Connect(within(t, patience), bus.Options{
		URL:  url,
		Name: t.Name(),
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeBus(b) })
	await(t, "the streams", func() bool { return b.Prepare(within(t, oneTry)) == nil })
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{bus: b, end: cancel, sequence: make(map[string]uint64)}
	for i := range loadLanes {
		a := &lane{name: fmt.Sprintf("lane-%d", i)}
		l.lanes = append(l.lanes, a)
		l.all.Go(func() { l.publish(ctx, t, a) })
	}
	return l
}

// publish publishes the events of a lane. It completes the current event before it ends.
func (l *load) publish(ctx context.Context, t *testing.T, a *lane) {
	tick := time.NewTicker(loadPause)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil && t.Context().Err() == nil; n++ {
		<-tick.C
		e := a.next()
		if !l.put(t, e) {
			return
		}
		if n%lateCopies != 0 {
			continue
		}
		a.old = append(a.old, e)
		if !l.put(t, a.old[rand.IntN(len(a.old))]) {
			return
		}
		l.mu.Lock()
		l.copies++
		l.mu.Unlock()
	}
}

// put publishes one event until it is acknowledged.
func (l *load) put(t *testing.T, e schemas.Event) bool {
	for t.Context().Err() == nil {
		sequence, err := l.bus.Publish(t.Context(), e)
		if err == nil {
			stream := schemas.StreamJob
			if _, ok := e.(*schemas.Sample); ok {
				stream = schemas.StreamNode
			}
			l.mu.Lock()
			l.sequence[stream] = max(l.sequence[stream], sequence)
			l.mu.Unlock()
			return true
		}
	}
	return false
}

// next returns a sample, every third time an epoch, and the end of each run. Samples are of the
// last three hours, so that the roll-ups have many rows.
func (a *lane) next() schemas.Event {
	now := time.Now().UTC()
	stamp := func(run uint32, id string) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: now}, JobID: a.name, Run: run}
	}
	setting := schemas.Setting{
		Model:     "load",
		BatchSize: 16,
		CPUs:      1,
		Epochs:    runEpochs,
		Nodes:     []string{a.name},
	}
	if a.ended < a.epochs/runEpochs {
		a.ended++
		return &schemas.Ended{
			JobStamp: stamp(a.ended,
				schemas.EndedID(a.name, a.ended, schemas.EventFinished)),
			Setting:         setting,
			Outcome:         schemas.EventFinished,
			DurationSeconds: 1,
			EpochsDone:      runEpochs,
		}
	}
	if a.turn++; a.turn%3 == 0 {
		run, epoch := a.epochs/runEpochs+1, a.epochs%runEpochs+1
		a.epochs++
		return &schemas.Epoch{
			JobStamp:        stamp(run, schemas.EpochID(a.name, run, epoch)),
			Setting:         setting,
			Epoch:           epoch,
			DurationSeconds: 0.5,
			DurationSource:  schemas.DurationReported,
		}
	}
	a.samples++
	ratio := float64(a.samples%64) / 64
	return &schemas.Sample{Stamp: schemas.Stamp{
		EventID: schemas.SampleID(a.name, "boot", a.samples),
		At:      now.Add(-time.Duration(a.samples%180) * time.Minute),
	},
		Node:            a.name,
		BootID:          "boot",
		Number:          a.samples,
		IntervalSeconds: 2,
		Cores:           2,
		CPURatio:        &ratio}
}

// stop ends the publishers after all events are acknowledged.
func (l *load) stop() {
	l.end()
	l.all.Wait()
}

// last returns the last acknowledged sequences.
func (l *load) last() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]uint64, len(l.sequence))
	for stream, sequence := range l.sequence {
		all[stream] = sequence
	}
	return all
}

// question is a query with its expected number.
type question struct {
	what, sql string
	want      uint64
}

// questions returns queries for the rows and distinct events of each lane.
func (l *load) questions() (all []question) {
	for _, a := range l.lanes {
		for _, q := range []question{
			{"samples", "FROM node_sample WHERE node = '" + a.name + "'", a.samples},
			{"epochs", "FROM job_epoch WHERE job_id = '" + a.name + "'", uint64(a.epochs)},
			{"ends", "FROM job_ended WHERE job_id = '" + a.name + "'", uint64(a.ended)},
		} {
			all = append(all, question{
				q.what,
				"SELECT count() AS n " + q.sql,
				q.want,
			}, question{q.what + " told apart", "SELECT uniqExact(event_id) AS n " + q.sql, q.want})
		}
		all = append(all, question{
			"samples of the roll-up",
			"SELECT sum(samples) AS n FROM node_hour WHERE node = '" + a.name + "'",
			a.samples,
		},
			question{
				"epochs of the roll-up",
				"SELECT sum(epochs) AS n FROM job_run WHERE job_id = '" + a.name + "'",
				uint64(a.epochs),
			})
	}
	return all
}

// String describes the published events.
func (l *load) String() string {
	var samples, epochs uint64
	for _, a := range l.lanes {
		samples, epochs = samples+a.samples, epochs+uint64(a.epochs)
	}
	return fmt.Sprintf("%d samples and %d epochs were acknowledged (%d published again)", samples,
		epochs, l.copies)
}
