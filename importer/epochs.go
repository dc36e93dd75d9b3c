package importer

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"courier/runner/output"
	"courier/schemas"
)

// epochRun is a run whose rows are epochs.
type epochRun struct {
	draft *runDraft // an invalid row invalidates it
	rows  []epochRow
}

// epochRow is an epoch, or a part of one.
type epochRow struct {
	PastEpoch
	number float64
	clock  float64 // of FieldSeconds: the time of the epoch, or since the start; 0: none
	phase  output.Column
	parts  bool // its rows have different accuracies of unknown data
}

// epoch adds a row to its run.
func (t *table) epoch(d *runDraft, phase output.Column) {
	id := t.runOf(d)
	run := t.open[id]
	if run == nil {
		run = &epochRun{draft: d}
		t.open[id], t.order = run, append(t.order, run)
	}
	if run.draft.why == nil {
		if run.draft.why = run.add(d, phase); run.draft.why != nil {
			run.draft.Place = d.Place
		}
	}
}

// add adds a row, which is about the whole run if it has no epoch.
func (r *epochRun) add(d *runDraft, phase output.Column) *Refusal {
	if why := r.constants(d); why != nil || d.values[FieldEpoch] == "" {
		return why
	}
	e, why := d.epochRow()
	if e.phase = phase; d.table.phase != "" && !phase.IsHeldOut {
		e.Accuracy = nil
	}
	if phase.IsHeldOut {
		e.Loss = nil
	}
	r.rows = append(r.rows, e)
	return why
}

// runOf returns what the rows of one run have in common: their ID, or without one their configuration. A column
// named batch may count batches.
func (t *table) runOf(d *runDraft) string {
	if t.columns[FieldRunID] != "" {
		return d.values[FieldRunID]
	}
	id := d.values[FieldModel] + "\n" + d.values[FieldDataset]
	if compact(t.columns[FieldBatchSize]) != "batch" {
		id += "\n" + d.values[FieldBatchSize]
	}
	return id
}

// constants takes the values of a row about the whole run. A run has one batch size: a column that
// varies may be the number of the batch.
func (r *epochRun) constants(d *runDraft) *Refusal {
	for _, field := range []string{FieldBatchSize, FieldCPUs} {
		v, old := d.values[field], r.draft.values[field]
		if v != "" && old != "" && numberOf(v) != numberOf(old) { // the values of the columns are numbers
			return refuse(ReasonMixed, field, "the rows of one run have %s and %s", schemas.Clip(old), schemas.Clip(v))
		}
	}
	for field, v := range d.values {
		isFirst := r.draft.values[field] == ""
		if v != "" && (isFirst || field != FieldStartedAt) { // rows may have the starts of their epochs
			r.draft.values[field] = v
		}
	}
	return nil
}

// epochRow parses the fields of a row.
func (d *runDraft) epochRow() (e epochRow, why *Refusal) {
	number, err := strconv.ParseFloat(d.values[FieldEpoch], 64)
	if err != nil || !(number >= 0 && number <= schemas.MaxEpochs) {
		return e, refuse(ReasonInvalid, FieldEpoch, "%q is not an epoch number", schemas.Clip(d.values[FieldEpoch]))
	}
	e.number = number
	e.Seconds, e.clock = valueOf(d, FieldEpochSeconds, seconds), valueOf(d, FieldSeconds, seconds)
	accuracy, errorRate := d.accuracy()
	if e.Accuracy = accuracy; errorRate != nil {
		e.Metric, e.Printed = strings.ReplaceAll(normalize(d.table.columns[FieldError]), "_", " "), *errorRate
	}
	if loss, err := strconv.ParseFloat(d.values[FieldLoss], 64); err == nil && loss-loss == 0 {
		e.Loss = &loss
	}
	return e, d.why
}

// epochs sets the epochs of a run, or its total time if only that is known.
func (t *table) epochs(run *epochRun) *Refusal {
	d := run.draft
	if len(run.rows) == 0 {
		return refuse(ReasonMissing, FieldEpoch, "no row of the run has an epoch")
	}
	rows, why := t.merge(run.rows)
	if why != nil {
		return why
	}
	field := FieldEpochSeconds
	times := timesOf(rows, func(e *epochRow) float64 { return e.Seconds })
	if clocks := timesOf(rows, func(e *epochRow) float64 { return e.clock }); len(times) == 0 && len(clocks) > 0 {
		field, times = FieldSeconds, clocks
	}
	for i := range rows {
		d.epochs = append(d.epochs, rows[i].PastEpoch)
	}
	switch n := len(rows); {
	case len(times) == n:
		each, why := durationsOf(times, t.columns[field], field, t.isRequested(field))
		if why != nil {
			return why
		}
		for i := range each {
			d.epochs[i].Seconds = each[i]
		}
		return nil
	case len(times) == 1 && field == FieldSeconds:
		d.set(FieldSeconds, times[0])
	case len(times) > 0:
		return refuse(ReasonMissing, FieldEpochSeconds, "only %d of %d epochs have a time", len(times), n)
	case d.text(FieldStartedAt) == "" || d.text(FieldEndedAt) == "":
		return refuse(ReasonMissing, FieldEpochSeconds,
			"missing in a row per epoch: name its column with --columns epoch_seconds=NAME")
	}
	d.total()
	return nil
}

// timesOf returns a time of each row that has one.
func timesOf(rows []epochRow, of func(*epochRow) float64) (times []float64) {
	for i := range rows {
		if v := of(&rows[i]); v > 0 {
			times = append(times, v)
		}
	}
	return times
}

