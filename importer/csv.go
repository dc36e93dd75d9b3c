package importer

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"courier/schemas"
)

// csv reads a table with a header. With a column of epoch numbers each row is an epoch, and rows
// with the same run_id are a run; otherwise each row is a run.
func (r *Reader) csv(name string, in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	begin, err := b.Peek(b.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	t := csv.NewReader(b)
	t.Comma, t.FieldsPerRecord, t.TrimLeadingSpace = separator(begin), -1, true
	header, err := t.Read()
	if err != nil || len(header) < 2 {
		problem := "want a header of at least two columns, separated by commas, semicolons or tabs"
		if errors.Is(err, io.EOF) {
			problem = "the file is empty; " + problem
		}
		r.unreadable++
		r.refuse(Place{File: name, Line: 1}, refuse(ReasonUnreadable, "", "%s", problem))
		return nil
	}
	header[0] = strings.TrimPrefix(header[0], "\ufeff")
	table := &csvTable{
		Reader:  r,
		name:    name,
		header:  header,
		columns: columnsOf(header, r.o.Columns),
		open:    map[string]*runDraft{},
	}
	if err := table.check(); err != nil {
		return err
	}
	maps.Copy(r.columns, table.columns)
	maps.Copy(r.unused, proposals(header, r.usedColumns(table.columns)))
	for {
		row, err := t.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var wrong *csv.ParseError
		switch {
		case errors.As(err, &wrong):
			r.read++
			r.refuse(Place{name, wrong.Line}, refuse(ReasonUnreadable, "", "%s", wrong.Err))
		case err != nil:
			return fmt.Errorf("read %s: %w", name, err)
		default:
			line, _ := t.FieldPos(0)
			table.row(line, row)
		}
	}
	table.end()
	return nil
}

// usedColumns returns the columns that are read: those of fields and of --where.
func (r *Reader) usedColumns(columns map[string]string) map[string]string {
	used := maps.Clone(columns)
	for column := range r.o.Where {
		used["--where "+column] = column
	}
	return used
}

// separator returns the separator that occurs most often in the first line.
func separator(begin []byte) rune {
	line, _, _ := bytes.Cut(begin, []byte("\n"))
	best, most := ',', 0
	for _, c := range ",;\t" {
		if n := bytes.Count(line, []byte(string(c))); n > most {
			best, most = c, n
		}
	}
	return best
}

// csvTable is the state of reading a table.
type csvTable struct {
	*Reader
	name    string
	header  []string
	columns map[string]string    // field to column
	open    map[string]*runDraft // by run_id, if a row is an epoch
	order   []string
}

// check returns an error for a requested column that the table does not have.
func (t *csvTable) check() error {
	for field, column := range t.o.Columns {
		if !slices.Contains(t.header, column) {
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

func (t *csvTable) row(line int, row []string) {
	cell := func(column string) string {
		if i := slices.Index(t.header, column); i < len(row) {
			return strings.TrimSpace(row[i])
		}
		return ""
	}
	for column, want := range t.o.Where {
		if cell(column) != want {
			t.left++
			return
		}
	}
	d := &runDraft{Place: Place{t.name, line}, values: map[string]string{}, called: t.columns}
	for field, column := range t.columns {
		d.values[field] = cell(column)
	}
	if _, perEpoch := t.columns[FieldEpoch]; perEpoch {
		t.epoch(d)
		return
	}
	if len(row) != len(t.header) {
		t.Reader.read++
		t.refuse(d.Place,
			refuse(ReasonUnreadable, "", "the row has %d fields, the header %d", len(row),
				len(t.header)))
		return
	}
	t.addRun(d)
}

// epoch adds a row to its run. An invalid row invalidates the whole run.
func (t *csvTable) epoch(d *runDraft) {
	id := d.values[FieldRunID]
	run := t.open[id]
	if run == nil {
		run = d
		t.open[id], t.order = d, append(t.order, id)
	}
	if run.broken != nil {
		return
	}
	e, why := epochOf(d, t.columns[FieldError])
	if why != nil {
		why.Field = callField(t.columns, why.Field)
		run.Place, run.broken = d.Place, why
		return
	}
	run.epochs = append(run.epochs, e)
}

// epochOf parses the fields of an epoch. errorColumn is the name of the column of FieldError.
func epochOf(d *runDraft, errorColumn string) (e PastEpoch, why *Refusal) {
	field := FieldEpochSeconds
	if d.called[field] == "" {
		field = FieldSeconds
	}
	number, err := strconv.ParseUint(d.values[FieldEpoch], 10, 32)
	if err != nil || number > schemas.MaxEpochs {
		return e, refuse(ReasonInvalid, FieldEpoch, "%q is not an epoch number",
			clip(d.values[FieldEpoch]))
	}
	e.Number, e.Source = uint32(number), schemas.DurationReported
	if d.values[field] == "" {
		return e, refuse(ReasonMissing, FieldEpochSeconds,
			"missing in a row per epoch: name its column with --columns epoch_seconds=NAME")
	}
	if e.Seconds, why = seconds(field, d.values[field]); why != nil {
		return e, why
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
func (t *csvTable) end() {
	for _, id := range t.order {
		d := t.open[id]
		if d.broken != nil {
			t.Reader.read++
			t.refuse(d.Place, d.broken)
			continue
		}
		for _, field := range []string{
			FieldEpochSeconds, FieldSeconds, FieldAccuracy, FieldError, FieldEpoch, FieldLoss,
		} {
			delete(d.values, field) // belongs to the first epoch
		}
		countFromOne(d.epochs)
		t.addRun(d)
	}
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
