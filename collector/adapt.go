package collector

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// What a run makes of an advised batch size while its command runs.
const (
	AdaptOff     = "off"             // nothing: it is advice only
	AdaptControl = schemas.ByControl // writes it to the control file, which the training reads between epochs
	AdaptRestart = schemas.ByRestart // ends the command after an epoch and starts it again, to go on from its checkpoint
)

// Adapts lists every value of JobOptions.Adapt.
func Adapts() []string { return []string{AdaptOff, AdaptControl, AdaptRestart} }

// controlVariable names the control file in the command's environment.
const controlVariable = "COURIER_CONTROL"

// control is what the control file says: JSON, replaced as a whole.
type control struct {
	BatchSize uint32 `json:"batch_size"` // to train with
	FromEpoch uint32 `json:"from_epoch"` // from the first epoch on that begins and is none before this one, counted from 1
}

// takesBatch reports whether a command has a place for the batch size.
func takesBatch(command []string) bool {
	return slices.ContainsFunc(command, func(a string) bool { return strings.Contains(a, placeholderBatch) })
}

// moves are those that the run can do.
func (j *job) moves() []string {
	if j.o.Adapt == AdaptOff {
		return nil
	}
	return []string{schemas.MoveBatchSize}
}

// adapt prepares what changes the batch size of the running command.
func (j *job) adapt() error {
	s := &j.result.Setting
	means := j.o.Adapt
	if means == AdaptOff {
		means = ""
	}
	j.mover = newMover(means, &j.o.Request, s)
	if j.o.Adapt != AdaptControl {
		return nil
	}
	dir, err := os.MkdirTemp("", "courier-")
	if err != nil {
		return fmt.Errorf("make a place for the control file: %w", err)
	}
	j.control = filepath.Join(dir, "control.json")
	return j.writeControl(control{BatchSize: s.BatchSize, FromEpoch: 1})
}

// writeControl replaces the control file: who reads it sees the old or the new.
func (j *job) writeControl(c control) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	next := j.control + ".next"
	if err = os.WriteFile(next, append(text, '\n'), 0o600); err == nil {
		err = os.Rename(next, j.control)
	}
	if err != nil {
		return fmt.Errorf("write the control file: %w", err)
	}
	return nil
}

// dropControl removes the control file and its folder.
func (j *job) dropControl() {
	if j.control == "" {
		return
	}
	if err := os.RemoveAll(filepath.Dir(j.control)); err != nil {
		j.log.Warn("control file is left", "path", j.control, "error", err)
	}
}

// heed lets an advice change the batch size, if it is of this run.
func (j *job) heed(a *schemas.Advice, now time.Time) {
	if a.JobID != j.result.JobID || a.Run != j.result.Run || j.result.Cancelled || j.stopping {
		return
	}
	before := j.result.Setting.BatchSize
	s := j.mover.advise(a, now, now.Sub(j.epochs.lastAt), j.epochs.startup)
	if asked := j.mover.asked; s.batch > 0 && asked != nil {
		j.screen.say("batch size %d instead of %d from the next epoch on: %s instead of %s to the end", s.batch, before, durationText(asked.predicted), durationText(asked.unmoved))
	} else if s.batch > 0 {
		j.screen.say("batch size %d stays: the advice is taken back", s.batch)
	}
	j.carry(s)
}

// judge tells the mover of an epoch. The first one since the command was started
// contains the start-up where it was timed by its arrival.
func (j *job) judge(f finished, first bool) {
	seconds := f.seconds
	if first && f.source == schemas.DurationArrival {
		seconds = 0
	}
	j.carry(j.mover.epoch(f.number, j.result.Setting.BatchSize, seconds, time.Now()))
}

// carry does what the mover decided.
func (j *job) carry(s step) {
	if s.moved != nil {
		j.tell(s.moved)
	}
	if s.batch == 0 || j.o.Adapt != AdaptControl {
		return // a restart waits for the end of the epoch
	}
	if err := j.writeControl(control{BatchSize: s.batch, FromEpoch: j.epochs.last + 1}); err != nil {
		j.log.Warn("batch size is not changed", "error", err)
		j.carry(step{moved: j.mover.end(err.Error()).moved})
	}
}

// tell publishes what became of a move, and says so where the user should know.
func (j *job) tell(e *schemas.Moved) {
	number := uint32(len(j.result.Moves) + 1)
	e.JobStamp, e.Reason = j.stamp(schemas.MovedID(j.result.JobID, j.result.Run, number)), limited(e.Reason)
	j.result.Moves = append(j.result.Moves, *e)
	j.out.add(e)
	switch e.Outcome {
	case schemas.MoveRefused:
		j.screen.say("batch size %d is not taken: %s", e.ToBatchSize, oneLine(e.Reason))
	case schemas.MoveUndone:
		j.screen.say("back to batch size %d: %s", e.FromBatchSize, oneLine(e.Reason))
	}
}

// stop ends the command where a move waits for its restart. It is called when
// an epoch has ended.
func (j *job) stop() {
	asked := j.mover.asked
	if j.o.Adapt != AdaptRestart || asked == nil || j.stopping || j.result.Cancelled || !j.command.running() {
		return
	}
	if all := j.result.Setting.Epochs; all > 0 && j.epochs.last >= all {
		return
	}
	j.stopping = true
	j.terminate()
}

// again starts a command again that was stopped for it, and reports whether it
// runs. What the old one printed last is read first.
func (j *job) again() bool {
	if !j.stopping || j.result.Cancelled {
		return false
	}
	j.take(j.output.close(time.Now()))
	s := &j.result.Setting
	if s.Epochs > 0 && j.epochs.last >= s.Epochs && j.command.state.Success() {
		return false // it did all that was left before it ended
	}
	j.command.close()
	j.output, j.stopping = j.output.again(), false
	if asked := j.mover.asked; asked != nil {
		s.BatchSize = asked.to
	}
	if err := j.launch(j.epochs.last); err != nil {
		j.broken = fmt.Errorf("start the command again with batch size %d: %w", s.BatchSize, err)
		j.screen.say("%s", oneLine(j.broken.Error()))
		j.carry(j.mover.end(j.broken.Error()))
		return false
	}
	j.epochs.lastAt, j.progress.batchSize = time.Now(), s.BatchSize
	j.log.Info("job started again", "job", j.result.JobID, "run", j.result.Run, "batch_size", s.BatchSize, "epochs_done", j.epochs.last)
	return true
}

// startedOver gives up changing a command that does not go on from a checkpoint.
func (j *job) startedOver(epoch uint32) {
	j.screen.say("the command began anew with epoch %d when it was started again: its epochs count from %d on; it must go on after {epoch}", epoch, j.epochs.last+1)
	j.carry(j.mover.end(fmt.Sprintf("started again, the command began anew with epoch %d instead of going on after %d", epoch, j.epochs.last)))
}
