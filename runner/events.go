package runner

import (
	"fmt"
	"math"
	"strings"
	"syscall"
	"time"

	"courier/runner/output"
	"courier/runner/usage"
	"courier/schemas"
)

// addReports publishes the events of epochs that were reported together. They share what the node
// and the job did since the previous report.
func (j *job) addReports(reports []output.EpochReport) { j.addHeld(j.epochs.hold(reports)) }

// warnOfIgnored prints which reported epochs are ignored.
func (j *job) warnOfIgnored() {
	switch {
	case j.epochs.isExceeded:
		j.screen.messageOnce("epochs above the %d of the request are ignored", j.epochs.requested)
	case j.epochs.ignored > 0:
		j.screen.messageOnce("an epoch is ignored: its number was reported before, or it has no duration")
	}
}

func (j *job) addHeld(reports []output.EpochReport) {
	if len(reports) == 0 {
		return
	}
	isFirst, isRestart := j.isFirstReport, j.isFirstReport && j.epochs.hasReport
	j.isFirstReport = false
	if isRestart && reports[0].Epoch+j.epochs.offset <= j.epochs.last {
		j.abandonRestarts(reports[0].Epoch)
	}
	previousAt, previous := j.epochs.lastAt, j.epochs.last
	accepted := j.epochs.add(reports)
	j.warnOfIgnored()
	if len(accepted) == 0 {
		return
	}
	if j.epochs.isAssumed {
		j.screen.messageOnce("the output does not show when its first epoch began: its duration is assumed to be" +
			" that of the next one")
	}

	if n := j.output.StepsPerEpoch(); n > 0 && isFirst && !j.reportsElsewhere() && !j.merge.IsMeasuring() {
		j.screen.message("the output counts steps, not epochs: the %d steps between two evaluations "+
			"count as an epoch", n)
	}

	var node schemas.Epoch
	j.o.Observer.Load(&node)
	totals := j.process.usage()
	used := totals.Since(j.used)
	for _, f := range accepted {
		j.confirmControl(f)
		j.learnBatchSize(f)
		e := j.epochEvent(f, &node, used, len(accepted))
		e.FollowingEpochs = accepted[len(accepted)-1].Epoch - f.Epoch
		j.result.Epochs = append(j.result.Epochs, *e)
		if f.Accuracy != nil {
			j.result.Accuracy = f.Accuracy
		}
		if j.o.OnEpoch != nil {
			j.o.OnEpoch(e)
		}
		j.out.Add(e)
		j.explainAccuracy(f)
		if isFirst {
			j.assessEpoch(f, j.epochs.firstSeconds(f, isRestart))
		} else {
			j.assessEpoch(f, f.Seconds)
		}
	}
	j.used = totals
	if isFirst {
		j.fitEpochs(j.epochs.firstSeconds(accepted[0], isRestart), j.result.Setting.BatchSize)
	} else { // with what the job does between its epochs
		wall := j.epochs.lastAt.Sub(previousAt).Seconds() / float64(j.epochs.last-previous)
		j.fitEpochs(wall, j.result.Setting.BatchSize)
	}
	j.progress.done, j.progress.batchSize = j.epochs.last, j.result.Setting.BatchSize
	j.drawProgress()
	j.stopForRestart()
	j.resizeAfterEpoch()
}

// confirmControl takes the values that an epoch of a job with a control file ran with.
func (j *job) confirmControl(f finishedEpoch) {
	if j.o.Adapt == AdaptControl && f.BatchSize > 0 {
		j.result.Setting.BatchSize = f.BatchSize
	}
	if j.sharing.means == schemas.ByControl && f.CPUs > 0 {
		j.result.Setting.CPUs = f.CPUs
	}
	if j.loading.means == schemas.ByControl && f.Loaders != nil {
		j.result.Setting.Loaders = *f.Loaders
	}
}

