package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"courier/runner/output"
)

// epochLists are the fields whose cell may have a list with one value per epoch: time, accuracy and loss.
var epochLists = [...]string{"epoch_seconds", "accuracies", "losses"}

// maxDocument is the maximum size of a JSON document of several lines.
const maxDocument = 256 << 20

// json reads lines with one run or one epoch each, or a document. A run or an epoch
// has the fields of a row of a CSV file, those of objects in it have names such as config.batch_size. A run may
// have lists with a value per epoch, such as "epoch_seconds":[2.5,2.1,2.2].
//
// A document is a list of such objects, an object with one such list, whose other fields are those of
// each row, or the pods or jobs of Kubernetes.
func (r *Reader) json(name string, in io.Reader) error {
	b := bufio.NewReaderSize(in, 64<<10)
	s := jsonSource{r.newTable(name, nil)}
	head, err := b.Peek(b.Size())
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	in = b
	first, _, isLine := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte("\n"))
	if isLine && !json.Valid(standard(first)) {
		whole, err := io.ReadAll(io.LimitReader(b, maxDocument+1))
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if document := standard(whole); len(whole) <= maxDocument && json.Valid(document) {
			return errors.Join(s.value(0, document), s.end())
		}
		in = io.MultiReader(bytes.NewReader(whole), b)
	}
	var failed error
	err = eachLine(in, func(number int, line []byte) {
		if failed == nil {
			failed = s.value(number, standard(line))
		}
	})
	if err != nil {
		err = fmt.Errorf("read %s: %w", name, err)
	}
	return errors.Join(err, failed, s.end())
}

// jsonSource is the state of reading a source.
type jsonSource struct{ *table }

func (s jsonSource) end() error {
	if s.table.columns == nil && len(s.sample) == 0 {
		return nil
	}
	return s.table.end()
}

// nonFinite matches the numbers that Python's json module writes and JSON does not allow.
var nonFinite = regexp.MustCompile(`([:,\[]\s*)(?:NaN|-?Infinity)\b`)

// standard returns a text with null for the numbers that JSON does not allow.
func standard(text []byte) []byte {
	if json.Valid(text) {
		return text
	}
	return nonFinite.ReplaceAll(text, []byte("${1}null"))
}

// value reads a line or a document, which has only numbers that JSON allows.
func (s jsonSource) value(line int, text []byte) error {
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
	if name, list := nested(fields); list != nil && s.areRows(list[0], fields) {
		delete(fields, name)
		constants := map[string]string{}
		flatten(constants, "", fields)
		return s.rows(line, constants, list)
	}
	return s.object(line, nil, fields)
}

// areRows reports whether the elements of a list in an object are rows: they are epochs, or jobs with a state, or
// have the configuration of runs, and the object has no state or time of its own. Other lists, such as those of
// tags or of phases, belong to the run that the object is.
func (s jsonSource) areRows(element json.RawMessage, object map[string]json.RawMessage) bool {
	var inner map[string]json.RawMessage
	if json.Unmarshal(element, &inner) != nil {
		return false
	}
	of := func(fields map[string]json.RawMessage) map[string]string {
		cells := map[string]string{}
		flatten(cells, "", fields)
		return columnsOf(names{have: slices.Sorted(maps.Keys(cells))}, s.o.Columns)
	}
	has := func(found map[string]string, fields ...string) bool {
		return slices.ContainsFunc(fields, func(field string) bool { return found[field] != "" })
	}
	row := of(inner)
	isJob := has(row, FieldRunID) && has(row, FieldOutcome) && !has(of(object), FieldOutcome)
	isRun := has(row, FieldModel, FieldBatchSize, FieldEpochs, FieldCommand) &&
		!has(of(object), FieldSeconds, FieldEpochSeconds, FieldEndedAt)
	isOfKubernetes := inner["spec"] != nil
	return has(row, FieldEpoch) || isJob || isRun || isOfKubernetes
}

// rows reads the elements of a list as rows, which have constants besides.
func (s jsonSource) rows(line int, constants map[string]string, list []json.RawMessage) error {
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
func (s jsonSource) object(line int, constants map[string]string, fields map[string]json.RawMessage) error {
	row := record{line: line, cells: maps.Clone(constants)}
	if row.cells == nil {
		row.cells = map[string]string{}
	}
	flatten(row.cells, "", fields)
	completePod(row.cells)
	for _, name := range epochLists {
		if raw := fields[name]; raw != nil && raw[0] == '[' {
			row.cells[name] = string(raw)
		}
	}
	return s.add(row)
}

// maxDepth is the maximum depth of objects whose fields are read.
const maxDepth = 8

// flatten adds the fields of an object to cells, those of objects in it as outer.inner, and those of a list of
// objects as list.0.inner.
func flatten(cells map[string]string, prefix string, fields map[string]json.RawMessage) {
	for name, raw := range fields {
		var inner map[string]json.RawMessage
		if raw[0] == '{' && strings.Count(prefix, ".") < maxDepth && json.Unmarshal(raw, &inner) == nil {
			flatten(cells, prefix+name+".", inner)
			continue
		}
		var list []map[string]json.RawMessage
		if raw[0] == '[' && strings.Count(prefix, ".") < maxDepth && json.Unmarshal(raw, &list) == nil {
			for i, inner := range list {
				flatten(cells, fmt.Sprintf("%s%s.%d.", prefix, name, i), inner)
			}
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

// lists reads the cells with one value per epoch.
func (d *runDraft) lists(cells map[string]string) *Refusal {
	var lists [len(epochLists)][]*float64
	for i, name := range epochLists {
		if text := cells[name]; text != "" && json.Unmarshal([]byte(text), &lists[i]) != nil {
			return refuse(ReasonInvalid, name, "want a list of numbers, one per epoch, such as [2.5, 2.1]")
		}
		if n := len(lists[i]); n > 0 && n != len(lists[0]) {
			return refuse(ReasonEpochs, name, "%d values, but %d epochs have a time", n, len(lists[0]))
		}
	}
	took, accuracies, losses := lists[0], lists[1], lists[2]
	// A low percentage alone may look like a ratio.
	arePercentages := slices.ContainsFunc(accuracies, func(v *float64) bool { return v != nil && *v > 1 })
	for i, v := range took {
		if v == nil || !(*v > 0) {
			return refuse(ReasonPositive, epochLists[0], "the time of epoch %d is not above 0", i+1)
		}
		e := PastEpoch{Number: uint32(i + 1), Seconds: *v}
		if len(accuracies) > 0 {
			e.Accuracy = accuracies[i]
		}
		if arePercentages && e.Accuracy != nil {
			e.Accuracy = new(output.FromPercent(*e.Accuracy))
		}
		if len(losses) > 0 {
			e.Loss = losses[i]
		}
		d.epochs = append(d.epochs, e)
	}
	return nil
}
