package runner

import (
	"context"
	"fmt"
	"time"

	"courier/schemas"
)

// Contact is what a job knows about its heartbeats. The advisor counts it as lost schemas.LostAfter after
// the last one, and gives its CPUs to others. A job that stops for that reason does so after
// schemas.Silence, so that it has ended before.
type Contact struct {
	lastAt   time.Time // when the last heartbeat that arrived was sent; zero: none arrived
	isSilent bool      // for longer than schemas.Silence
	sent     int       // heartbeats
}

// Arrived records a heartbeat. It returns for how long there was none if that was longer than
// schemas.Silence, otherwise 0.
func (c *Contact) Arrived(sentAt time.Time) (silent time.Duration) {
	if !c.lastAt.IsZero() && sentAt.Sub(c.lastAt) > schemas.Silence {
		silent = sentAt.Sub(c.lastAt)
	}
	c.lastAt, c.isSilent = sentAt, false
	return silent
}

// BecomesSilent reports whether no heartbeat has arrived for schemas.Silence, once each time. It is false
// until the first one has arrived, or CPUs were reserved: a job that nobody knows holds nothing.
func (c *Contact) BecomesSilent(now time.Time) bool {
	if c.isSilent || c.lastAt.IsZero() || now.Sub(c.lastAt) <= schemas.Silence {
		return false
	}
	c.isSilent = true
	return true
}

// sendHeartbeat sends a heartbeat in the background.
func (j *job) sendHeartbeat(ctx context.Context) {
	j.contact.sent++
	id := fmt.Sprintf("%s/%d/alive/%d", j.result.JobID, j.result.Run, j.contact.sent)
	j.conn.beat(ctx, &schemas.Alive{JobStamp: j.stamp(id), EpochProgress: j.epochProgress(time.Now())})
}

// sendLastHeartbeat reports that the command has ended, or will not start. A cancelled job holds its CPUs
// until then, and for schemas.LostAfter if this message does not arrive.
func (j *job) sendLastHeartbeat() {
	b := j.conn.live()
	if b == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), claimTimeout)
	defer cancel()
	id := fmt.Sprintf("%s/%d/alive/last", j.result.JobID, j.result.Run)
	if err := b.Notify(ctx, &schemas.Alive{JobStamp: j.stamp(id), Ended: true}); err != nil {
		j.log.Debug("last heartbeat not sent", "error", err)
	}
}

// epochProgress returns the progress within the running epoch.
func (j *job) epochProgress(now time.Time) (p schemas.EpochProgress) {
	ratio, seconds := j.merge.Progress(now)
	if epochs := j.result.Setting.Epochs; ratio > 0 && seconds <= schemas.MaxSLO.Seconds() &&
		(epochs == 0 || j.epochs.last < epochs) {
		p.RunningEpoch, p.EpochRatio, p.EpochSeconds = j.epochs.last+1, ratio, seconds
	}
	return p
}

// heartbeatArrived takes the time of a heartbeat that arrived. After a pause of this process it may be
// known before checkContact has noticed the silence.
func (j *job) heartbeatArrived(sentAt time.Time) {
	silent := j.contact.Arrived(sentAt)
	switch {
	case silent == 0:
	case j.o.StopWhenLost:
		j.cancel(silence(silent))
	default:
		j.screen.message("NATS has the job's heartbeats again, after %s", schemas.FormatSeconds(silent.Seconds()))
	}
}

// checkContact stops the job, or informs the user, if its heartbeats do not arrive.
func (j *job) checkContact(now time.Time) {
	if !j.contact.BecomesSilent(now) {
		return
	}
	silent := now.Sub(j.contact.lastAt)
	if j.o.StopWhenLost {
		j.cancel(silence(silent))
		return
	}
	j.screen.message("%s: the job goes on; after %s it counts as lost, until one arrives",
		silence(silent), schemas.FormatSeconds(schemas.LostAfter.Seconds()))
}

func silence(d time.Duration) string {
	return fmt.Sprintf("no heartbeat has reached NATS for %s", schemas.FormatSeconds(d.Seconds()))
}
