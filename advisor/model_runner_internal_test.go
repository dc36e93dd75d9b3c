package advisor

import (
	"context"
	"errors"
	"time"

	"courier/runner"
	"courier/schemas"
)

// modelRunner runs one job as courier run does, but does not submit it again if it reads the admission too
// late. It stops, wherever it is, when it is killed. It holds the lock of the log except while it waits.
type modelRunner struct {
	m            *model
	bus          *modelBus
	request      schemas.JobRequest
	node         *modelNode
	stops        bool          // the job stops when it is lost
	offset       time.Duration // of the clock of its node when it started
	epochSeconds int

	contact     runner.Contact
	beatAt      time.Time // of the last heartbeat
	isAdmitted  bool      // the CPUs were granted
	hasClaimed  bool      // the log has recorded its start
	isSilent    bool      // it was, for longer than schemas.Silence
	isWaiting   bool      // in the queue
	isUnstarted bool      // its heartbeats have no number of a run
	computes    bool      // the command runs
	isDone      bool
	setting     schemas.Setting
	unsent      []schemas.Event // spooled
	isFlushing  bool
}

// modelNode has a clock, and a disk that may be full.
type modelNode struct {
	name   string
	offset time.Duration // of its clock
	isFull bool
}

// wait waits for one second, and longer if the runner is paused. It returns false if the runner was killed.
func (r *modelRunner) wait() (isAlive bool) {
	r.m.unlocked(func() {
		<-time.After(time.Second)
		isAlive = r.bus.runs()
	})
	return isAlive
}

// do sends a request of the runner to an advisor.
func (r *modelRunner) do(request func(context.Context, *Advisor) (any, error)) (reply any, err error) {
	r.m.unlocked(func() { reply, err = r.m.ask(r, request) })
	return reply, err
}

func (r *modelRunner) run() {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	r.train(r.admitted())
	r.computes = false
	for len(r.unsent) > 0 && r.wait() {
		r.flush()
	}
	r.isDone = true
}

// admitted submits the job and waits until it may start. It returns nil if it may not.
func (r *modelRunner) admitted() *schemas.Advice {
	advice := r.submit()
	if advice == nil || advice.Chosen == nil || advice.Admission.Verdict == schemas.Refused {
		return nil
	}
	r.contact.Arrived(time.Now())
	r.isUnstarted = true
	defer func() { r.isUnstarted = false }()
	if r.beat(); advice.Admission.Verdict == schemas.Queued {
		r.isWaiting = true
		advice = r.awaitAdmission()
		r.isWaiting = false
	}
	if advice == nil || !r.mayRun() {
		r.sendLast()
		return nil
	}
	return advice
}

// mayRun reports whether the job has not started yet.
func (r *modelRunner) mayRun() bool {
	s, err := r.status()
	return errors.Is(err, schemas.ErrNotFound) || s.State == schemas.StateSubmitted || s.State == schemas.StateQueued
}

func (r *modelRunner) status() (schemas.JobStatus, error) {
	reply, err := r.do(func(ctx context.Context, a *Advisor) (any, error) {
		return a.status(ctx, &schemas.JobStatusRequest{JobID: r.request.JobID})
	})
	s, _ := reply.(schemas.JobStatus)
	return s, err
}

// submit submits the job until it gets an answer.
func (r *modelRunner) submit() *schemas.Advice {
	for range 4 {
		reply, err := r.do(func(ctx context.Context, a *Advisor) (any, error) {
			return a.personSubmit(ctx, "ada", new(r.request))
		})
		if advice, ok := reply.(*schemas.Advice); ok && err == nil {
			r.m.answers[advice.JobID] = advice
			return advice
		}
		if !errors.Is(err, schemas.ErrUnavailable) || !r.wait() {
			return nil
		}
	}
	return nil
}

// minReserved is for how long the CPUs of a job must be reserved when it starts.
const minReserved = 40 * time.Second

// awaitAdmission waits in the queue. It returns nil if the job is cancelled, or if its CPUs are not reserved any
// more when it reads the admission.
func (r *modelRunner) awaitAdmission() *schemas.Advice {
	for {
		if r.beat(); !r.wait() {
			return nil
		}
		switch e := r.seen(schemas.EventAdmitted, schemas.EventCancelled).(type) {
		case *schemas.JobAdmitted:
			asked := time.Now()
			s, err := r.status()
			left := s.ReservedSeconds - time.Since(asked).Seconds()
			switch {
			case err != nil || s.State == schemas.StateQueued: // asked again
			case s.State != schemas.StateSubmitted || left < minReserved.Seconds():
				return nil
			default:
				return &e.Advice
			}
		case *schemas.Ended:
			return nil
		}
	}
}

// seen returns the last event of the job of some kinds, or nil in a partition.
func (r *modelRunner) seen(events ...string) schemas.Event {
	if r.bus.has[isCut] {
		return nil
	}
	return r.m.lastOf(r.request.JobID, events...)
}

func (r *modelRunner) stamp(id string) schemas.JobStamp {
	at := time.Now().Add(r.offset).UTC()
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: r.request.JobID, Run: 1}
}

