package importer

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// maxConcurrentJobs is the maximum number of jobs that ran at the same time.
const maxConcurrentJobs = 256

// addRun adds the run of a draft, or records its rejection.
func (r *Reader) addRun(d *runDraft) {
	r.read++
	run, why := r.build(d)
	if why != nil {
		why.Field = callField(d.called, why.Field)
		r.refuse(d.Place, why)
		return
	}
	r.runs = append(r.runs, run)
}

// build converts a draft to a run.
func (r *Reader) build(d *runDraft) (*PastRun, *Refusal) {
	convertPercentages(d.epochs)
	run := &PastRun{
		Place:    d.Place,
		SourceID: r.value(d, FieldRunID),
		Number:   1,
		User:     r.value(d, FieldUser),
		Epochs:   d.epochs,
	}
	for _, part := range []func(*runDraft, *PastRun) *Refusal{
		r.setting, r.cluster, r.ending, r.times,
	} {
		if refusal := part(d, run); refusal != nil {
			return nil, refusal
		}
	}
	if refusal := run.checkEpochs(); refusal != nil {
		return nil, refusal
	}
	return run, run.validate()
}

// validate validates the run's events. The run has no job ID and possibly no start yet, so it uses
// a copy with placeholders.
func (r *PastRun) validate() *Refusal {
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

// need returns a required count.
func (r *Reader) need(d *runDraft, field, flag string, most uint64) (uint64, *Refusal) {
	text := r.value(d, field)
	if text == "" {
		return 0, refuse(ReasonMissing, field,
			"missing in the source: name its column with --columns %s=NAME, or give --%s",
			field, flag)
	}
	return count(field, text, most)
}

func (r *Reader) setting(d *runDraft, run *PastRun) *Refusal {
	s := &run.Setting
	if s.Model = r.value(d, FieldModel); s.Model == "" {
		return refuse(ReasonMissing, FieldModel,
			"missing in the source: name its column with --columns model=NAME, or give --model")
	}
	s.Dataset = r.value(d, FieldDataset)
	batch, refusal := r.need(d, FieldBatchSize, "batch-size", schemas.MaxBatchSize)
	if refusal != nil {
		return refusal
	}
	cpus, refusal := r.need(d, FieldCPUs, "cpus", schemas.MaxCPUs)
	if refusal != nil {
		return refusal
	}
	s.BatchSize, s.CPUs = uint32(batch), uint32(cpus)
	if text := r.value(d, FieldEpochs); text != "" {
		n, refusal := count(FieldEpochs, text, schemas.MaxEpochs)
		if refusal != nil {
			return refusal
		}
		s.Epochs = uint32(n)
	} else if len(d.epochs) == 0 {
		return refuse(ReasonMissing, FieldEpochs,
			"the source has neither epochs nor their number: name the column with --columns"+
				" epochs=NAME, or give --epochs")
	} else {
		s.Epochs = uint32(len(d.epochs)) // the source has no other number
	}
	if text := r.value(d, FieldTrainingSamples); text != "" {
		s.TrainingSamples, refusal = count(FieldTrainingSamples, text, math.MaxInt64)
		if refusal != nil {
			return refusal
		}
	}
	return nil
}

// cluster reads the nodes of the run and the number of concurrent jobs.
func (r *Reader) cluster(d *runDraft, run *PastRun) *Refusal {
	run.Setting.Nodes = d.nodes
	if text := r.value(d, FieldNodes); len(d.nodes) == 0 && text != "" {
		for _, name := range strings.FieldsFunc(text, func(c rune) bool {
			return c == ',' || c == ';'
		}) {
			run.Setting.Nodes = append(run.Setting.Nodes, schemas.NodeName(strings.TrimSpace(name)))
		}
	}
	if len(run.Setting.Nodes) == 0 {
		run.Setting.Nodes = []string{nodeOf(d.File)}
	}
	if text := r.value(d, FieldNodeCores); text != "" {
		n, refusal := count(FieldNodeCores, text, schemas.MaxCPUs)
		if refusal != nil {
			return refusal
		}
		run.Cores = uint32(n)
	}
	run.NodeModel = strings.Join(slices.DeleteFunc(
		[]string{r.value(d, FieldCPUModel), r.value(d, FieldGPUModel)},
		func(s string) bool { return s == "" }), " + ")
	if text := r.value(d, FieldConcurrentJobs); text != "" {
		n, refusal := count(FieldConcurrentJobs, text, maxConcurrentJobs)
		if refusal != nil {
			return refusal
		}
		run.Beside = uint32(n) - 1
	}
	return nil
}

// ending reads outcome, accuracy and start-up.
func (r *Reader) ending(d *runDraft, run *PastRun) *Refusal {
	word := strings.ToLower(r.value(d, FieldOutcome))
	outcome, known := outcomeOf(word)
	switch {
	case !known:
		return refuse(ReasonInvalid, FieldOutcome, "%q is not finished, failed or cancelled",
			clip(word))
	case outcome == "":
		return refuse(ReasonUnfinished, FieldOutcome,
			"the run is %s: only ended runs can be imported", word)
	case len(d.epochs) == 0 && outcome != schemas.EventFinished && !d.isTimeout:
		return refuse(ReasonUnfinished, FieldOutcome,
			"the run has %s, and no epoch has a time: nothing can be learned from it", cmp.Or(word, outcome))
	}
	run.Outcome, run.Limit = outcome, d.limit
	if d.isTimeout {
		run.Reason = limitReason(d.limit)
	}
	if text := r.value(d, FieldAccuracy); text != "" {
		var refusal *Refusal
		if run.Accuracy, refusal = ratio(FieldAccuracy, text); refusal != nil {
			return refusal
		}
	}
	if text := r.value(d, FieldError); text != "" && run.Accuracy == nil {
		wrong, refusal := ratio(FieldError, text)
		if refusal != nil {
			return refusal
		}
		run.Accuracy = accuracyOf(*wrong)
	}
	if n := len(d.epochs); n > 0 && run.Accuracy == nil {
		run.Accuracy = d.epochs[n-1].Accuracy
	}
	if text := r.value(d, FieldStartup); text != "" {
		v, refusal := seconds(FieldStartup, text)
		if refusal != nil {
			return refusal
		}
		run.Startup = &v
	}
	return nil
}

// convertPercentages converts the accuracies of epochs to ratios if one of them is above 1: a low
// percentage alone may look like a ratio.
func convertPercentages(epochs []PastEpoch) {
	isPercent := func(e PastEpoch) bool { return e.Accuracy != nil && *e.Accuracy > 1 }
	if !slices.ContainsFunc(epochs, isPercent) {
		return
	}
	for i := range epochs {
		if v := epochs[i].Accuracy; v != nil {
			r := fromPercent(*v)
			epochs[i].Accuracy = &r
		}
	}
}

// accuracyOf returns the accuracy of an error rate, without the digits that the subtraction adds.
func accuracyOf(errorRate float64) *float64 {
	v := math.Round((1-errorRate)*1e12) / 1e12
	return &v
}

// clockSlack is the maximum difference of two clocks in one run, in seconds.
const clockSlack = 1.0

// times reads start, end and duration; any two of them determine the third.
func (r *Reader) times(d *runDraft, run *PastRun) *Refusal {
	start, refusal := r.instant(d, FieldStartedAt)
	if refusal != nil {
		return refusal
	}
	end, refusal := r.instant(d, FieldEndedAt)
	if refusal != nil {
		return refusal
	}
	if text := r.value(d, FieldSeconds); text != "" {
		if run.Seconds, refusal = seconds(FieldSeconds, text); refusal != nil {
			return refusal
		}
	}
	if run.Seconds == 0 && (start.IsZero() || end.IsZero()) && len(d.epochs) == 0 {
		if run.Seconds, refusal = r.secondsOfEpochs(d, run); refusal != nil {
			return refusal
		}
	}
	if !start.IsZero() && !end.IsZero() {
		if refusal := run.checkInterval(start, end); refusal != nil {
			return refusal
		}
	}
	if refusal := run.checkSeconds(); refusal != nil {
		return refusal
	}

	switch {
	case !start.IsZero():
		run.StartedAt = start
	case !end.IsZero():
		run.StartedAt = end.Add(-duration(run.Seconds))
	default:
		run.timeless = true
	}
	if !run.timeless {
		run.Beside = 0 // concurrency follows from the times of the runs
	}
	return nil
}

// secondsOfEpochs returns the duration of a run that has only the mean duration of its epochs; 0
// without one.
func (r *Reader) secondsOfEpochs(d *runDraft, run *PastRun) (float64, *Refusal) {
	text := r.value(d, FieldEpochSeconds)
	if text == "" {
		return 0, nil
	}
	each, refusal := seconds(FieldEpochSeconds, text)
	if refusal != nil {
		return 0, refusal
	}
	return each*float64(run.Setting.Epochs) + run.startup(), nil
}

// instant reads a timestamp; zero if the source has none.
func (r *Reader) instant(d *runDraft, field string) (time.Time, *Refusal) {
	text := r.value(d, field)
	if text == "" {
		return time.Time{}, nil
	}
	t, err := Instant(text, r.o.Zone)
	if err != nil {
		return time.Time{}, refuse(ReasonInvalid, field, "%s", err)
	}
	return t, nil
}

// checkInterval compares the duration with start and end. It sets the duration if the source has
// none.
func (r *PastRun) checkInterval(start, end time.Time) *Refusal {
	interval := end.Sub(start).Seconds()
	switch {
	case interval < 0:
		return refuse(ReasonOrder, FieldEndedAt, "%s is before the start, %s",
			end.Format(time.RFC3339Nano), start.Format(time.RFC3339Nano))
	case interval == 0:
		return refuse(ReasonPositive, FieldEndedAt, "the run ended when it started, at %s",
			end.Format(time.RFC3339Nano))
	case r.Seconds > interval+clockSlack:
		return refuse(ReasonOrder, FieldSeconds,
			"%g s is longer than the %g s between start and end", r.Seconds, interval)
	case isNear(60*r.Seconds, interval), isNear(3600*r.Seconds, interval):
		return refuse(ReasonInvalid, FieldSeconds, "%g is in minutes or hours, because start and end are %g s"+
			" apart: put the unit into the name of the column, as in \"duration (min)\"", r.Seconds, interval)
	case r.Seconds == 0:
		r.Seconds = interval
	}
	return nil
}

// isNear reports whether two times differ by at most 2 %, such as by rounding to minutes.
func isNear(a, b float64) bool { return math.Abs(a-b) <= 0.02*b }

// checkSeconds compares the duration with start-up and epochs. It sets the duration if the source
// has none.
func (r *PastRun) checkSeconds() *Refusal {
	needed := r.needed()
	if r.Seconds > 0 && needed > r.Seconds+clockSlack {
		return refuse(ReasonOrder, FieldSeconds,
			"the run took %g s, but its start-up and epochs took %g s", r.Seconds, needed)
	}
	r.Seconds = max(r.Seconds, needed)
	if r.Seconds == 0 {
		return refuse(ReasonMissing, FieldSeconds,
			"missing in the source: name its column with --columns duration_seconds=NAME")
	}
	if r.Startup != nil && *r.Startup >= r.Seconds {
		return refuse(ReasonOrder, FieldStartup,
			"%g s of start-up is not less than the duration of the run, %g s",
			*r.Startup, r.Seconds)
	}
	return nil
}

// needed returns the time from the start to the end of the last epoch.
func (r *PastRun) needed() float64 {
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

// checkEpochs rejects epochs that are not numbered from 1 to the configured number.
func (r *PastRun) checkEpochs() *Refusal {
	for i := range r.Epochs {
		e := &r.Epochs[i]
		if want := uint32(i + 1); e.Number != want {
			return refuse(ReasonEpochs, FieldEpoch,
				"epoch %d follows epoch %d: epochs are missing, or two runs are mixed", e.Number, i)
		}
		if !(e.Seconds > 0) {
			return refuse(ReasonPositive, FieldEpochSeconds, "epoch %d took %g s", e.Number,
				e.Seconds)
		}
	}
	n := uint32(len(r.Epochs))
	switch {
	case n == 0:
	case n < r.Setting.Epochs && r.Outcome == schemas.EventFinished:
		return refuse(ReasonEpochs, FieldEpochs, "expected %d epochs, found %d",
			r.Setting.Epochs, n)
	case n > r.Setting.Epochs:
		return refuse(ReasonMixed, FieldEpochs,
			"expected %d epochs, found %d: epochs of another run are among them",
			r.Setting.Epochs, n)
	}
	return nil
}
