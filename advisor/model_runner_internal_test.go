package advisor

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"courier/runner"
	"courier/schemas"
)

// modelRunner runs one job as courier run does. It stops, wherever it is, when it is killed.
type modelRunner struct {
	m       *model
	bus     *modelBus
	request schemas.JobRequest
	node    *modelNode
	stops   bool // the job stops when it is lost

	offset       time.Duration // of the clock of its node when it started
	epochSeconds int

	mu         sync.Mutex
	contact    runner.Contact
	isAdmitted bool // the CPUs were granted
	hasClaimed bool // the log has recorded its start
	isSilent   bool // it was, for longer than schemas.Silence
	isWaiting  bool // in the queue
	computes   bool // the command runs
	isDone     bool
	setting    schemas.Setting
	unsent     []schemas.Event // spooled
}

// modelNode has a clock, and a disk that may be full.
type modelNode struct {
	name   string
	offset time.Duration // of its clock
	isFull atomic.Bool
}

func (n *modelNode) now() time.Time { return time.Now().Add(n.offset).UTC() }

// wait waits for one second, and longer if the runner is paused. It returns false if the runner was killed.
func (r *modelRunner) wait() bool {
	<-time.After(time.Second)
	return r.bus.runs()
}

func (r *modelRunner) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *modelRunner) run() {
	defer r.set(func() { r.isDone, r.computes, r.isWaiting = true, false, false })
	advice := r.submit()
	if advice == nil || advice.Chosen == nil || advice.Admission.Verdict == schemas.Refused {
		return
	}
	r.set(func() { r.contact.Arrived(time.Now()) })
	if advice.Admission.Verdict == schemas.Queued {
		if advice = r.awaitAdmission(); advice == nil {
			return
		}
	}
	if !r.mayRun() {
		return
	}
	r.set(func() {
		r.isAdmitted = true
		r.setting = schemas.Setting{
			Model: r.request.Model, BatchSize: advice.Chosen.BatchSize, CPUs: advice.Chosen.CPUs,
			Epochs: advice.Chosen.Epochs, Nodes: []string{r.node.name},
		}
	})
	if r.checkContact(); r.is(&r.isSilent) && r.stops || !r.start() {
		return
	}
	r.compute()
}

// mayRun reports whether the job has not started yet.
func (r *modelRunner) mayRun() bool {
	reply, err := r.m.ask(r, func(ctx context.Context, a *Advisor) (any, error) {
		return a.status(ctx, &schemas.JobStatusRequest{JobID: r.request.JobID})
	})
	if s, ok := reply.(schemas.JobStatus); ok && err == nil {
		return s.State == schemas.StateSubmitted || s.State == schemas.StateQueued
	}
	return errors.Is(err, schemas.ErrNotFound)
}

// submit submits the job until it gets an answer.
func (r *modelRunner) submit() *schemas.Advice {
	for range 4 {
		reply, err := r.m.ask(r, func(ctx context.Context, a *Advisor) (any, error) {
			q := r.request
			return a.personSubmit(ctx, "ada", &q)
		})
		if advice, ok := reply.(*schemas.Advice); ok && err == nil {
			r.m.answered(advice)
			return advice
		}
		if !errors.Is(err, schemas.ErrUnavailable) || !r.wait() {
			return nil
		}
	}
	return nil
}

func (r *modelRunner) stamp(id string) schemas.JobStamp {
	at := time.Now().Add(r.offset).UTC()
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: r.request.JobID, Run: 1}
}

// beat sends a heartbeat in the background.
func (r *modelRunner) beat() {
	sentAt, alive := time.Now(), &schemas.Alive{JobStamp: r.stamp(r.request.JobID + "/1/alive/1")}
	if r.is(&r.isWaiting) {
		alive.Run = 0
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), schemas.Heartbeat)
		defer cancel()
		if r.bus.notify(ctx, alive) != nil {
			return
		}
		r.set(func() {
			if r.contact.Arrived(sentAt) > 0 {
				r.isSilent = true
				r.computes = r.computes && !r.stops
			}
		})
	}()
}

// checkContact stops the job, or notes that it goes on without a right to its CPUs, if it is silent.
func (r *modelRunner) checkContact() {
	r.set(func() {
		if r.contact.BecomesSilent(time.Now()) {
			r.isSilent = true
			r.computes = r.computes && !r.stops
		}
	})
}

