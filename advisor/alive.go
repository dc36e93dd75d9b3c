package advisor

import (
	"context"
	"fmt"
	"time"

	"courier/schemas"
)

func (a *Advisor) listenAlive(ctx context.Context) error {
	alive := schemas.JobSubject("*", schemas.EventAlive)
	return a.bus.ListenPersons(ctx, []string{alive, schemas.PersonSubject("*", alive)}, a.onAlive)
}

// onAlive records a heartbeat. It ignores a heartbeat that a person sent for another person's job.
func (a *Advisor) onAlive(person string, e schemas.Event) {
	alive := e.(*schemas.Alive)
	if owner, known, _ := a.owner(alive.JobID); !known || person != "" && person != owner {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if j := a.cluster.Live(alive.JobID); j != nil &&
		alive.Run == j.Run { // owner releases the lock, so the job may have been packed
		j.LastSeen = time.Now()
		j.HasHeartbeat = j.HasHeartbeat || j.State == schemas.StateQueued
	}
}

// watchSilence records silent jobs as lost. It cancels queued jobs whose runner is silent, because they
// would block the queue. While NATS is unreachable neither heartbeats nor events can arrive, so no job is
// lost.
func (a *Advisor) watchSilence(ctx context.Context) error {
	tick := time.NewTicker(a.o.Check)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if a.Ready() != nil {
			continue
		}
		now := time.Now().UTC()
		a.mu.Lock()
		if !a.bus.Connected() {
			for j := range a.cluster.Running() {
				j.LastSeen = now
			}
			for _, j := range a.cluster.Queue() {
				j.LastSeen = now
			}
		}
		a.metrics.observe(a.cluster, now)
		var lost []*schemas.Ended
		for _, j := range a.cluster.Silent(now) {
			if j.State == schemas.StateQueued {
				lost = append(lost, cancelledEvent(j, "its runner sends no more heartbeats", now))
				continue
			}
			e := &schemas.Ended{
				Outcome:    schemas.EventLost,
				Setting:    j.Setting,
				EpochsDone: j.EpochsDone,
				Reason:     fmt.Sprintf("silent since %s", j.LastSeen.UTC().Format(time.RFC3339)),
			}
			e.JobStamp = schemas.JobStamp{
				Stamp: schemas.Stamp{EventID: schemas.LostID(j.ID, j.Last), At: now},
				JobID: j.ID,
				Run:   j.Run,
			}
			lost = append(lost, e)
		}
		a.mu.Unlock()
		for _, e := range lost {
			if e.Outcome == schemas.EventLost {
				a.metrics.lost.Inc()
			}
			a.log.Warn("job is silent", "job_id", e.JobID, "outcome", e.Outcome, "reason", e.Reason)
			a.record(ctx, e)
		}
	}
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
