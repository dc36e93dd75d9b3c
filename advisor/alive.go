package advisor

import (
	"context"
	"fmt"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

func (a *Advisor) listenAlive(ctx context.Context) error {
	alive := schemas.JobSubject("*", schemas.EventAlive)
	return a.bus.ListenPersons(ctx, []string{alive, schemas.PersonSubject("*", alive)}, a.onAlive)
}

// onAlive records a heartbeat. After the last one of a cancelled job, it plans the CPUs that are freed. It
// ignores a heartbeat that a person sent for another person's job.
func (a *Advisor) onAlive(person string, e schemas.Event) {
	alive := e.(*schemas.Alive)
	if alive.Ended {
		a.advising.Lock()
		defer a.advising.Unlock()
	}
	a.mu.Lock()
	j := a.cluster.Job(alive.JobID)
	if j == nil || person != "" && person != j.Owner() {
		a.mu.Unlock()
		return
	}
	pools := a.poolsOf(a.cluster.HeardAtEnd(j, alive, a.now()))
	a.heardOf(j, alive)
	cause := a.applied
	a.mu.Unlock()
	a.moveCPUs(pools, cause, "/freed")
}

// heardOf records a heartbeat of a job, also of a lost run, which watchSilence then revives. The caller
// holds the lock.
func (a *Advisor) heardOf(j *cluster.Job, alive *schemas.Alive) {
	if alive.Run != j.Run || alive.Ended || j.IsSettled() {
		return
	}
	j.HeardAt(alive.At, a.now())
	if j.State == schemas.StateLost {
		a.heard[j.ID] = j.Run
		return
	}
	j.LastSeen = a.now()
	j.Within = cluster.EpochProgress{EpochProgress: alive.EpochProgress, Run: alive.Run, At: j.LastSeen}
	j.HasHeartbeat = j.HasHeartbeat || j.Run == 0
}

// foundEvents returns the events that revive the lost runs that have sent a heartbeat since the last
// call. The caller holds the lock.
func (a *Advisor) foundEvents(now time.Time) (found []*schemas.Ended) {
	for id, run := range a.heard {
		if j := a.cluster.Job(id); j != nil && j.State == schemas.StateLost && j.Run == run {
			found = append(found, runEvent(j, schemas.EventFound, schemas.FoundID(id, j.Last),
				"its runner sends heartbeats again", now))
		}
	}
	clear(a.heard)
	return found
}

// watchSilence records silent jobs as lost, and lost jobs that send heartbeats as found. It re-predicts
// jobs whose epoch is overdue, or whose first epoch shows its progress. It cancels queued jobs whose
// runner is silent, because they would block the queue. While NATS is unreachable neither heartbeats nor
// events can arrive, so no job is lost.
func (a *Advisor) watchSilence(ctx context.Context) error {
	last := a.now()
	return every(ctx, a.o.Check, func() {
		if a.Ready() != nil {
			return
		}
		isConnected := a.bus.Connected()
		now := a.now()
		a.advising.Lock()
		a.mu.Lock()
		if !isConnected || now.Sub(last) > schemas.Heartbeat {
			a.resetSilence(now)
		}
		within := a.firstEpochQuestions(last, now)
		last = now
		a.metrics.observe(a.cluster, now)
		events := append(a.foundEvents(now), a.silentEvents(now)...)
		overdue := a.overdueQuestions(now)
		a.mu.Unlock()
		for _, q := range overdue {
			a.adviseOverdue(q, now)
		}
		for _, q := range within {
			a.warnInFirstEpoch(q, now)
		}
		a.advising.Unlock()
		for _, e := range events {
			if e.Outcome == schemas.EventLost {
				a.metrics.lost.Inc()
			}
			a.log.Warn("heartbeats of a job", "job_id", e.JobID, "outcome", e.Outcome, "reason", e.Reason)
			a.record(ctx, e)
		}
	})
}

// silentEvents returns the events that end the silent jobs. The caller holds the lock.
func (a *Advisor) silentEvents(now time.Time) (all []*schemas.Ended) {
	for _, j := range a.cluster.Silent(now) {
		if j.State == schemas.StateQueued {
			all = append(all, cancelledEvent(j, "its runner sends no more heartbeats", now))
			continue
		}
		silent := fmt.Sprintf("silent since %s", j.LastSeen.UTC().Format(time.RFC3339))
		all = append(all, runEvent(j, schemas.EventLost, schemas.LostID(j.ID, j.Last), silent, now))
	}
	return all
}

// resetSilence measures the silence of all jobs, and how long their epochs are overdue, from now on:
// heartbeats could not arrive, or have arrived but are not read yet because this process stood still. The
// caller holds the lock.
func (a *Advisor) resetSilence(now time.Time) {
	a.listeningSince = now
	for j := range a.cluster.Running() {
		j.LastSeen = now
	}
	for _, j := range a.cluster.Queue() {
		j.LastSeen = now
	}
	a.cluster.ResetHolds()
}

// record publishes an event of the advisor and waits until it is applied, so that the next request
// sees it.
func (a *Advisor) record(ctx context.Context, e schemas.Event) {
	sequence, err := a.bus.Publish(ctx, e)
	if err != nil {
		a.log.Warn("event not published", "subject", e.Subject(), "error", err)
		return
	}
	a.waitFor(ctx, sequence)
}
