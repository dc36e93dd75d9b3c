package importer

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/runner/output"
	"courier/schemas"
)

// maxConcurrentJobs is the maximum number of jobs that ran at the same time.
const maxConcurrentJobs = 256

// runDraft holds the unparsed values of a run.
type runDraft struct {
	Place
	table  *table
	values map[string]string // by field
	epochs []PastEpoch
	why    *Refusal // of the first value that is not valid; nil: all are valid
}

// set sets a field to a number.
func (d *runDraft) set(field string, v float64) {
	d.values[field] = strconv.FormatFloat(v, 'f', -1, 64)
}

// text returns a field from the source or the defaults.
func (d *runDraft) text(field string) string {
	return cmp.Or(strings.TrimSpace(d.values[field]), strings.TrimSpace(d.table.o.Defaults[field]))
}

// add adds the run, or records its rejection.
func (d *runDraft) add() {
	run := &PastRun{
		Place:    d.Place,
		SourceID: d.text(FieldRunID),
		Number:   1,
		User:     d.text(FieldUser),
		Epochs:   d.epochs,
	}
	d.ending(run)
	d.setting(&run.Setting)
	d.countEpochs(run)
	d.cluster(run)
	d.times(run)
	d.note(run.checkEpochs())
	if d.why == nil {
		d.why = run.validate()
	}
	d.table.found.Read++
	if d.why != nil {
		d.why.Field = d.table.callField(d.why.Field)
		d.table.refuse(d.Place, d.why)
		return
	}
	d.table.found.Runs = append(d.table.found.Runs, run)
}

// note takes a refusal, of which only the first one counts; nil: none.
func (d *runDraft) note(why *Refusal) {
	if d.why == nil {
		d.why = why
	}
}

// valueOf returns the value of a field, zero without one.
func valueOf[T any](d *runDraft, field string, parse func(field, text string) (T, *Refusal)) (value T) {
	if text := d.text(field); text != "" {
		parsed, why := parse(field, text)
		d.note(why)
		value = parsed
	}
	return value
}

// count returns a count up to a limit; 0 without one.
func (d *runDraft) count(field string, most uint64) uint64 {
	return valueOf(d, field, func(field, text string) (uint64, *Refusal) { return count(field, text, most) })
}