// learnBatchSize takes the batch size that the instrumentation has measured, or that a job reports whose
// batch size was unknown. The epochs of a job that ignores the advised batch size are recorded with the
// one that it used.
func (j *job) learnBatchSize(f finishedEpoch) {
	s := &j.result.Setting
	if f.BatchSize == 0 || f.BatchSize == s.BatchSize || j.o.Adapt != AdaptOff ||
		s.BatchSize > 0 && !j.merge.IsMeasuring() {
		return
	}
	expected := s.BatchSize
	if a := j.result.Advice; expected == 0 && a != nil {
		expected = a.Chosen.BatchSize // by an earlier job
	}
	if expected != f.BatchSize {
		than := ""
		if expected > 0 {
			than = fmt.Sprintf(", not %d", expected)
		}
		j.screen.messageOnce("the training uses batch size %d%s: its epochs are recorded with it", f.BatchSize, than)
	}
	s.BatchSize, j.merge.BatchSize = f.BatchSize, f.BatchSize
}

// epochEvent returns the event of one of several epochs that were reported together.
func (j *job) epochEvent(f finishedEpoch, node *schemas.Epoch, used usage.Used, epochs int) *schemas.Epoch {
	e := &schemas.Epoch{
		JobStamp:          j.stamp(schemas.EpochID(j.result.JobID, j.result.Run, f.Epoch)),
		Setting:           j.result.Setting,
		Epoch:             f.Epoch,
		DurationSeconds:   f.Seconds,
		DurationSource:    f.source,
		Loss:              f.Loss,
		Accuracy:          f.Accuracy,
		ValidationSamples: f.ValidationSamples,
		NodeCores:         node.NodeCores,
		NodeCPURatio:      node.NodeCPURatio,
		NodeIOWaitRatio:   node.NodeIOWaitRatio,
		NodeLoadAverage:   node.NodeLoadAverage,
		Phases:            f.Phases,
	}
	if late := time.Since(f.At); late > 0 { // it was held back until it was confirmed
		e.At = e.At.Add(-late)
	}
	if m := f.Metric; m.Name != "" && !math.IsInf(m.Value, 0) && !math.IsNaN(m.Value) {
		e.Metric, e.MetricValue = m.Name, &m.Value
	}
	used.Fill(e, epochs)
	return e
}

// explainAccuracy informs the user once if the accuracy is not the number that the job printed.
func (j *job) explainAccuracy(f finishedEpoch) {
	m := f.Metric
	if f.Accuracy == nil || m.Name == "" || m.Value == *f.Accuracy {
		return
	}
	meaning := "a percentage"
	if m.Value <= 1 {
		meaning = "an error rate, of which lower is better"
	}
	j.screen.messageOnce("%s %.6g is read as %s: accuracy %.6g",
		schemas.OneLine(m.Name), m.Value, meaning, *f.Accuracy)
}

// Limits after which the user is informed that no epoch is recognized.
const (
	hintAfter = time.Minute // importing a framework can take half of it
	hintLines = 200
)

// hint informs the user that no epoch is recognized, and how to change that.
func (j *job) hint(now time.Time) {
	if j.hasHinted || j.epochs.hasReport || j.reportsElsewhere() || j.output.Recognized() || j.merge.IsMeasuring() {
		return
	}
	elapsed := now.Sub(j.startedAt)
	if elapsed < hintAfter && j.output.Lines() < hintLines {
		return
	}
	j.hasHinted = true
	j.describeOutput(fmt.Sprintf("after %s", schemas.FormatRunning(elapsed.Seconds())))
}

// hintAtEnd informs the user that the run ended without a recognized epoch, or with too few.
func (j *job) hintAtEnd() {
	doubt := j.doubt()
	if doubt != "" && !j.isRestarting {
		j.screen.message("%s", doubt)
	}
	switch epochs := j.result.Setting.Epochs; {
	case j.isRestarting:
	case !j.epochs.hasReport:
		if doubt == "" {
			j.describeOutput("in the whole run")
		}
	case j.epochs.last < epochs && j.process.state.Success():
		if j.mayStopEarly() {
			j.screen.message("the command finished early, after epoch %d of %d", j.epochs.last, epochs)
			return
		}
		j.screen.message("the command ended after epoch %d of %d: the job is incomplete, and does "+
			"not count as having met its SLO, unless its model usually stops early or "+
			"--may-stop-early allows it", j.epochs.last, epochs)
	}
}

