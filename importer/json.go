package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"courier/schemas"
)

// Fields with one value per epoch.
const (
	listSeconds    = "epoch_seconds"
	listAccuracies = "accuracies"
	listLosses     = "losses"
)

// maxDocument is the maximum size of a JSON document of several lines.
const maxDocument = 256 << 20

// json reads lines with one run, one epoch or one Courier event each, or a document. A run or an epoch
// has the fields of a row of a CSV file, those of objects in it have names such as config.batch_size.
// A run may have lists with a value per epoch:
//
//	{"run_id":"r1","model":"lenet5","dataset":"mnist","batch_size":64,"cpus":2,"epochs":3,
//	 "started_at":"2024-05-01T10:00:00Z","epoch_seconds":[2.5,2.1,2.2],
//	 "accuracies":[0.81,0.88,0.9],"losses":[0.9,0.5,0.4],"nodes":["worker-1"]}
//
// An event is its body alone, or {"subject":…,"event":…} as courier replay --save writes it. Events keep
// their IDs. Events that a runner does not publish (submissions, advice) are ignored.
//
// A document is a list of such objects, an object with one such list, whose other fields are those of
// each row, an object of lists of equal length, or the pods or jobs of Kubernetes.
func (r *Reader) json(name string, in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	s := &jsonSource{
		table:  r.newTable(name, nil),
		events: &eventRuns{Reader: r, runs: map[string]*eventRun{}},
	}
	head, err := b.Peek(b.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	in = b
	first, _, isLine := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	if isLine && !json.Valid(first) {
		whole, err := io.ReadAll(io.LimitReader(b, maxDocument+1))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if len(whole) <= maxDocument && json.Valid(whole) {
			return errors.Join(s.value(0, whole), s.end())
		}
		in = io.MultiReader(bytes.NewReader(whole), b)
	}
	var failed error
	err = eachLine(in, func(number int, line []byte) {
		if failed == nil {
			failed = s.value(number, line)
		}
	})
	if err != nil {
		err = fmt.Errorf("read %s: %w", name, err)
	}
	return errors.Join(err, failed, s.end())
}

// jsonSource is the state of reading a source.
type jsonSource struct {
	*table
	events *eventRuns
}

func (s *jsonSource) end() error {
	s.events.end()
	if s.table.columns == nil && len(s.sample) == 0 {
		return nil
	}
	return s.table.end()
}

// value reads a line or a document.
func (s *jsonSource) value(line int, text []byte) error {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil {
		return s.rows(line, nil, list)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil || fields == nil {
		if err == nil {
			err = errors.New("null")
		}
		return s.add(record{line: line, broken: refuse(ReasonUnreadable, "", "not a JSON object: %s", err)})
	}
	at := Place{s.name, line}
	switch {
	case fields["artifact"] != nil:
		return nil
	case fields["event"] != nil && fields["event"][0] == '{':
		s.events.event(at, textOf(fields["subject"]), fields["event"])
		return nil
	case fields["event_id"] != nil:
		s.events.event(at, "", text)
		return nil
	}
	if jobs := append(podsOf(text), slurmDocument(fields)...); jobs != nil {
		for _, cells := range jobs {
			s.batchJob(at, cells)
		}
		return nil
	}
	if columns := columnar(fields, s.o.Columns); columns != nil {
		for _, cells := range columns {
			if err := s.add(record{line: line, cells: cells}); err != nil {
				return err
			}
		}
		return nil
	}
	if name, list := nested(fields); list != nil {
		delete(fields, name)
		constants := map[string]string{}
		flatten(constants, "", fields)
		return s.rows(line, constants, list)
	}
	return s.object(line, nil, fields)
}

// rows reads the elements of a list as rows, which have constants besides.
func (s *jsonSource) rows(line int, constants map[string]string, list []json.RawMessage) error {
	for _, element := range list {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(element, &fields); err != nil || fields == nil {
			broken := refuse(ReasonUnreadable, "", "the list has an element that is not a JSON object")
			if err := s.add(record{line: line, broken: broken}); err != nil {
				return err
			}
			continue
		}
		if err := s.object(line, constants, fields); err != nil {
			return err
		}
	}
	return nil
}

// object reads an object as a row.
func (s *jsonSource) object(line int, constants map[string]string, fields map[string]json.RawMessage) error {
	row := record{line: line, cells: map[string]string{}}
	for _, name := range []string{listSeconds, listAccuracies, listLosses} {
		raw := fields[name]
		if raw == nil || raw[0] != '[' {
			continue
		}
		delete(fields, name)
		var values []*float64
		if json.Unmarshal(raw, &values) != nil {
			row.broken = refuse(ReasonInvalid, name,
				"want a list of numbers, one per epoch, such as [2.5, 2.1]")
			continue
		}
		if row.lists == nil {
			row.lists = map[string][]*float64{}
		}
		row.lists[name] = values
	}
	maps.Copy(row.cells, constants)
	flatten(row.cells, "", fields)
	return s.add(row)
}

// maxDepth is the maximum depth of objects whose fields are read.
const maxDepth = 4

// flatten adds the fields of an object to cells, those of objects in it as outer.inner.
func flatten(cells map[string]string, prefix string, fields map[string]json.RawMessage) {
	for name, raw := range fields {
		var inner map[string]json.RawMessage
		if raw[0] == '{' && strings.Count(prefix, ".") < maxDepth && json.Unmarshal(raw, &inner) == nil {
			flatten(cells, prefix+name+".", inner)
			continue
		}
		cells[prefix+name] = cell(textOf(raw))
	}
}

// textOf returns a JSON string, number or list as the text of a table cell.
func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		var all []string
		for _, v := range list {
			all = append(all, textOf(v))
		}
		return strings.Join(all, ",")
	}
	return string(bytes.TrimSpace(raw))
}