// awaitAdmission waits in the queue. It returns nil if the job is cancelled.
func (r *modelRunner) awaitAdmission() *schemas.Advice {
	r.set(func() { r.isWaiting = true })
	defer r.set(func() { r.isWaiting = false })
	for second := 0; ; second++ {
		if second%10 == 0 {
			r.beat()
		}
		if !r.wait() {
			return nil
		}
		if r.bus.is(&r.bus.isCut) {
			continue
		}
		switch e := r.m.lastOf(r.request.JobID, schemas.EventAdmitted, schemas.EventCancelled).(type) {
		case *schemas.JobAdmitted:
			return &e.Advice
		case *schemas.Ended:
			return nil
		}
	}
}

// start claims the run. If the log is unreachable, the job starts nevertheless.
func (r *modelRunner) start() bool {
	started := &schemas.Started{
		JobStamp: r.stamp(schemas.StartedID(r.request.JobID, 1)), Setting: r.setting, HeartbeatSeconds: 10,
	}
	_, err := r.m.ask(r, func(ctx context.Context, a *Advisor) (any, error) {
		e := *started
		return a.personEvent(ctx, "ada", &e)
	})
	if err != nil && !errors.Is(err, schemas.ErrUnavailable) || !r.bus.runs() {
		return false
	}
	r.set(func() { r.hasClaimed, r.computes = err == nil, true })
	if err != nil {
		r.spool(started)
	}
	return true
}

// spool keeps an event until it is published. On a full disk, in a partition, it is lost.
func (r *modelRunner) spool(e schemas.Event) {
	r.set(func() {
		if !r.node.isFull.Load() || !r.bus.is(&r.bus.isCut) {
			r.unsent = append(r.unsent, e)
		}
	})
}

// flush publishes spooled events in their order, as far as it gets an acknowledgement.
func (r *modelRunner) flush() {
	for {
		r.mu.Lock()
		unsent := slices.Clone(r.unsent)
		r.mu.Unlock()
		if len(unsent) == 0 {
			return
		}
		if _, err := r.bus.Publish(context.Background(), unsent[0]); err != nil {
			return
		}
		r.m.acknowledged(unsent[0])
		r.set(func() { r.unsent = r.unsent[1:] })
	}
}

// compute trains, reports its epochs and sends heartbeats, until it ends.
func (r *modelRunner) compute() {
	seconds, epochs := 0, uint32(0)
	flushed := make(chan struct{}, 1)
	flushed <- struct{}{}
	for epochs < r.setting.Epochs {
		if seconds%10 == 0 {
			r.beat()
		}
		if !r.wait() {
			return
		}
		if seconds++; seconds%r.epochSeconds == 0 {
			epochs++
			r.spool(&schemas.Epoch{
				JobStamp: r.stamp(schemas.EpochID(r.request.JobID, 1, epochs)), Setting: r.setting, Epoch: epochs,
				DurationSeconds: float64(r.epochSeconds), DurationSource: schemas.DurationReported,
			})
		}
		select {
		case <-flushed:
			go func() { r.flush(); flushed <- struct{}{} }()
		default:
		}
		if r.checkContact(); !r.is(&r.computes) || r.isCancelled() {
			break
		}
	}
	outcome := schemas.EventFinished
	if epochs < r.setting.Epochs {
		outcome = schemas.EventFailed
	}
	r.spool(&schemas.Ended{
		JobStamp: r.stamp(schemas.EndedID(r.request.JobID, 1, outcome)), Setting: r.setting, Outcome: outcome,
		EpochsDone: epochs,
	})
	r.set(func() { r.computes = false })
	for <-flushed; r.wait(); {
		if r.flush(); len(r.unsent) == 0 {
			return
		}
	}
}

// is returns a field that mu guards.
func (r *modelRunner) is(field *bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *field
}

func (r *modelRunner) isCancelled() bool {
	return !r.bus.is(&r.bus.isCut) && r.m.lastOf(r.request.JobID, schemas.EventCancelled) != nil
}

// holds returns the CPUs that were granted to the job and that it uses. A job that goes on when it is lost
// has no right to them any more,
// nor has a cancelled one.
func (r *modelRunner) holds() uint32 {
	if r.m.lastOf(r.request.JobID, schemas.EventCancelled) != nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.computes || !r.isAdmitted || r.bus.is(&r.bus.isPaused) || !r.stops && r.isSilent {
		return 0
	}
	return r.setting.CPUs
}