// total leaves only the result and the number of the epochs of a run whose total time is known.
func (d *runDraft) total() {
	d.set(FieldEpochsDone, float64(d.epochs[len(d.epochs)-1].Number))
	for i := range d.epochs {
		if a := d.epochs[i].Accuracy; a != nil {
			d.set(FieldAccuracy, *a)
		}
	}
	d.epochs = nil
}

// merge joins the rows of each epoch, and numbers the epochs from 1. A fraction is a part of the next
// epoch. The times of the training and of the validation of an epoch are added. Other times of one
// epoch must grow through all rows. Otherwise they are times of parts, such as batches, and the run is
// refused.
func (t *table) merge(rows []epochRow) ([]epochRow, *Refusal) {
	hasParts := slices.ContainsFunc(rows, func(e epochRow) bool { return e.number != math.Trunc(e.number) })
	fromZero := !hasParts && rows[0].number == 0
	isClockGrowing := clockGrows(rows)
	isHeldOut := output.ColumnOf(t.columns[FieldAccuracy]).IsHeldOut || t.phase != ""
	var all []epochRow
	for _, e := range rows {
		e.Number = uint32(max(1, math.Ceil(e.number)))
		if math.Ceil(e.number)-e.number > wholeEpoch {
			e.clock = 0 // not that of the end of the epoch
		}
		if fromZero {
			e.Number = uint32(e.number) + 1
		}
		n := len(all)
		if n == 0 || all[n-1].Number != e.Number {
			all = append(all, e)
			continue
		}
		to := &all[n-1]
		if e.Accuracy != nil {
			to.parts = to.parts || to.Accuracy != nil && *to.Accuracy != *e.Accuracy && !isHeldOut
			to.Accuracy, to.Metric, to.Printed = e.Accuracy, e.Metric, e.Printed
		}
		if e.Loss != nil {
			to.Loss = e.Loss
		}
		addsUp := to.phase.IsTraining && e.phase.IsHeldOut
		bothTimed := to.clock > 0 && e.clock > 0
		switch {
		case addsUp && !isClockGrowing:
			if to.Seconds += e.Seconds; bothTimed {
				to.clock += e.clock
			}
			continue
		case to.Seconds > 0 && e.Seconds > 0 && to.Seconds != e.Seconds, bothTimed && !isClockGrowing:
			return nil, refuse(ReasonMixed, FieldEpoch, "epoch %d has several rows with times, as of its"+
				" batches: only one row of an epoch may have a time", e.Number)
		}
		to.Seconds, to.clock = max(to.Seconds, e.Seconds), max(to.clock, e.clock)
	}
	for i := range all {
		if all[i].parts { // of batches
			all[i].Accuracy, all[i].Metric, all[i].Printed = nil, "", 0
		}
	}
	return all, nil
}

// wholeEpoch is the maximum part of an epoch that its last row may lack, such as 0.9968 without the last batch.
const wholeEpoch = 0.02

// clockGrows reports whether the clocks of rows grow from epoch to epoch, and never fall.
func clockGrows(rows []epochRow) bool {
	var last epochRow
	for _, e := range rows {
		if e.clock == 0 {
			continue
		}
		if e.clock < last.clock || e.clock == last.clock && e.number != last.number {
			return false
		}
		last = e
	}
	return true
}

// hour is a first value, in seconds, from which evenly growing values may be a clock instead of durations.
const hour = 3600

// totalNames are words of columns that hold the time since the start of a run.
var totalNames = []string{"total", "elapsed", "cumul", "since", "wall", "runtime"}

// durationsOf returns the durations of epochs from the values of a column, which may instead hold the
// time since the start of the run. Its name decides, or its values: a time since the start grows by the
// duration of an epoch, so that the steps are even, and about as large as the first value. It is an
// error if neither decides.
func durationsOf(values []float64, column, field string, isRequested bool) ([]float64, *Refusal) {
	n := len(values)
	steps, restarts := []float64{}, 0
	for i := 1; i < n; i++ {
		step := values[i] - values[i-1]
		if step <= 0 {
			step = values[i]
			restarts++
		}
		steps = append(steps, step)
	}
	if n == 1 || field == FieldEpochSeconds && isRequested {
		return values, nil
	}
	if restarts > 0 {
		// The time since the start of a run that was resumed begins again, and grows as evenly as before.
		all := append([]float64{values[0]}, steps...)
		if n < 4 || 2*restarts >= n || slices.Max(all) > 3*slices.Min(all) {
			return values, nil
		}
		return nil, refuse(ReasonInvalid, field, unclearTime)
	}
	middle := slices.Sorted(slices.Values(steps))[len(steps)/2]
	first := values[0] / middle
	isEven := slices.Max(steps) <= 3*slices.Min(steps)
	isTotal := field == FieldSeconds && slices.ContainsFunc(totalNames, func(word string) bool {
		return strings.Contains(compact(column), word)
	})
	switch {
	case isTotal && first < 20, n > 2 && isEven && first <= 4 && field == FieldSeconds, n > 3 && isEven && first <= 1.5:
		return append([]float64{values[0]}, steps...), nil
	case field == FieldEpochSeconds || first >= 20 && !isTotal && !(isEven && (n > 3 || values[0] >= hour)):
		return values, nil
	}
	return nil, refuse(ReasonInvalid, field, unclearTime)
}

const unclearTime = "is it the time of each epoch, or since the start of a run, which may have been resumed? Name" +
	" the column with --columns epoch_seconds=NAME if it is the time of each"
