package importer

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"courier/runner/output"
	"courier/schemas"
)

// record is a row of a table.
type record struct {
	line   int // 0: unknown
	cells  map[string]string
	lists  map[string][]*float64 // values per epoch, of listSeconds, listAccuracies and listLosses
	broken *Refusal              // why the row cannot be read
}

// sampleRows is how many rows are read before the meaning of the columns is decided.
const sampleRows = 2000

// table turns the rows of a source into runs. With a column of epoch numbers each row is an epoch or a
// part of one, and rows with the same run_id are a run; otherwise each row is a run.
type table struct {
	*Reader
	name    string
	header  []string
	isFixed bool // the header was given, and not collected from the rows
	sample  []record
	columns map[string]string // field to column; nil: not decided
	phase   string            // see names.phase
	exit    string            // column of exit codes; "": none
	open    map[string]*epochRun
	order   []string
}

// epochRun is a run whose rows are epochs.
type epochRun struct {
	draft  *runDraft
	rows   []epochRow
	broken *Refusal
}

// epochRow is an epoch, or a part of one.
type epochRow struct {
	PastEpoch
	number float64
	clock  *float64 // of FieldSeconds: the time of the epoch, or since the start
	phase  output.Column
	parts  bool // its rows have different accuracies of unknown data
}

func (r *Reader) newTable(name string, header []string) *table {
	return &table{Reader: r, name: name, header: header, isFixed: header != nil, open: map[string]*epochRun{}}
}

// add takes a row.
func (t *table) add(row record) error {
	if t.columns != nil {
		t.row(&row)
		return nil
	}
	if t.sample = append(t.sample, row); len(t.sample) == sampleRows {
		return t.decide()
	}
	return nil
}

// decide decides the meaning of the columns, and takes the rows of the sample.
func (t *table) decide() error {
	if !t.isFixed {
		seen := map[string]bool{}
		for i := range t.sample {
			for _, name := range slices.Sorted(maps.Keys(t.sample[i].cells)) {
				if !seen[name] {
					seen[name], t.header = true, append(t.header, name)
				}
			}
		}
	}
	if err := t.check(); err != nil {
		return err
	}
	n := names{t.header, t.values}
	t.columns, t.phase = columnsOf(n, t.o.Columns), n.phase()
	if t.columns[FieldOutcome] == "" {
		t.exit = n.exitCodes()
	}
	maps.Copy(t.Reader.columns, t.columns)
	maps.Copy(t.unused, proposals(n, t.usedColumns()))
	for i := range t.sample {
		t.row(&t.sample[i])
	}
	t.sample = nil
	return nil
}

// usedColumns returns the columns that are read: those of fields and of --where.
func (t *table) usedColumns() map[string]string {
	used := maps.Clone(t.columns)
	for column := range t.o.Where {
		used["--where "+column] = column
	}
	if t.phase != "" {
		used["phase"] = t.phase
	}
	if t.exit != "" {
		used["exit"] = t.exit
	}
	return used
}

// values returns the values of a column in the sample, without empty ones.
func (t *table) values(name string) (values []string) {
	for i := range t.sample {
		if v := t.sample[i].cells[name]; v != "" {
			values = append(values, v)
		}
	}
	return values
}

// check returns an error for a requested column that the table does not have.
func (t *table) check() error {
	if len(t.header) == 0 {
		return nil // no row can be read
	}
	for field, column := range t.o.Columns {
		if t.isFixed && !slices.Contains(t.header, column) {
			return fmt.Errorf("%s: --columns %s=%s: no such column; it has %s", t.name, field,
				column, strings.Join(t.header, ", "))
		}
	}
	for column := range t.o.Where {
		if !slices.Contains(t.header, column) {
			return fmt.Errorf("%s: --where %s: no such column; it has %s", t.name, column,
				strings.Join(t.header, ", "))
		}
	}
	return nil
}

// noValue are texts of cells without a value.
var noValue = []string{"nan", "none", "null", "n/a", "na", "-", "--", "nat", "<na>"}

