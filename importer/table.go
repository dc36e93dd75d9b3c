package importer

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
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
	broken *Refusal // why the row cannot be read
}

// sampleRows is how many rows are read before the meaning of the columns is decided.
const sampleRows = 2000

// table turns the rows of a source into runs. With a column of epoch numbers each row is an epoch or a
// part of one, and rows with the same run_id are a run; otherwise each row is a run.
type table struct {
	*Reader
	names     // of the header of a CSV file, or all in the sample
	name      string
	comma     rune // separator of the cells of a CSV file; 0: another source
	sample    []record
	phase     string          // see names.phaseColumn
	thousands *regexp.Regexp  // see thousandsOf
	months    *bool           // see isMonthFirst
	percent   map[string]bool // fields whose numbers are percentages
	hasSums   bool            // rows with one of the names sums are sums: most have none
	unclear   *Refusal        // of all rows; nil: none
	lastJob   string          // see isStep
	open      map[string]*epochRun
	order     []*epochRun
	err       error // of Options
}

// add takes a row.
func (t *table) add(row record) {
	switch {
	case t.err != nil:
	case t.columns != nil:
		writePlain(row.cells, t.thousands)
		t.row(&row)
	default:
		if t.sample = append(t.sample, row); len(t.sample) == sampleRows {
			t.decide()
		}
	}
}

// decide decides the meaning of the columns, and takes the rows of the sample.
func (t *table) decide() {
	if t.comma == 0 {
		seen := map[string]bool{}
		for i := range t.sample {
			for _, name := range slices.Sorted(maps.Keys(t.sample[i].cells)) {
				if !seen[name] {
					seen[name], t.have = true, append(t.have, name)
				}
			}
		}
	} else if t.thousands = thousandsOf(t.sample, t.comma); t.thousands != nil {
		for i := range t.sample {
			writePlain(t.sample[i].cells, t.thousands)
		}
	}
	t.names.decide()
	t.decideEpochs()
	t.phase = t.phaseColumn()
	if t.err = t.check(); t.err != nil {
		return
	}
	starts, ends := t.values(t.columns[FieldStartedAt]), t.values(t.columns[FieldEndedAt])
	t.months = isMonthFirst(append(starts, ends...))
	t.unclear = t.checkRows()
	t.percent = map[string]bool{
		FieldAccuracy: t.arePercentages(t.columns[FieldAccuracy]),
		FieldError:    t.arePercentages(t.columns[FieldError]),
	}
	maps.Copy(t.found.Columns, t.columns)
	t.noteUnused()
	other := slices.DeleteFunc(slices.Clone(t.sample), t.isSum)
	t.hasSums = 2*len(other) >= len(t.sample)
	for i := range t.sample {
		t.row(&t.sample[i])
	}
	t.sample = nil
}

// noteUnused records the columns that are read neither for a field nor for --where.
func (t *table) noteUnused() {
	used := slices.Concat(slices.Collect(maps.Values(t.columns)), slices.Collect(maps.Keys(t.o.Where)), t.found.Unused,
		[]string{t.phase, podsCell, ""}) // the index of pandas has no name
	for _, name := range t.have {
		if !slices.Contains(used, name) {
			t.found.Unused = append(t.found.Unused, name)
		}
	}
}

// sampled returns the values of a column in the sample, without empty ones.
func (t *table) sampled(name string) (values []string) {
	for i := range t.sample {
		if v := t.sample[i].cells[name]; v != "" {
			values = append(values, v)
		}
	}
	return values
}

// check returns an error for a requested column that the table does not have.
func (t *table) check() (err error) {
	missing := func(flag, column string) error {
		if len(t.have) == 0 || slices.Contains(t.have, column) { // without a name no row can be read
			return nil
		}
		return fmt.Errorf("%s: --%s: no such column; it has %s", t.name, flag, strings.Join(t.have, ", "))
	}
	for field, column := range t.requested {
		if t.comma != 0 && t.columns[FieldCommand] == "" { // else it may be a flag
			err = cmp.Or(err, missing("columns "+field+"="+column, column))
		}
	}
	for column := range t.o.Where {
		err = cmp.Or(err, missing("where "+column, column))
	}
	return err
}

// noValue are texts of cells without a value.
var noValue = []string{"nan", "none", "null", "n/a", "na", "nat", "<na>", "none assigned"}

// cell returns the text of a cell, "" if it stands for no value.
func cell(text string) string {
	text = strings.TrimSpace(text)
	if strings.Count(text, `"`) == 2 && text[0] == '"' && text[len(text)-1] == '"' { // a text of JSON
		text = text[1 : len(text)-1]
	}
	if slices.Contains(noValue, strings.ToLower(text)) || strings.Trim(text, ":-+=") == "" {
		return ""
	}
	return text
}

