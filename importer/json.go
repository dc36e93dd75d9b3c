package importer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"courier/runner/output"
)

// maxDocument is the maximum size of a JSON document of several lines.
const maxDocument = 256 << 20

// json reads lines with one run or one epoch each, or a document. A run or an epoch
// has the fields of a row of a CSV file, those of objects in it have names such as config.batch_size. A run may
// have lists with a value per epoch, such as "epoch_seconds":[2.5,2.1,2.2].
//
// A document is a list of such objects, an object with one such list, whose other fields are those of
// each row, or the pods or jobs of Kubernetes.
func (t *table) json(in *bufio.Reader) error {
	begin, _ := in.Peek(in.Size())
	first, _, isLine := bytes.Cut(bytes.TrimLeft(begin, " \t\r\n"), []byte("\n"))
	rest := io.Reader(in)
	if isLine && !json.Valid(standard(first)) {
		whole, err := io.ReadAll(io.LimitReader(in, maxDocument+1))
		if err != nil {
			return err
		}
		if document := standard(whole); len(whole) <= maxDocument && json.Valid(document) {
			t.value(0, map[string]string{}, document)
			return nil
		}
		rest = io.MultiReader(bytes.NewReader(whole), in)
	}
	return eachLine(rest, func(number int, line []byte) {
		t.value(number, map[string]string{}, standard(line))
	})
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

// value reads a row, or a list or an object with rows. The cells of what it is in are outer.
func (t *table) value(line int, outer map[string]string, text []byte) {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil {
		for _, element := range list {
			t.value(line, outer, element)
		}
		return
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		t.add(record{line: line, broken: refuse(ReasonUnreadable, "", "not a JSON object: %s", err)})
		return
	}
	name, list := nested(fields)
	isOuter := list != nil && t.areRows(list[0], fields)
	if isOuter {
		delete(fields, name)
	}
	cells := maps.Clone(outer)
	flatten(cells, "", fields)
	if !isOuter {
		completePod(cells)
		t.add(record{line: line, cells: cells})
		return
	}
	for _, element := range list {
		t.value(line, cells, element)
	}
}

// areRows reports whether the elements of a list in an object are rows: they are epochs, or jobs with a state, or
// have the configuration of runs, and the object has no state or time of its own. Other lists, such as those of
// tags or of phases, belong to the run that the object is.
func (t *table) areRows(element json.RawMessage, object map[string]json.RawMessage) bool {
	var inner map[string]json.RawMessage
	if json.Unmarshal(element, &inner) != nil {
		return false
	}
	of := func(fields map[string]json.RawMessage) map[string]string {
		cells := map[string]string{}
		flatten(cells, "", fields)
		n := namesOf(cells)
		n.requested = t.requested
		n.decide()
		return n.columns
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

// maxDepth is the maximum depth of objects whose fields are read.
const maxDepth = 10

// flatten adds the fields of an object to cells, those of objects in it as outer.inner, and those of a list of
// objects as list.0.inner.
func flatten(cells map[string]string, prefix string, fields map[string]json.RawMessage) {
	for name, raw := range fields {
		name = prefix + name
		var inner map[string]json.RawMessage
		var list []map[string]json.RawMessage
		switch isDeep := strings.Count(prefix, ".") >= maxDepth; {
		case raw[0] == '{' && !isDeep && json.Unmarshal(raw, &inner) == nil:
			flatten(cells, name+".", inner)
		case raw[0] == '[' && !isDeep && json.Unmarshal(raw, &list) == nil:
			for i, inner := range list {
				flatten(cells, fmt.Sprintf("%s.%d.", name, i), inner)
			}
		case raw[0] == '[' && slices.Contains(epochLists[:], name):
			cells[name] = string(raw)
		default:
			cells[name] = cell(textOf(raw))
		}
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

// epochLists are the fields whose cell may have a list with one value per epoch: time, accuracy and loss.
var epochLists = [...]string{"epoch_seconds", "accuracies", "losses"}
