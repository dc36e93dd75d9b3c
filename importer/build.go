package importer

import (
	"errors"
	"math"
	"strings"
	"time"

	"courier/schemas"
)

// mostBeside is how many jobs may have run at once.
const mostBeside = 256

// build makes a run of a draft.
func (r *Reader) build(d *draft) (*Run, *Refusal) {
	run := &Run{Place: d.Place, SourceID: r.value(d, FieldRunID), Number: 1, User: r.value(d, FieldUser), Epochs: d.epochs}
	for _, part := range []func(*draft, *Run) *Refusal{r.setting, r.cluster, r.ending, r.times} {
		if why := part(d, run); why != nil {
			return nil, why
		}
	}
	if why := run.checkEpochs(); why != nil {
		return nil, why
	}
	return run, run.invalid()
}

// invalid is what the contract has against the events of the run; it has no name
// and perhaps no time yet, so it is asked about one that does.
func (r *Run) invalid() *Refusal {
	probe := *r
	if probe.JobID = "past"; probe.StartedAt.IsZero() {
		probe.StartedAt = time.Unix(1e9, 0)
	}
	for _, e := range probe.Events() {
		var refusal *schemas.Error
		if err := e.Validate(); errors.As(err, &refusal) {
			return refuse(ReasonInvalid, refusal.Field, "%s", refusal.Message)
		}
	}
	return nil
}

// need reads a count that every run has.
func (r *Reader) need(d *draft, field, flag string, most uint64) (uint64, *Refusal) {
	text := r.value(d, field)
	if text == "" {
		return 0, refuse(ReasonMissing, field, "the source does not say it: name its column with --columns %s=NAME, or give --%s", field, flag)
	}
	return count(field, text, most)
}

func (r *Reader) setting(d *draft, run *Run) *Refusal {
	s := &run.Setting
	if s.Model = r.value(d, FieldModel); s.Model == "" {
		return refuse(ReasonMissing, FieldModel, "the source does not say what was trained: name its column with --columns model=NAME, or give --model")
	}
	s.Dataset = r.value(d, FieldDataset)
	batch, why := r.need(d, FieldBatchSize, "batch-size", schemas.MaxBatchSize)
	if why != nil {
		return why
	}
	cpus, why := r.need(d, FieldCPUs, "cpus", schemas.MaxCPUs)
	if why != nil {
		return why
	}
	s.BatchSize, s.CPUs = uint32(batch), uint32(cpus)
	if text := r.value(d, FieldEpochs); text != "" {
		n, why := count(FieldEpochs, text, schemas.MaxEpochs)
		if why != nil {
			return why
		}
		s.Epochs = uint32(n)
	} else if len(d.epochs) == 0 {
		return refuse(ReasonMissing, FieldEpochs, "neither its epochs nor their number is known: name the column with --columns epochs=NAME, or give --epochs")
	} else {
		s.Epochs = uint32(len(d.epochs)) // nothing else was promised
	}
	if text := r.value(d, FieldTrainingSamples); text != "" {
		if s.TrainingSamples, why = count(FieldTrainingSamples, text, math.MaxInt64); why != nil {
			return why
		}
	}
	return nil
}

// cluster reads where the run was, and beside how many.
func (r *Reader) cluster(d *draft, run *Run) *Refusal {
	run.Setting.Nodes = d.nodes
	if text := r.value(d, FieldNodes); len(d.nodes) == 0 && text != "" {
		for _, name := range strings.FieldsFunc(text, func(c rune) bool { return c == ',' || c == ';' }) {
			run.Setting.Nodes = append(run.Setting.Nodes, schemas.NodeName(strings.TrimSpace(name)))
		}
	}
	if len(run.Setting.Nodes) == 0 {
		run.Setting.Nodes = []string{nodeOf(d.File)}
	}
	if text := r.value(d, FieldNodeCores); text != "" {
		n, why := count(FieldNodeCores, text, schemas.MaxCPUs)
		if why != nil {
			return why
		}
		run.Cores = uint32(n)
	}
	if text := r.value(d, FieldConcurrentJobs); text != "" {
		n, why := count(FieldConcurrentJobs, text, mostBeside)
		if why != nil {
			return why
		}
		run.Beside = uint32(n) - 1
	}
	return nil
}