func (t *table) row(row *record) {
	for column, want := range t.o.Where {
		if row.cells[column] != want {
			t.found.LeftOut++
			return
		}
	}
	d := &runDraft{Place: Place{t.name, row.line}, table: t, values: map[string]string{}}
	_, perEpoch := t.columns[FieldEpoch]
	for field, column := range t.columns {
		d.values[field] = inWords(field, column, row.cells[column])
		if field == FieldStartedAt || field == FieldEndedAt {
			d.values[field] = yearFirst(d.values[field], t.months)
		}
		if t.isOfJobs() && strings.HasSuffix(d.values[field], "+") {
			d.values[field] = "" // sacct has truncated it
		}
		if v := numberOf(d.values[field]); t.percent[field] && v > 0 && v <= 100 {
			d.values[field] += "%"
			if v <= 1 && !perEpoch && !strings.Contains(column, "%") && row.broken == nil {
				row.broken = refuse(ReasonInvalid, field,
					"%g may be a ratio or a percentage: other rows have percentages", v)
			}
		}
	}
	t.noteFailure(d, row.cells)
	t.complete(d, row.cells)
	switch {
	case t.isOfJobs() && t.isStep(d.values[FieldRunID]):
		return
	case t.hasSums && t.isSum(*row):
		d.note(refuse(ReasonInvalid, "", "the row %q sums up others: it is no run or epoch",
			schemas.Clip(row.cells[t.have[0]])))
	case row.broken != nil && (!perEpoch || len(row.cells) == 0): // epochs may lack cells
		d.note(row.broken)
	case strings.HasPrefix(row.cells[epochLists[0]], "["):
		d.note(d.lists(row.cells))
	case t.unclear != nil:
		d.note(new(*t.unclear))
	case perEpoch:
		t.epoch(d, output.ColumnOf(row.cells[t.phase]))
		return
	}
	d.add()
}

// noteFailure sets the outcome of an ended run by a column that is true for a failure, beside that of the states.
func (t *table) noteFailure(d *runDraft, cells map[string]string) {
	outcome, known := outcomeOf(d.values[FieldOutcome])
	if known && outcome != schemas.EventFinished {
		return
	}
	for _, name := range t.have {
		failed, err := strconv.ParseBool(strings.ToLower(cells[name]))
		if isFailure.MatchString(name) && err == nil && (failed || !known) {
			d.values[FieldOutcome] = endOf(!failed)
		}
	}
}

// inWords converts a plain number in a column whose name has another unit of time, and an exit code.
func inWords(field, column, text string) string {
	v, err := strconv.ParseFloat(text, 64)
	_, unit := output.CutUnit(column)
	switch {
	case err != nil:
	case slices.Contains(durations, field) && unit > 0 && unit != 1:
		return strconv.FormatFloat(v*unit, 'g', -1, 64)
	case field == FieldOutcome && exitCode.MatchString(column):
		return endOf(v == 0)
	}
	return text
}

// isFailure matches the names of columns that are true for a run that failed.
var isFailure = regexp.MustCompile(`(?i)(?:failed|crashed)$`)

// exitCode matches the names of columns of exit codes.
var exitCode = regexp.MustCompile(`(?i)(?:exit[ ._-]?(?:code|status)|return[ ._-]?code)$`)

// sums are the names of rows that summarize other rows.
var sums = []string{
	"mean", "avg", "average", "median", "std", "stdev", "sd", "sum", "total", "min", "max", "overall",
}

// isSum reports whether the first cell of a row has one of the names sums.
func (t *table) isSum(row record) bool {
	return len(t.have) > 0 && slices.Contains(sums, strings.ToLower(row.cells[t.have[0]]))
}

// end adds the runs whose rows are epochs. It returns an error of Options.
func (t *table) end() error {
	if t.columns == nil {
		t.decide()
	}
	for _, run := range t.order {
		d := run.draft
		for _, field := range []string{
			FieldEpochSeconds, FieldSeconds, FieldAccuracy, FieldError, FieldEpoch, FieldEpochsDone, FieldLoss,
		} {
			delete(d.values, field) // belongs to an epoch
		}
		d.note(t.epochs(run))
		d.add()
	}
	return t.err
}

// callField returns a field with its name in the source.
func (t *table) callField(field string) string {
	if name := t.columns[field]; name != "" && name != field {
		return field + " (" + name + ")"
	}
	return field
}
