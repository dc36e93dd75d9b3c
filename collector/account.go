package collector

import (
	"time"

	"courier/schemas"
)

// take turns reports that arrived together into epoch events, with what node
// and job did since the reports before. Epochs that arrived together share it.
func (j *job) take(reports []report) {
	if len(reports) == 0 {
		return
	}
	first, again := j.fresh, j.fresh && j.epochs.begun
	j.fresh = false
	if again && reports[0].epoch+j.epochs.shift <= j.epochs.last {
		j.startedOver(reports[0].epoch)
	}
	taken := j.epochs.add(reports)
	if j.epochs.refused > 0 && !j.warned {
		j.warned = true
		j.screen.say("an epoch is refused: its number repeats or goes back, or no time passed; the newest is %d", j.epochs.last)
	}
	if len(taken) == 0 {
		return
	}
	mark := j.observer.Mark()
	load := Between(j.mark, mark)
	used := j.command.consumed()
	spent := used.since(j.used)
	for _, f := range taken {
		if j.o.Adapt == AdaptControl && f.batch > 0 {
			j.result.Setting.BatchSize = f.batch
		}
		e := j.epoch(f, load, spent, float64(len(taken)))
		j.result.Epochs = append(j.result.Epochs, *e)
		if f.accuracy != nil {
			j.result.Accuracy = f.accuracy
		}
		j.out.add(e)
		j.judge(f, first)
	}
	j.mark, j.used = mark, used
	j.progress.done, j.progress.batchSize = j.epochs.last, j.result.Setting.BatchSize
	j.draw()
	j.stop()
}

// epoch returns the event of one of the epochs that share what was spent.
func (j *job) epoch(f finished, load NodeLoad, s spent, sharers float64) *schemas.Epoch {
	e := &schemas.Epoch{
		JobStamp: j.stamp(schemas.EpochID(j.result.JobID, j.result.Run, f.number)), Setting: j.result.Setting,
		Epoch: f.number, DurationSeconds: f.seconds, DurationSource: f.source, NodeCores: load.Cores, Loss: f.loss, Accuracy: f.accuracy, ValidationSamples: f.samples,
		NodeCPURatio: load.CPURatio, NodeIOWaitRatio: load.IOWaitRatio, NodeLoadAverage: load.LoadAverage,
	}
	s.fill(e, sharers)
	return e
}

// When a job that was not understood is told so.
const (
	hintAfter = 20 * time.Second
	hintLines = 200
)

// hint tells the user once that no epoch was recognised, and what to do.
func (j *job) hint(now time.Time) {
	if j.hinted || j.epochs.begun || j.output.familiar() {
		return
	}
	after := now.Sub(j.started)
	if after < hintAfter && j.output.count < hintLines {
		return
	}
	j.hinted = true
	if j.output.count == 0 {
		j.screen.say("no epoch is recognised after %s: the job has printed nothing", rounded(after))
		return
	}
	j.screen.say("no epoch is recognised after %s and %d lines; the last one is\n  %s\nif its epochs look otherwise than BigDL's or JSON's, say how: --epoch-pattern '%s'\nuntil then the run counts as a whole",
		rounded(after), j.output.count, j.output.last, PatternExample)
}

// draw shows the progress bar as it is now.
func (j *job) draw() {
	if j.command.running() {
		j.screen.draw(j.progress.line(time.Now()))
	}
}

// conclude publishes how the run ended. notStarted is why it never began.
func (j *job) conclude(notStarted error) {
	if notStarted == nil {
		j.carry(j.mover.end("the job ended before"))
	}
	e := &schemas.Ended{Outcome: schemas.EventFinished, Setting: j.result.Setting, Accuracy: j.result.Accuracy}
	if notStarted != nil {
		e.Outcome, e.Reason = schemas.EventFailed, limited(notStarted.Error())
	} else {
		j.result.Ended = j.command.endedAt
		var words string
		j.result.ExitCode, words = exitStatus(j.command.state)
		code := int32(j.result.ExitCode)
		e.ExitCode, e.DurationSeconds = &code, min(j.result.Ended.Sub(j.started).Seconds(), schemas.MaxSLO.Seconds())
		e.EpochsDone, e.StartupSeconds = j.epochs.done, j.epochs.startup
		switch {
		case j.broken != nil:
			e.Outcome, e.Reason = schemas.EventFailed, limited(j.broken.Error())
		case j.result.Cancelled || j.reason != "" && code != 0:
			e.Outcome, e.Reason = schemas.EventCancelled, limited(j.reason)
		case code != 0:
			e.Outcome, e.Reason = schemas.EventFailed, words
		}
		j.result.Cancelled = e.Outcome == schemas.EventCancelled
	}
	e.JobStamp = j.stamp(schemas.EndedID(j.result.JobID, j.result.Run, e.Outcome))
	j.out.add(e)
	j.log.Info("job ended", "job", j.result.JobID, "run", j.result.Run, "outcome", e.Outcome, "epochs", e.EpochsDone, "seconds", e.DurationSeconds)
}

// limited cuts a reason to what an event may hold.
func limited(reason string) string {
	const limit = 4 << 10
	return reason[:min(len(reason), limit)]
}