// need returns the text of a field that is required.
func (d *runDraft) need(field, flag string) string {
	text := d.text(field)
	if text == "" {
		d.note(refuse(ReasonMissing, field,
			"missing in the source: name its column with --columns %s=NAME, or give --%s", field, flag))
	}
	return text
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

// setting reads the configuration. Without a batch size it is unknown, 0, as in courier run.
func (d *runDraft) setting(s *schemas.Setting) {
	s.Model, s.Dataset = d.need(FieldModel, "model"), d.text(FieldDataset)
	if d.table.columns[FieldBatchSize] != "" { // other runs of the source have one
		d.need(FieldBatchSize, "batch-size")
	}
	if d.text(FieldBatchSize) != partOfBatch {
		s.BatchSize = uint32(d.count(FieldBatchSize, schemas.MaxBatchSize))
	}
	d.need(FieldCPUs, "cpus")
	s.CPUs = uint32(d.count(FieldCPUs, schemas.MaxCPUs))
	if n := uint32(d.count(FieldWorkers, schemas.MaxWorkers)); n > 1 {
		s.Workers = n
	}
	s.TrainingSamples = d.count(FieldTrainingSamples, math.MaxInt64)
}

// countEpochs reads the number of epochs. If the source has no data of single epochs, it also reads how many
// of them were done. A column with the last epoch may count from 0 or from 1, so it is accepted only if
// the run did all epochs.
func (d *runDraft) countEpochs(run *PastRun) {
	all := uint32(d.count(FieldEpochs, schemas.MaxEpochs))
	text, column := d.text(FieldEpochsDone), d.table.columns[FieldEpochsDone]
	switch last := numberOf(text); {
	case len(d.epochs) > 0 || text == "":
	case isAmount(column, []string{text}):
		run.Done = uint32(d.count(FieldEpochsDone, schemas.MaxEpochs))
	case last != 0 && last != float64(all) && last+1 != float64(all):
		d.note(refuse(ReasonEpochs, FieldEpochsDone, "the run ended after epoch %s of %d, counted from 0 or 1: name a"+
			" column of the number of epochs that it did with --columns epochs_done=NAME", schemas.Clip(text), all))
	}
	run.Setting.Epochs = max(all, run.Done)
	if all == 0 && run.Done == 0 {
		run.Setting.Epochs = uint32(len(d.epochs)) // the source has no other number
	}
	if run.Setting.Epochs == 0 {
		d.note(refuse(ReasonMissing, FieldEpochs,
			"the source has neither epochs nor their number: name the column with --columns"+
				" epochs=NAME, or give --epochs"))
	}
}

// cluster reads the nodes of the run and the number of concurrent jobs.
func (d *runDraft) cluster(run *PastRun) {
	var nodes []string
	for _, name := range expandHosts(strings.ReplaceAll(d.text(FieldNodes), ";", ",")) {
		nodes = append(nodes, schemas.NodeName(strings.TrimSpace(name)))
	}
	if len(nodes) == 0 { // each source has its own, so that runs of different sources are never co-located
		base := path.Base(d.File)
		nodes = []string{schemas.NodeName(strings.TrimSuffix(base, path.Ext(base)))}
	}
	run.Setting.Nodes = nodes
	run.Cores = uint32(d.count(FieldNodeCores, schemas.MaxCPUs))
	run.NodeModel = strings.Join(slices.DeleteFunc([]string{d.text(FieldCPUModel), d.text(FieldGPUModel)},
		func(s string) bool { return s == "" }), " + ")
	run.Beside = uint32(max(d.count(FieldConcurrentJobs, maxConcurrentJobs), 1)) - 1
}

// ending reads outcome, accuracy and start-up.
func (d *runDraft) ending(run *PastRun) {
	word, _, _ := strings.Cut(strings.ToLower(d.text(FieldOutcome)), " ") // CANCELLED by 1000
	outcome, known := outcomeOf(word)
	run.Limit = limitSeconds(d.text(FieldTimeLimit))
	isTimeout := word == "timeout" && run.Limit > 0
	switch {
	case !known:
		d.note(refuse(ReasonInvalid, FieldOutcome, "%q is not finished, failed or cancelled", schemas.Clip(word)))
	case outcome == "":
		d.note(refuse(ReasonUnfinished, FieldOutcome, "the run is %s: only ended runs can be imported", word))
	case len(d.epochs) == 0 && outcome != schemas.EventFinished && !isTimeout:
		d.note(refuse(ReasonUnfinished, FieldOutcome,
			"the run ended as %s, and no epoch has a time: nothing can be learned from it", word))
	}
	if run.Outcome = outcome; isTimeout {
		run.Reason = fmt.Sprintf("the time limit of %s was reached", duration(run.Limit).Round(time.Second))
	}
	run.Accuracy, _ = d.accuracy()
	if n := len(d.epochs); n > 0 && run.Accuracy == nil {
		run.Accuracy = d.epochs[n-1].Accuracy
	}
	if startup := valueOf(d, FieldStartup, seconds); startup > 0 {
		run.Startup = &startup
	}
}

// accuracy returns the accuracy, and the error rate that it was computed from; nil without one.
func (d *runDraft) accuracy() (accuracy, errorRate *float64) {
	if accuracy = valueOf(d, FieldAccuracy, ratio); accuracy == nil {
		if errorRate = valueOf(d, FieldError, ratio); errorRate != nil {
			accuracy = new(output.Complement(*errorRate))
		}
	}
	return accuracy, errorRate
}

// clockSlack is the maximum difference of two clocks in one run, in seconds.
const clockSlack = 1.0

// times reads start, end and duration; any two of them determine the third.
func (d *runDraft) times(run *PastRun) {
	instant := func(field, text string) (time.Time, *Refusal) {
		t, err := Instant(text, d.table.o.Zone)
		if err != nil {
			return t, refuse(ReasonInvalid, field, "%s", err)
		}
		return t, nil
	}
	start, end := valueOf(d, FieldStartedAt, instant), valueOf(d, FieldEndedAt, instant)
	hasInterval := !start.IsZero() && !end.IsZero()
	run.Seconds = valueOf(d, FieldSeconds, seconds)
	if run.Seconds == 0 && !hasInterval && len(run.Epochs) == 0 {
		if each := valueOf(d, FieldEpochSeconds, seconds); each > 0 { // only the mean is known
			run.Seconds = each*float64(cmp.Or(run.Done, run.Setting.Epochs)) + run.startup()
		}
	}
	if hasInterval {
		d.note(run.checkInterval(start, end))
	}
	d.note(run.checkSeconds())

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
		return refuse(ReasonOrder, FieldStartup, "%g s of start-up is not less than the duration of the run, %g s",
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
		sum += r.Epochs[i].Seconds
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
			return refuse(ReasonPositive, FieldEpochSeconds, "epoch %d took %g s", e.Number, e.Seconds)
		}
	}
	n := uint32(len(r.Epochs))
	switch {
	case n == 0:
	case n < r.Setting.Epochs && r.Outcome == schemas.EventFinished:
		return refuse(ReasonEpochs, FieldEpochs, "expected %d epochs, found %d", r.Setting.Epochs, n)
	case n > r.Setting.Epochs:
		return refuse(ReasonMixed, FieldEpochs, "expected %d epochs, found %d: epochs of another run are among them",
			r.Setting.Epochs, n)
	}
	return nil
}