// doubt returns why some epochs of the output are not recorded, or an empty text. The job may have done them, so
// that it did not finish early.
func (j *job) doubt() string {
	switch {
	case j.epochs.isPrinted:
		return "all epochs of the output arrived together: nobody has measured them, and none is recorded; " +
			"the command must flush its output after each epoch, for example by stdbuf -oL"
	case j.output.Repeats() && !j.reportsElsewhere() && !j.merge.IsMeasuring():
		return "the output counts its epochs once more from the first one: only those of one training are recorded"
	}
	return ""
}

// mayStopEarly reports whether a run that ends by itself with fewer epochs has finished, as the advisor judges it.
func (j *job) mayStopEarly() bool {
	q, a, reached := j.o.Request, j.result.Advice, j.result.Accuracy
	return j.doubt() == "" && (q.MayStopEarly || a != nil && a.MayStopEarly ||
		q.TargetAccuracy > 0 && reached != nil && *reached >= q.TargetAccuracy)
}

// describeOutput shows the line that most resembles an epoch, and the pattern that reads it.
func (j *job) describeOutput(when string) {
	const consequence = "without epochs, only the duration of the whole run is recorded, " +
		"and the job counts as incomplete"
	if j.metrics != nil {
		j.screen.message("no epoch recognized %s in %s, want a CSV file with a column \"epoch\", or JSON "+
			"lines\n%s", when, j.o.MetricsFile, consequence)
		return
	}
	if j.output.Lines() == 0 {
		j.screen.message("no epoch recognized %s: the job has printed nothing", when)
		return
	}
	lines := schemas.FormatCount(uint64(j.output.Lines()), "line")
	line, pattern := j.output.Suggest()
	if pattern == "" {
		j.screen.message("no epoch recognized %s and %s; the last line is\n  %s\n"+
			"if the job prints its epochs, describe their lines, for example with --epoch-pattern '%s'\n%s",
			when, lines, line, output.PatternExample, consequence)
		return
	}
	j.screen.message("no epoch recognized %s and %s; this line counts\n  %s\n"+
		"if it is an epoch, use --epoch-pattern '%s'\n%s",
		when, lines, line, strings.ReplaceAll(pattern, "'", `'\''`), consequence)
}

// drawProgress updates the progress bar.
func (j *job) drawProgress() {
	if j.process.isRunning() {
		now := time.Now()
		j.progress.within = j.epochProgress(now)
		j.screen.draw(j.progress.text(now))
	}
}

// publishEnd publishes how the run ended. The error is why the command was not started, or nil.
func (j *job) publishEnd(startErr error) {
	e := &schemas.Ended{
		Outcome:  schemas.EventFinished,
		Setting:  j.result.Setting,
		Accuracy: j.result.Accuracy,
	}
	if startErr != nil {
		e.Outcome, e.Reason = schemas.EventFailed, truncateReason(startErr.Error())
	} else {
		j.endAdaptations("the job ended first")
		e.Setting = j.result.Setting
		j.describeExit(e)
	}
	e.JobStamp = j.stamp(schemas.EndedID(j.result.JobID, j.result.Run, e.Outcome))
	j.out.Add(e)
	j.log.Info("job ended", "job", j.result.JobID, "run", j.result.Run, "outcome", e.Outcome,
		"epochs", e.EpochsDone, "duration_seconds", e.DurationSeconds)
}