// ending reads how the run ended.
func (r *Reader) ending(d *draft, run *Run) *Refusal {
	word := strings.ToLower(r.value(d, FieldOutcome))
	outcome, known := outcomes[word]
	switch {
	case !known:
		return refuse(ReasonInvalid, FieldOutcome, "%q is not finished, failed or cancelled", clip(word))
	case outcome == "":
		return refuse(ReasonUnfinished, FieldOutcome, "it is %s: only runs that are over are of the past", word)
	case len(d.epochs) == 0 && outcome != schemas.EventFinished:
		return refuse(ReasonUnfinished, FieldOutcome, "it has %s, and none of its epochs has a time: nothing is learnt from it", outcome)
	}
	run.Outcome = outcome
	if text := r.value(d, FieldAccuracy); text != "" {
		var why *Refusal
		if run.Accuracy, why = share(FieldAccuracy, text); why != nil {
			return why
		}
	}
	if n := len(d.epochs); n > 0 && run.Accuracy == nil {
		run.Accuracy = d.epochs[n-1].Accuracy
	}
	if text := r.value(d, FieldStartup); text != "" {
		v, why := seconds(FieldStartup, text)
		if why != nil {
			return why
		}
		run.Startup = &v
	}
	return nil
}

// clockSlack is by how much two clocks of one run may differ.
const clockSlack = 1.0

// times reads when the run was: any two of start, end and duration tell the third.
func (r *Reader) times(d *draft, run *Run) *Refusal {
	var ends [2]time.Time
	for i, field := range []string{FieldStartedAt, FieldEndedAt} {
		if text := r.value(d, field); text != "" {
			t, err := Instant(text, r.o.Zone)
			if err != nil {
				return refuse(ReasonInvalid, field, "%s", err)
			}
			ends[i] = t
		}
	}
	if text := r.value(d, FieldSeconds); text != "" {
		v, why := seconds(FieldSeconds, text)
		if why != nil {
			return why
		}
		run.Seconds = v
	}
	between := 0.0
	if !ends[0].IsZero() && !ends[1].IsZero() {
		between = ends[1].Sub(ends[0]).Seconds()
		switch {
		case between < 0:
			return refuse(ReasonOrder, FieldEndedAt, "%s is before its start, %s", ends[1].Format(time.RFC3339Nano), ends[0].Format(time.RFC3339Nano))
		case between == 0:
			return refuse(ReasonPositive, FieldEndedAt, "it ended when it started, at %s", ends[1].Format(time.RFC3339Nano))
		case run.Seconds > between+clockSlack:
			return refuse(ReasonOrder, FieldSeconds, "%g s do not fit between its start and its end, which are %g s apart", run.Seconds, between)
		}
		if run.Seconds == 0 {
			run.Seconds = between
		}
	}
	if need := run.needed(); run.Seconds == 0 {
		run.Seconds = need
	} else if need > run.Seconds+clockSlack {
		return refuse(ReasonOrder, FieldSeconds, "it took %g s, but its start-up and epochs take %g s", run.Seconds, need)
	} else {
		run.Seconds = max(run.Seconds, need)
	}
	switch {
	case run.Seconds == 0:
		return refuse(ReasonMissing, FieldSeconds, "the source does not say how long it took: name its column with --columns duration_seconds=NAME")
	case !ends[0].IsZero():
		run.StartedAt = ends[0]
	case !ends[1].IsZero():
		run.StartedAt = ends[1].Add(-duration(run.Seconds))
	default:
		run.timeless = true
	}
	if !run.timeless {
		run.Beside = 0 // who ran beside it is told by the times of the others
	}
	if run.Startup != nil && *run.Startup >= run.Seconds {
		return refuse(ReasonOrder, FieldStartup, "%g s of start-up leave nothing of the %g s that it took", *run.Startup, run.Seconds)
	}
	return nil
}

// needed is the time until the last epoch's end.
func (r *Run) needed() float64 {
	if len(r.Epochs) == 0 {
		return 0
	}
	sum := r.startup()
	for i := range r.Epochs {
		if sum += r.Epochs[i].Seconds; r.Epochs[i].End > 0 {
			sum = r.Epochs[i].End
		}
	}
	return sum
}

// checkEpochs refuses epochs that are not 1, 2, 3, … to the number promised.
func (r *Run) checkEpochs() *Refusal {
	for i := range r.Epochs {
		e := &r.Epochs[i]
		if want := uint32(i + 1); e.Number != want {
			return refuse(ReasonEpochs, FieldEpoch, "epoch %d follows epoch %d: epochs were lost, or are of two runs", e.Number, i)
		}
		if !(e.Seconds > 0) {
			return refuse(ReasonPositive, FieldEpochSeconds, "epoch %d took %g s", e.Number, e.Seconds)
		}
	}
	n := uint32(len(r.Epochs))
	switch {
	case n == 0:
	case n < r.Setting.Epochs && r.Outcome == schemas.EventFinished:
		return refuse(ReasonEpochs, FieldEpochs, "%d were promised, %d are there", r.Setting.Epochs, n)
	case n > r.Setting.Epochs:
		return refuse(ReasonMixed, FieldEpochs, "%d were promised, %d are there: another run's are among them", r.Setting.Epochs, n)
	}
	return nil
}
