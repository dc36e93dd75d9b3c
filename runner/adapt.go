package runner

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"courier/schemas"
)

// controlVariable is the environment variable with the path of the control file.
const controlVariable = "COURIER_CONTROL"

// controlFile is the content of the control file. The file is replaced as a whole after each epoch
// and each change.
type controlFile struct {
	BatchSize uint32 `json:"batch_size"`
	FromEpoch uint32 `json:"from_epoch"` // first epoch with these values, from 1

	// Number of CPUs that the training should use; 0: the training keeps its own.
	CPUs uint32 `json:"cpus,omitempty"`
	// Number of data loaders of each worker that the training should use; 0: none, or its own.
	Loaders uint32 `json:"loaders,omitempty"`

	// Probability that one more epoch, with its checkpoint, ends before DeadlineAt; nil: unknown.
	NextEpochProbability *float64   `json:"next_epoch_probability,omitempty"`
	DeadlineAt           *time.Time `json:"deadline_at,omitempty"` // of the SLO or Slurm's time limit
	Stop                 bool       `json:"stop,omitempty"`        // the job should end now
}

// supportedMoves returns the moves that the run can carry out.
func (j *job) supportedMoves() []string {
	var moves []string
	if j.o.Adapt != AdaptOff {
		moves = append(moves, schemas.MoveBatchSize)
	}
	for _, of := range []*adaptation{j.sharing, j.loading} {
		if of.means != "" {
			moves = append(moves, of.kind)
		}
	}
	return moves
}

// startAdaptation prepares changes of the batch size, and writes the first control file. A job that
// does not need the file starts without it.
func (j *job) startAdaptation() error {
	s := &j.result.Setting
	means := j.o.Adapt
	if means == AdaptOff {
		means = ""
	}
	j.adaptation = newAdaptation(batchSizeMoves, means, j.o.Request.WithDefaults().BatchSizes, s)
	if len(j.o.Request.Loaders) < 2 {
		means = ""
	}
	j.loading = newAdaptation(loaderMoves, means, j.o.Request.Loaders, s)
	j.startSharing()
	j.control = controlFile{BatchSize: s.BatchSize, Loaders: s.Loaders, FromEpoch: 1}
	movesByControl := j.o.Adapt == AdaptControl || j.sharing.means == schemas.ByControl
	if j.sharing.means == schemas.ByControl {
		j.control.CPUs = s.CPUs
	}
	if j.directory == nil {
		if movesByControl || j.o.StopWhenLate == StopControl {
			return fmt.Errorf("no control file: %w", j.directoryErr)
		}
		return nil
	}
	j.controlPath = filepath.Join(j.directory.path, "control.json")
	return j.writeControlFile()
}

// writeControlFile replaces the control file atomically.
func (j *job) writeControlFile() error {
	text, err := json.Marshal(j.control)
	if err != nil {
		return err
	}
	next := j.controlPath + ".next"
	if err = os.WriteFile(next, append(text, '\n'), 0o600); err == nil {
		err = os.Rename(next, j.controlPath)
	}
	if err != nil {
		return fmt.Errorf("write the control file: %w", err)
	}
	return nil
}

// applyAdvice lets advice for this run change the batch size, the CPUs or the data loaders.
func (j *job) applyAdvice(a *schemas.Advice, now time.Time) {
	isOfThisRun := a.JobID == j.result.JobID && a.Run == j.result.Run
	if !isOfThisRun || j.result.Cancelled || j.isRestarting {
		return
	}
	elapsed := now.Sub(j.epochs.lastAt)
	for _, of := range j.adaptations() {
		current := of.current
		s := of.addAdvice(a, now, elapsed, j.epochs.startupSeconds)
		requested := of.requested
		j.perform(of, s) // before the message, after which the next epoch may begin
		switch {
		case s.value == 0 || of.requested != requested: // nothing changes, or the change failed
		case requested != nil:
			j.screen.message("changing the %s from %d to %d at the next epoch: "+
				"predicted remaining time %s instead of %s",
				of.name, current, s.value,
				schemas.OptionalSeconds(requested.PredictedSeconds), schemas.OptionalSeconds(requested.UnmovedSeconds))
		default:
			j.screen.message("keeping %s %d: the advice was withdrawn", of.name, s.value)
		}
	}
}

// assessEpoch lets an epoch, of a duration or 0, confirm or undo a change.
func (j *job) assessEpoch(f finishedEpoch, seconds float64) {
	now := time.Now()
	for _, of := range j.adaptations() {
		j.perform(of, of.addEpoch(f.Epoch, *of.setting(&j.result.Setting), seconds, now))
	}
}

// adaptations returns those of the batch size, the CPUs and the data loaders.
func (j *job) adaptations() []*adaptation { return []*adaptation{j.adaptation, j.sharing, j.loading} }