// beat sends a heartbeat in the background to all advisors that it reaches, if one is due.
func (r *modelRunner) beat() {
	if time.Since(r.beatAt) < schemas.Heartbeat {
		return
	}
	r.beatAt = time.Now()
	r.send(&schemas.Alive{JobStamp: r.stamp(r.request.JobID + "/1/alive/1")})
}

// sendLast reports that the command has ended, or will not start.
func (r *modelRunner) sendLast() {
	r.computes = false
	r.send(&schemas.Alive{JobStamp: r.stamp(r.request.JobID + "/1/alive/last"), Ended: true})
}

func (r *modelRunner) send(alive *schemas.Alive) {
	sentAt := time.Now()
	if r.isUnstarted {
		alive.Run = 0
	}
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), schemas.Heartbeat)
		defer cancel()
		if r.bus.pass(ctx) != nil {
			return
		}
		r.m.mu.Lock()
		defer r.m.mu.Unlock()
		for _, a := range r.m.advisors {
			if a.bus.has[isCut] {
				continue
			}
			go func() {
				if a.bus.runs() {
					a.onAlive("", alive)
				}
			}()
		}
		if r.contact.Arrived(sentAt) > 0 && !r.isWaiting {
			r.becomeSilent()
		}
	}()
}

// checkContact stops the job, or notes that it goes on without a right to its CPUs, if it is silent.
func (r *modelRunner) checkContact() {
	if r.contact.BecomesSilent(time.Now()) {
		r.becomeSilent()
	}
}

func (r *modelRunner) becomeSilent() { r.isSilent, r.computes = true, r.computes && !r.stops }

// start claims the run. If the log is unreachable, the job starts nevertheless.
func (r *modelRunner) start() bool {
	started := &schemas.Started{
		JobStamp: r.stamp(schemas.StartedID(r.request.JobID, 1)), Setting: r.setting, HeartbeatSeconds: 10,
	}
	_, err := r.do(func(ctx context.Context, a *Advisor) (any, error) {
		return a.personEvent(ctx, "ada", new(*started))
	})
	if err != nil && !errors.Is(err, schemas.ErrUnavailable) || r.bus.has[isKilled] {
		return false
	}
	r.hasClaimed, r.computes = err == nil, true
	if err != nil {
		r.spool(started)
	}
	return true
}

// spool keeps an event until it is published. On a full disk, in a partition, it is lost.
func (r *modelRunner) spool(e schemas.Event) {
	if !r.node.isFull || !r.bus.has[isCut] {
		r.unsent = append(r.unsent, e)
	}
}

// flush publishes spooled events in their order, as far as it gets an acknowledgement.
func (r *modelRunner) flush() {
	for len(r.unsent) > 0 && !r.isFlushing {
		first, err := r.unsent[0], error(nil)
		r.isFlushing = true
		r.m.unlocked(func() { _, err = r.bus.Publish(context.Background(), first) })
		if r.isFlushing = false; err != nil {
			return
		}
		r.m.known, r.unsent = append(r.m.known, first), r.unsent[1:]
	}
}

// train runs an admitted job: it reports its epochs and sends heartbeats, until it ends.
func (r *modelRunner) train(advice *schemas.Advice) {
	if advice == nil {
		return
	}
	r.isAdmitted = true
	r.setting = schemas.Setting{
		Model: r.request.Model, BatchSize: advice.Chosen.BatchSize, CPUs: advice.Chosen.CPUs,
		Epochs: advice.Chosen.Epochs, Nodes: []string{r.node.name},
	}
	if r.checkContact(); r.isSilent && r.stops || !r.start() {
		return
	}
	seconds, epochs := 0, uint32(0)
	for epochs < r.setting.Epochs && r.computes && r.seen(schemas.EventCancelled) == nil {
		if r.beat(); !r.wait() {
			return
		}
		if seconds++; seconds%r.epochSeconds == 0 {
			epochs++
			r.spool(&schemas.Epoch{
				JobStamp: r.stamp(schemas.EpochID(r.request.JobID, 1, epochs)), Setting: r.setting, Epoch: epochs,
				DurationSeconds: float64(r.epochSeconds), DurationSource: schemas.DurationReported,
			})
		}
		go r.m.locked(r.flush)
		r.checkContact()
	}
	outcome := schemas.EventFinished
	if epochs < r.setting.Epochs {
		outcome = schemas.EventFailed
	}
	r.spool(&schemas.Ended{
		JobStamp: r.stamp(schemas.EndedID(r.request.JobID, 1, outcome)), Setting: r.setting, Outcome: outcome,
		EpochsDone: epochs,
	})
	r.sendLast()
}

// holds returns the CPUs that were granted to the job and that it uses. A job that goes on when it is lost
// has no right to them any more.
func (r *modelRunner) holds() uint32 {
	if !r.computes || !r.isAdmitted || r.bus.has[isPaused] || !r.stops && r.isSilent {
		return 0
	}
	return r.setting.CPUs
}
