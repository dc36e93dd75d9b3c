package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"courier/schemas"
)

// Fields with one value per epoch.
const (
	listSeconds    = "epoch_seconds"
	listAccuracies = "accuracies"
	listLosses     = "losses"
)

// jsonLines reads lines with one run or one Courier event each. A run has the fields of a CSV file,
// and lists with a value per epoch:
//
//	{"run_id":"r1","model":"lenet5","dataset":"mnist","batch_size":64,"cpus":2,"epochs":3,
//	 "started_at":"2024-05-01T10:00:00Z","epoch_seconds":[2.5,2.1,2.2],
//	 "accuracies":[0.81,0.88,0.9],"losses":[0.9,0.5,0.4],"nodes":["worker-1"]}
//
// An event is its body alone, or {"subject":…,"event":…} as courier replay --save writes it. An
// unknown field of a run is an error that names it. Events keep their IDs. Events that a runner
// does not publish (submissions, advice) are ignored.
func (r *Reader) jsonLines(name string, in io.Reader) error {
	s := &eventRuns{Reader: r, name: name, runs: map[string]*eventRun{}}
	err := eachLine(in, func(number int, line []byte) {
		at := Place{name, number}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			r.read++
			r.refuse(at, refuse(ReasonUnreadable, "", "not a JSON object: %s", err))
			return
		}
		switch {
		case fields["artifact"] != nil:
		case fields["event"] != nil:
			s.event(at, textOf(fields["subject"]), fields["event"])
		case fields["event_id"] != nil:
			s.event(at, "", line)
		default:
			r.line(at, fields)
		}
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	s.end()
	return nil
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

// line reads a run.
func (r *Reader) line(at Place, fields map[string]json.RawMessage) {
	var have []string
	for name := range fields {
		if name != listSeconds && name != listAccuracies && name != listLosses {
			have = append(have, name)
		}
	}
	slices.Sort(have)
	d := &runDraft{Place: at, values: map[string]string{}, called: columnsOf(have, r.o.Columns)}
	used := map[string]bool{}
	for field, name := range d.called {
		used[name] = true
		if value := textOf(fields[name]); value != "null" {
			d.values[field] = value
		}
	}
	for _, name := range have {
		if !used[name] {
			r.read++
			r.refuse(at,
				refuse(ReasonInvalid, clip(name),
					"is not a field of a run; want one of %s, %s, %s, %s",
					strings.Join(Fields(), ", "), listSeconds, listAccuracies, listLosses))
			return
		}
	}
	if why := d.lists(fields); why != nil {
		r.read++
		r.refuse(at, why)
		return
	}
	r.addRun(d)
}

// lists reads the fields with one value per epoch.
func (d *runDraft) lists(fields map[string]json.RawMessage) *Refusal {
	read := func(name string) (values []*float64, why *Refusal) {
		if raw := fields[name]; raw != nil && json.Unmarshal(raw, &values) != nil {
			return nil, refuse(ReasonInvalid, name,
				"want a list of numbers, one per epoch, such as [2.5, 2.1]")
		}
		return values, nil
	}
	took, why := read(listSeconds)
	if why != nil {
		return why
	}
	accuracies, why := read(listAccuracies)
	if why != nil {
		return why
	}
	losses, why := read(listLosses)
	if why != nil {
		return why
	}
	for name, list := range map[string][]*float64{listAccuracies: accuracies, listLosses: losses} {
		if len(list) > 0 && len(list) != len(took) {
			return refuse(ReasonEpochs, name, "%d values, but %d epochs have a time", len(list),
				len(took))
		}
	}
	for i, v := range took {
		if v == nil || !(*v > 0) {
			return refuse(ReasonPositive, listSeconds, "the time of epoch %d is not above 0", i+1)
		}
		e := PastEpoch{Number: uint32(i + 1), Seconds: *v, Source: schemas.DurationReported}
		if len(accuracies) > 0 {
			e.Accuracy = accuracies[i]
		}
		if len(losses) > 0 {
			e.Loss = losses[i]
		}
		d.epochs = append(d.epochs, e)
	}
	return nil
}