// perform carries out a decision of an adaptation. It changes the control file before the message, after
// which the next epoch may begin.
func (j *job) perform(of *adaptation, s adaptationStep) {
	if s.value != 0 && of.means == schemas.ByControl { // otherwise it waits for the end of the epoch
		j.control.FromEpoch = j.epochs.last + 1
		*of.control(&j.control) = s.value
		if err := j.writeControlFile(); err != nil {
			j.log.Warn("control file not changed", "move", of.kind, "error", err)
			j.perform(of, adaptationStep{moved: of.end(err.Error()).moved})
		}
	}
	if s.moved != nil {
		j.publishMove(s.moved)
	}
}

// publishMove publishes the outcome of a move, and informs the user if it was not kept.
func (j *job) publishMove(e *schemas.Moved) {
	number := uint32(len(j.result.Moves) + 1)
	e.JobStamp = j.stamp(schemas.MovedID(j.result.JobID, j.result.Run, number))
	e.Reason = truncateReason(e.Reason)
	j.result.Moves = append(j.result.Moves, *e)
	j.out.Add(e)
	switch from, to := moveTexts(e); e.Outcome {
	case schemas.MoveRefused:
		j.screen.message("%s rejected: %s", to, schemas.OneLine(e.Reason))
	case schemas.MoveDryRun:
		j.screen.message("%s would be changed to %s, but moves are not turned on", from, to)
	case schemas.MoveUndone:
		j.screen.message("returning to %s: %s", from, schemas.OneLine(e.Reason))
	}
}

// moveTexts returns what a move changes and to what, for a message.
func moveTexts(e *schemas.Moved) (from, to string) {
	switch e.Move {
	case schemas.MoveCPUs:
		return cpuMoves.format(e.FromCPUs), cpuMoves.format(e.ToCPUs)
	case schemas.MoveLoaders:
		return loaderMoves.format(e.FromLoaders), loaderMoves.format(e.ToLoaders)
	}
	return batchSizeMoves.format(e.FromBatchSize), batchSizeMoves.format(e.ToBatchSize)
}

// stopForRestart stops the process if a move requires a restart. It is called at the end of an
// epoch.
func (j *job) stopForRestart() {
	if !slices.ContainsFunc(j.adaptations(), (*adaptation).wantsRestart) {
		return
	}
	if j.isRestarting || j.result.Cancelled || !j.process.isRunning() {
		return
	}
	if epochs := j.result.Setting.Epochs; epochs > 0 && j.epochs.last >= epochs {
		return
	}
	j.isRestarting = true
	j.stop()
}

// restart starts the command again if it was stopped for a restart, and reports whether it runs.
// It first reads the rest of the output of the previous process.
func (j *job) restart() (isRunning bool) {
	if !j.isRestarting || j.result.Cancelled {
		return false
	}
	j.closeOutput()
	s := &j.result.Setting
	if s.Epochs > 0 && j.epochs.last >= s.Epochs && j.process.state.Success() {
		return false // it completed its last epoch before it stopped
	}

	j.process.close()
	j.output, j.isRestarting = j.output.Restart(), false
	j.merge.Restart()
	for _, of := range j.adaptations() {
		if of.wantsRestart() {
			*of.setting(s) = of.requested.to
		}
	}
	if err := j.launch(j.epochs.last); err != nil {
		j.restartErr = fmt.Errorf("restart the command with batch size %d and %s: %w",
			s.BatchSize, schemas.FormatCPUs(s.CPUs), err)
		j.screen.message("%s", schemas.OneLine(j.restartErr.Error()))
		j.endAdaptations(j.restartErr.Error())
		return false
	}
	j.epochs.lastAt, j.progress.batchSize = time.Now(), s.BatchSize
	j.control.BatchSize, j.control.Loaders, j.control.FromEpoch = s.BatchSize, s.Loaders, j.epochs.last+1
	j.log.Info("job restarted", "job", j.result.JobID, "run", j.result.Run, "batch_size", s.BatchSize,
		"epochs_done", j.epochs.last)
	if j.sharing.means == schemas.ByRestart {
		j.publishApplied()
	}
	return true
}

// abandonRestarts ends the adaptation of a command that does not continue from its checkpoint.
func (j *job) abandonRestarts(epoch uint32) {
	j.screen.message("the restarted command began with epoch %d: its epochs are counted from %d; "+
		"it must continue after {epoch}", epoch, j.epochs.last+1)
	j.endAdaptations(fmt.Sprintf("the restarted command began with epoch %d instead of continuing after epoch %d",
		epoch, j.epochs.last))
}

// endAdaptations ends all moves of the run.
func (j *job) endAdaptations(reason string) {
	for _, of := range j.adaptations() {
		j.perform(of, of.end(reason))
	}
}