// cell returns the text of a cell, "" if it stands for no value.
func cell(text string) string {
	text = strings.TrimSpace(text)
	if slices.Contains(noValue, strings.ToLower(text)) {
		return ""
	}
	return text
}

func (t *table) row(row *record) {
	for column, want := range t.o.Where {
		if row.cells[column] != want {
			t.left++
			return
		}
	}
	d := &runDraft{Place: Place{t.name, row.line}, values: map[string]string{}, called: t.columns}
	for field, column := range t.columns {
		d.values[field] = inSeconds(field, column, row.cells[column])
	}
	if code := row.cells[t.exit]; t.exit != "" && code != "" {
		d.values[FieldOutcome] = schemas.EventFailed
		if v, err := strconv.ParseFloat(code, 64); err == nil && v == 0 {
			d.values[FieldOutcome] = schemas.EventFinished
		}
	}
	_, perEpoch := t.columns[FieldEpoch]
	switch {
	case row.broken != nil && (!perEpoch || len(row.cells) == 0): // epochs may lack cells
		t.read++
		t.refuse(d.Place, row.broken)
	case row.lists != nil:
		if why := d.lists(row.lists); why != nil {
			t.read++
			t.refuse(d.Place, why)
			return
		}
		t.addRun(d)
	case perEpoch:
		t.epoch(d, output.ColumnOf(row.cells[t.phase]))
	default:
		t.addRun(d)
	}
}

// inSeconds converts a plain number in a column whose name has another unit of time.
func inSeconds(field, column, text string) string {
	if !slices.Contains(durations, field) {
		return text
	}
	v, err := strconv.ParseFloat(text, 64)
	if _, unit := cutUnit(column); err == nil && unit > 0 && unit != 1 {
		return strconv.FormatFloat(v*unit, 'g', -1, 64)
	}
	return text
}

// epoch adds a row to its run. An invalid row invalidates the whole run.
func (t *table) epoch(d *runDraft, phase output.Column) {
	id := d.values[FieldRunID]
	run := t.open[id]
	if run == nil {
		run = &epochRun{draft: d}
		t.open[id], t.order = run, append(t.order, id)
	}
	if run.broken != nil {
		return
	}
	why := run.constants(d)
	if why == nil && d.values[FieldEpoch] == "" && len(run.rows) > 0 {
		return // a row about the whole run
	}
	var e epochRow
	if why == nil {
		e, why = epochOf(d, t.columns[FieldError])
	}
	if why != nil {
		why.Field = callField(t.columns, why.Field)
		run.draft.Place, run.broken = d.Place, why
		return
	}
	if e.phase = phase; t.phase != "" && !phase.IsHeldOut {
		e.Accuracy = nil
	}
	if phase.IsHeldOut {
		e.Loss = nil
	}
	run.rows = append(run.rows, e)
}

// constants takes the values of a row about the whole run. A run has one batch size; a column that varies
// may be the number of the batch.
func (r *epochRun) constants(d *runDraft) *Refusal {
	for field, v := range d.values {
		old := r.draft.values[field]
		if (field == FieldBatchSize || field == FieldCPUs) && v != "" && old != "" {
			a, _ := strconv.ParseFloat(v, 64) // of a column whose values fit
			if b, _ := strconv.ParseFloat(old, 64); a != b {
				return refuse(ReasonMixed, field, "the rows of one run have %s and %s", clip(old), clip(v))
			}
		}
		if v != "" {
			r.draft.values[field] = v
		}
	}
	return nil
}