// nested returns the only field of an object that is a list of objects.
func nested(fields map[string]json.RawMessage) (name string, list []json.RawMessage) {
	for k, raw := range fields {
		var all []json.RawMessage
		if raw[0] != '[' || json.Unmarshal(raw, &all) != nil || len(all) == 0 || all[0][0] != '{' {
			continue
		}
		if list != nil {
			return "", nil // which one is meant is unknown
		}
		name, list = k, all
	}
	return name, list
}

// columnar returns the rows of an object whose fields are columns, as pandas and Keras write them: at
// least two lists of the same length. It returns nil for another object, such as a run with the lists of
// its nodes and tags, of which no list is a known column. A row per epoch gets its number if no column
// has it.
func columnar(fields map[string]json.RawMessage, requested map[string]string) (rows []map[string]string) {
	if fields[listSeconds] != nil {
		return nil // a run with lists
	}
	columns, constants := map[string][]string{}, map[string]string{}
	for name, raw := range fields {
		values := columnValues(raw)
		switch {
		case values != nil:
			columns[name] = values
		case raw[0] == '{':
			return nil
		default:
			constants[name] = cell(textOf(raw))
		}
	}
	have := slices.Sorted(maps.Keys(columns))
	found := columnsOf(names{have: have}, requested)
	if len(columns) < 2 || len(found) == 0 || len(found) == 1 && found[FieldNodes] != "" {
		return nil
	}
	numbered := isHistory(found)
	for i := range columns[have[0]] {
		row := maps.Clone(constants)
		for name, values := range columns {
			if len(values) != len(columns[have[0]]) {
				return nil
			}
			row[name] = values[i]
		}
		if numbered {
			row[FieldEpoch] = strconv.Itoa(i + 1)
		}
		rows = append(rows, row)
	}
	return rows
}

// isHistory reports whether columns are the history of a run, as of Keras: metrics and times, and nothing
// about whole runs. A time may be that of epochs if there is a loss, which tables of runs do not have.
func isHistory(found map[string]string) bool {
	perEpoch := []string{FieldAccuracy, FieldError, FieldLoss, FieldEpochSeconds}
	if found[FieldLoss] != "" {
		perEpoch = append(perEpoch, FieldSeconds)
	}
	for field := range found {
		if !slices.Contains(perEpoch, field) {
			return false
		}
	}
	return true
}

// columnValues returns the cells of a column: a list of numbers or texts, or an object with the keys
// from "0".
func columnValues(raw json.RawMessage) (values []string) {
	var list []json.RawMessage
	var indexed map[string]json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		if json.Unmarshal(raw, &indexed) != nil {
			return nil
		}
		for i := range len(indexed) {
			v, found := indexed[strconv.Itoa(i)]
			if !found {
				return nil
			}
			list = append(list, v)
		}
	}
	for _, v := range list {
		if v[0] == '{' || v[0] == '[' {
			return nil
		}
		values = append(values, cell(textOf(v)))
	}
	return values
}

// lists reads the fields with one value per epoch.
func (d *runDraft) lists(of map[string][]*float64) *Refusal {
	took := of[listSeconds]
	for _, name := range []string{listAccuracies, listLosses} {
		if list := of[name]; len(list) > 0 && len(list) != len(took) {
			return refuse(ReasonEpochs, name, "%d values, but %d epochs have a time", len(list), len(took))
		}
	}
	for i, v := range took {
		if v == nil || !(*v > 0) {
			return refuse(ReasonPositive, listSeconds, "the time of epoch %d is not above 0", i+1)
		}
		e := PastEpoch{Number: uint32(i + 1), Seconds: *v, Source: schemas.DurationReported}
		if list := of[listAccuracies]; len(list) > 0 {
			e.Accuracy = list[i]
		}
		if list := of[listLosses]; len(list) > 0 {
			e.Loss = list[i]
		}
		d.epochs = append(d.epochs, e)
	}
	return nil
}
