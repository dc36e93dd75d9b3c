//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

const (
	loadLanes       = 8
	loadPause       = 8 * time.Millisecond // between two events of a publisher
	runEpochs       = 20                   // epochs of a run
	duplicatePeriod = 50                   // every 50th event is published again later
)

// eventLoad publishes samples and epochs until it is stopped. It repeats each event until it is
// acknowledged, and later publishes duplicates of some events, like the replay of a spool.
type eventLoad struct {
	bus   *bus.Bus
	lanes []*lane
	end   context.CancelFunc
	all   sync.WaitGroup

	mu       sync.Mutex
	sequence map[string]uint64 // last acknowledged sequence by stream
	copies   int
}

// lane is one publisher with its published events.
type lane struct {
	name    string
	samples uint64
	epochs  uint32 // number of epochs of all runs
	ended   uint32 // number of ended runs
	turn    int
	old     []schemas.Event // some published events, for duplicates
}

func startLoad(t *testing.T, url string) *eventLoad {
	t.Helper()
	b := connect(t, url)
	await(t, "the streams", func() bool { return b.Prepare(within(t, oneTry)) == nil })
	ctx, cancel := context.WithCancel(t.Context())
	l := &eventLoad{bus: b, end: cancel, sequence: make(map[string]uint64)}
	for i := range loadLanes {
		a := &lane{name: fmt.Sprintf("lane-%d", i)}
		l.lanes = append(l.lanes, a)
		l.all.Go(func() { l.publish(ctx, t, a) })
	}
	return l
}

// publish publishes the events of a lane. It completes the current event before it ends.
func (l *eventLoad) publish(ctx context.Context, t *testing.T, a *lane) {
	tick := time.NewTicker(loadPause)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil && t.Context().Err() == nil; n++ {
		<-tick.C
		e := a.next()
		if !l.put(t, e) {
			return
		}
		if n%duplicatePeriod != 0 {
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
func (l *eventLoad) put(t *testing.T, e schemas.Event) bool {
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

// next returns the next event: samples, an epoch after every second sample, and the end of each run.
// Samples have timestamps of the last three hours, so that the roll-ups have many rows.
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
func (l *eventLoad) stop() {
	l.end()
	l.all.Wait()
}

// last returns the last acknowledged sequences.
func (l *eventLoad) last() map[string]uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[string]uint64, len(l.sequence))
	for stream, sequence := range l.sequence {
		all[stream] = sequence
	}
	return all
}

// expectedCount is a query with its expected number.
type expectedCount struct {
	what, sql string
	want      uint64
}

// expectedCounts returns queries for the rows and distinct events of each lane.
func (l *eventLoad) expectedCounts() (all []expectedCount) {
	for _, a := range l.lanes {
		for _, q := range []expectedCount{
			{"samples", "FROM node_sample WHERE node = '" + a.name + "'", a.samples},
			{"epochs", "FROM job_epoch WHERE job_id = '" + a.name + "'", uint64(a.epochs)},
			{"ends", "FROM job_ended WHERE job_id = '" + a.name + "'", uint64(a.ended)},
		} {
			all = append(all, expectedCount{
				q.what,
				"SELECT count() AS n " + q.sql,
				q.want,
			}, expectedCount{q.what + " told apart", "SELECT uniqExact(event_id) AS n " + q.sql, q.want})
		}
		all = append(all, expectedCount{
			"samples of the roll-up",
			"SELECT sum(samples) AS n FROM node_hour WHERE node = '" + a.name + "'",
			a.samples,
		},
			expectedCount{
				"epochs of the roll-up",
				"SELECT sum(epochs) AS n FROM job_run WHERE job_id = '" + a.name + "'",
				uint64(a.epochs),
			})
	}
	return all
}

// String describes the published events.
func (l *eventLoad) String() string {
	var samples, epochs uint64
	for _, a := range l.lanes {
		samples, epochs = samples+a.samples, epochs+uint64(a.epochs)
	}
	return fmt.Sprintf("%d samples and %d epochs were acknowledged (%d published again)", samples,
		epochs, l.copies)
}