// epochOf parses the fields of a row. errorColumn is the name of the column of FieldError.
func epochOf(d *runDraft, errorColumn string) (e epochRow, why *Refusal) {
	number, err := strconv.ParseFloat(d.values[FieldEpoch], 64)
	if err != nil || !(number >= 0 && number <= schemas.MaxEpochs) {
		return e, refuse(ReasonInvalid, FieldEpoch, "%q is not an epoch number",
			clip(d.values[FieldEpoch]))
	}
	e.number, e.Source = number, schemas.DurationReported
	if text := d.values[FieldEpochSeconds]; text != "" {
		if e.Seconds, why = seconds(FieldEpochSeconds, text); why != nil {
			return e, why
		}
	}
	if text := d.values[FieldSeconds]; text != "" {
		v, why := seconds(FieldSeconds, text)
		if why != nil {
			return e, why
		}
		e.clock = &v
	}
	if text := d.values[FieldAccuracy]; text != "" {
		if v, err := strconv.ParseFloat(text, 64); err == nil && v > 1 && v <= 100 {
			e.Accuracy = &v // see convertPercentages
		} else if e.Accuracy, why = ratio(FieldAccuracy, text); why != nil {
			return e, why
		}
	}
	if text := d.values[FieldError]; text != "" && e.Accuracy == nil {
		wrong, why := ratio(FieldError, text)
		if why != nil {
			return e, why
		}
		e.Accuracy = accuracyOf(*wrong)
		e.Metric, e.Printed = strings.ReplaceAll(normalize(errorColumn), "_", " "), *wrong
	}
	if v, err := strconv.ParseFloat(d.values[FieldLoss], 64); err == nil && v-v == 0 {
		e.Loss = &v
	}
	return e, nil
}

// end adds the runs whose rows are epochs.
func (t *table) end() error {
	if t.columns == nil {
		if err := t.decide(); err != nil {
			return err
		}
	}
	for _, id := range t.order {
		run := t.open[id]
		d := run.draft
		for _, field := range []string{
			FieldEpochSeconds, FieldSeconds, FieldAccuracy, FieldError, FieldEpoch, FieldLoss,
		} {
			delete(d.values, field) // belongs to an epoch
		}
		if run.broken == nil {
			run.broken = t.epochs(run)
		}
		if run.broken != nil {
			t.read++
			t.refuse(d.Place, run.broken)
			continue
		}
		t.addRun(d)
	}
	return nil
}

// epochs sets the epochs of a run, or its total time if only that is known.
func (t *table) epochs(run *epochRun) *Refusal {
	d := run.draft
	rows, why := t.merge(run.rows)
	if why != nil {
		return why
	}
	field := FieldSeconds
	own, clocks := 0, []float64{}
	for i := range rows {
		if rows[i].Seconds > 0 {
			own++
		}
		if rows[i].clock != nil {
			clocks = append(clocks, *rows[i].clock)
		}
	}
	if own > 0 || len(clocks) == 0 {
		field, clocks = FieldEpochSeconds, clocks[:0]
		for i := range rows {
			if rows[i].Seconds > 0 {
				clocks = append(clocks, rows[i].Seconds)
			}
		}
	}
	for i := range rows {
		d.epochs = append(d.epochs, rows[i].PastEpoch)
	}
	convertPercentages(d.epochs)
	switch n := len(rows); {
	case len(clocks) == n:
		_, isRequested := t.o.Columns[field]
		each, why := durationsOf(clocks, t.columns[field], field, isRequested)
		if why != nil {
			return why
		}
		for i := range each {
			d.epochs[i].Seconds = each[i]
		}
		return nil
	case len(clocks) == 1 && field == FieldSeconds:
		d.values[FieldSeconds] = strconv.FormatFloat(clocks[0], 'g', -1, 64)
	case len(clocks) > 0:
		return refuse(ReasonMissing, FieldEpochSeconds, "only %d of %d epochs have a time", len(clocks), n)
	case t.value(d, FieldStartedAt) == "" || t.value(d, FieldEndedAt) == "":
		return refuse(ReasonMissing, FieldEpochSeconds,
			"missing in a row per epoch: name its column with --columns epoch_seconds=NAME")
	}
	d.total()
	return nil
}

// total leaves only the result and the number of the epochs of a run whose total time is known.
func (d *runDraft) total() {
	last := d.epochs[len(d.epochs)-1]
	if d.values[FieldEpochs] == "" {
		d.values[FieldEpochs] = strconv.FormatUint(uint64(last.Number), 10)
	}
	for i := range d.epochs {
		if a := d.epochs[i].Accuracy; a != nil {
			d.values[FieldAccuracy] = strconv.FormatFloat(*a, 'g', -1, 64)
		}
	}
	d.epochs = nil
}