// describeExit sets the outcome and the figures of a command that has ended.
func (j *job) describeExit(e *schemas.Ended) {
	j.result.Ended = j.process.endedAt
	exitCode, exitReason := exitStatus(j.process.state)
	j.result.ExitCode = exitCode
	code := int32(exitCode)
	seconds := j.result.Ended.Sub(j.startedAt).Seconds()
	e.ExitCode, e.DurationSeconds = &code, min(seconds, schemas.MaxSLO.Seconds())
	e.EpochsDone, e.StartupSeconds = j.epochs.done, j.epochs.startupSeconds
	j.result.StartupSeconds = j.epochs.startupSeconds
	if j.o.KeepOutput {
		e.Output = schemas.Printable(strings.Join(j.output.Tail(), "\n"))
	}

	switch {
	case j.restartErr != nil:
		e.Outcome, e.Reason = schemas.EventFailed, truncateReason(j.restartErr.Error())
	case j.lateReason != "" && !j.result.Cancelled && (code == 0 || j.o.StopWhenLate == StopSignal):
		e.Reason = truncateReason(j.lateReason) // it finished as asked, with fewer epochs
	case j.result.Cancelled || j.stopReason != "" && code != 0:
		e.Outcome, e.Reason = schemas.EventCancelled, truncateReason(j.stopReason)
	case code != 0:
		e.Outcome, e.Reason = schemas.EventFailed, truncateReason(j.failureReason(exitCode, exitReason))
	case j.epochs.last < e.Setting.Epochs:
		e.Reason = j.doubt()
	}
	j.result.Cancelled = e.Outcome == schemas.EventCancelled
}

// failureReason returns why a command failed: memory was missing, by its output or by the kernel, or only
// its exit status is known.
func (j *job) failureReason(code int, status string) string {
	if line, ok := j.output.OutOfMemory(); ok {
		return fmt.Sprintf("out of memory (%s): %s", status, schemas.OneLine(line))
	}
	const killed = 128 + int(syscall.SIGKILL)
	if code == killed && usage.OOMKills() > j.oomKills {
		return fmt.Sprintf("out of memory: the kernel has killed it (%s)", status)
	}
	return status
}

// summarize prints how a run ended, and where its details are.
func (j *job) summarize() {
	if j.result.Ended.IsZero() {
		return
	}
	text := fmt.Sprintf("the run ended after %s with exit code %d",
		schemas.FormatSeconds(j.result.Ended.Sub(j.startedAt).Seconds()), j.result.ExitCode)
	if j.result.ExitCode == 0 && !j.result.Cancelled {
		text = j.comparison()
	}
	text += ": courier receipt " + j.result.JobID
	if page := strings.TrimSuffix(j.o.PageURL, "/"); page != "" {
		text += ", " + page + "/jobs/" + j.result.JobID
	}
	j.screen.message("%s", text)
}

// comparison describes a run that succeeded, and compares it with the prediction at its start.
func (j *job) comparison() string {
	s := &j.result.Setting
	end := j.result.Ended
	if j.epochs.last >= s.Epochs {
		end = j.epochs.lastAt // what follows does not count for the SLO
	}
	took := end.Sub(j.startedAt).Seconds()
	text := "the run took " + schemas.FormatSeconds(took)
	if a := j.result.Advice; a != nil {
		predicted := a.Running(j.startSetting.BatchSize, j.startSetting.CPUs)
		if predicted != nil && predicted.PredictedSeconds != nil {
			text += ", predicted " + schemas.FormatSeconds(*predicted.PredictedSeconds)
			if bound := predicted.UpperBoundSeconds; bound != nil {
				text += ", at most " + schemas.FormatSeconds(*bound)
			}
		}
	}
	if accuracy := j.result.Accuracy; accuracy != nil {
		text += fmt.Sprintf("; accuracy %.4f", *accuracy)
	}
	if slo := time.Duration(j.o.Request.SLO); slo > 0 {
		name := "SLO of " + schemas.FormatSeconds(slo.Seconds())
		switch {
		case end.Sub(j.result.Submitted) > slo:
			text += "; " + name + " missed"
		case j.epochs.last >= s.Epochs || j.epochs.done > 0 && j.mayStopEarly():
			text += "; " + name + " met"
		}
		if j.epochs.isExceeded || j.output.Exceeded() {
			text += "; the output counts more epochs than requested"
		}
	}
	if after := schemas.WorkAfter(j.result.Ended.Sub(end).Seconds()); after != "" {
		text += "; " + after
	}
	return text
}

// truncateReason truncates a reason to the size that an event can hold.
func truncateReason(reason string) string {
	const maxBytes = 4 << 10
	return reason[:min(len(reason), maxBytes)]
}