// merge returns an epoch for the rows of each, in their order, numbered from 1. A fraction is a part
// of the next epoch. Times of a training and a validation are added. Other times of one epoch must grow
// through all rows, else they are times of parts, such as batches, and the run is refused.
func (t *table) merge(rows []epochRow) ([]epochRow, *Refusal) {
	hasParts := slices.ContainsFunc(rows, func(e epochRow) bool { return e.number != math.Trunc(e.number) })
	fromZero := !hasParts && rows[0].number == 0
	grows := grows(rows)
	held := output.ColumnOf(t.columns[FieldAccuracy]).IsHeldOut || t.phase != ""
	var all []epochRow
	for _, e := range rows {
		e.Number = uint32(max(1, math.Ceil(e.number)))
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
			to.parts = to.parts || to.Accuracy != nil && *to.Accuracy != *e.Accuracy && !held
			to.Accuracy, to.Metric, to.Printed = e.Accuracy, e.Metric, e.Printed
		}
		if e.Loss != nil {
			to.Loss = e.Loss
		}
		addsUp := to.phase.IsTraining && e.phase.IsHeldOut
		bothTimed := to.clock != nil && e.clock != nil
		switch {
		case addsUp && !grows:
			if to.Seconds += e.Seconds; bothTimed {
				*to.clock += *e.clock
			}
			continue
		case to.Seconds > 0 && e.Seconds > 0 && to.Seconds != e.Seconds, bothTimed && !grows:
			return nil, refuse(ReasonMixed, FieldEpoch, "epoch %d has several rows with times, as of its"+
				" batches: only one row of an epoch may have a time", e.Number)
		}
		if to.Seconds = max(to.Seconds, e.Seconds); e.clock != nil {
			to.clock = e.clock
		}
	}
	for i := range all {
		if all[i].parts { // of batches
			all[i].Accuracy, all[i].Metric, all[i].Printed = nil, "", 0
		}
	}
	return all, nil
}

// grows reports whether the clocks of rows grow from epoch to epoch, and never fall.
func grows(rows []epochRow) bool {
	var last *epochRow
	for i := range rows {
		e := &rows[i]
		if e.clock == nil {
			continue
		}
		if last != nil && (*e.clock < *last.clock || *e.clock == *last.clock && e.number != last.number) {
			return false
		}
		last = e
	}
	return true
}

// totalNames are words of columns that hold the time since the start of a run.
var totalNames = []string{"total", "elapsed", "cumul", "since", "wall", "runtime"}

// durationsOf returns the durations of epochs from the values of a column, which may instead hold the
// time since the start of the run. That is told by the name, and by how the values grow: each is then
// larger than the one before by about as much as the first. It is an error if neither decides.
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
		return nil, refuse(ReasonInvalid, field, "is it the time of each epoch, or since the start of a run that"+
			" was resumed? Name the column with --columns epoch_seconds=NAME if it is the time of each")
	}
	middle := slices.Sorted(slices.Values(steps))[len(steps)/2]
	first := values[0] / middle
	isEven := slices.Max(steps) <= 3*slices.Min(steps)
	isTotal := field == FieldSeconds && slices.ContainsFunc(totalNames, func(word string) bool {
		return strings.Contains(compact(column), word)
	})
	switch {
	case isTotal, n > 2 && isEven && first <= 4 && field == FieldSeconds, n > 3 && isEven && first <= 1.5:
		return append([]float64{values[0]}, steps...), nil
	case field == FieldEpochSeconds || first >= 20:
		return values, nil
	}
	return nil, refuse(ReasonInvalid, field, "is it the time of each epoch, or since the start? The values"+
		" grow from %g to %g: name the column with --columns epoch_seconds=NAME if it is the time of each",
		values[0], values[n-1])
}

// countFromOne renumbers epochs that a source counts from zero.
func countFromOne(epochs []PastEpoch) {
	if len(epochs) == 0 || epochs[0].Number != 0 {
		return
	}
	for i := range epochs {
		epochs[i].Number++
	}
}

// callField returns a field with its name in the source.
func callField(called map[string]string, field string) string {
	if name := called[field]; name != "" && name != field {
		return field + " (" + name + ")"
	}
	return field
}
