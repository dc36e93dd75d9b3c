package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"courier/advisor"
	"courier/schemas"
)

// verification says whether a log replays to the numbers that it holds.
type verification struct {
	Answers     tally        `json:"answers"`     // to job.submit
	Predictions tally        `json:"predictions"` // of running jobs, advice events; and admissions
	Warnings    tally        `json:"warnings"`    // risk events, all-clears included
	Unknown     []unknown    `json:"unrepeatable"`
	Differences []difference `json:"first_differences"` // at most one of each kind
}

// tally counts recorded events: made again with the same numbers, with others,
// or not at all, because what they were made from is not in the log.
type tally struct {
	Equal        int `json:"equal"`
	Different    int `json:"different"`
	Unrepeatable int `json:"unrepeatable"`
}

func (t *tally) add(o tally) {
	t.Equal, t.Different, t.Unrepeatable = t.Equal+o.Equal, t.Different+o.Different, t.Unrepeatable+o.Unrepeatable
}

// total adds up all kinds.
func (v *verification) total() (all tally) {
	for _, t := range []tally{v.Answers, v.Predictions, v.Warnings} {
		all.add(t)
	}
	return all
}

// unknown is why events could not be made again.
type unknown struct {
	Reason string `json:"reason"`
	Events int    `json:"events"`
}

// difference is where a replay first comes to something else.
type difference struct {
	EventID  string          `json:"event_id"`
	Sequence uint64          `json:"sequence"` // in its stream
	Field    string          `json:"field"`
	Recorded json.RawMessage `json:"recorded"` // null: absent
	Replayed json.RawMessage `json:"replayed"`
}

// verifier replays a log through the fold and the decisions of the advisor.
type verifier struct {
	versions *versions
	cluster  *advisor.Cluster
	result   verification
	reasons  map[string]int
	tried    map[*replayRecord]attempt // at their causes
	first    map[*tally]*difference
}

// attempt is what came of making an event again: equal, where both are nil.
type attempt struct {
	difference *difference
	err        error // why it cannot be made again
}

// errNoRun says that the cluster does not know the job that an event is about.
var errNoRun = errors.New("the log does not tell of the run that it speaks of")

// verify makes everything again that an advisor wrote into the log.
func (l *replayLog) verify(ctx context.Context) (*verification, error) {
	v := &verifier{versions: l.versions(), cluster: advisor.NewCluster(), reasons: map[string]int{}, tried: map[*replayRecord]attempt{}, first: map[*tally]*difference{}}
	for _, s := range l.steps() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.ask {
			v.tried[s.replayRecord] = v.again(s.replayRecord)
			continue
		}
		if _, _, ok := madeFrom(s.replayRecord); ok {
			v.count(s.replayRecord)
		}
		if s.changes() {
			v.cluster.Apply(s.Event, s.Sequence, s.StoredAt)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(v.reasons)) {
		v.result.Unknown = append(v.result.Unknown, unknown{reason, v.reasons[reason]})
	}
	for _, t := range []*tally{&v.result.Answers, &v.result.Predictions, &v.result.Warnings} {
		if d := v.first[t]; d != nil {
			v.result.Differences = append(v.result.Differences, *d)
		}
	}
	return &v.result, nil
}

// count judges an event. What was not equal at its cause is asked again at its
// own place: an advisor that has just started speaks of an old cause, but has
// read all that came after it.
func (v *verifier) count(r *replayRecord) {
	t := &v.result.Predictions
	switch r.Event.(type) {
	case *schemas.Submitted:
		t = &v.result.Answers
	case *schemas.Risk:
		t = &v.result.Warnings
	}
	first, tried := v.tried[r]
	if !tried || first.difference != nil || errors.Is(first.err, errNoRun) {
		if second := v.again(r); !tried || second == (attempt{}) || first.difference == nil {
			first = second
		}
	}
	switch {
	case first.err != nil:
		t.Unrepeatable++
		v.reasons[first.err.Error()]++
	case first.difference == nil:
		t.Equal++
	default:
		t.Different++
		if v.first[t] == nil {
			v.first[t] = first.difference
		}
	}
}

// again decides anew what an event says.
func (v *verifier) again(r *replayRecord) attempt {
	q := v.cluster.Recall(r.Event)
	if q == nil {
		return attempt{err: errNoRun}
	}
	_, at, _ := madeFrom(r)
	candidates := []regressorSet{}
	var recorded *schemas.Advice
	switch e := r.Event.(type) {
	case *schemas.Submitted:
		recorded = &e.Advice
	case *schemas.JobAdmitted:
		recorded = &e.Advice
	case *schemas.Advice:
		recorded = e
	default:
		all, err := v.versions.inUse(at)
		if err != nil {
			return attempt{err: err}
		}
		candidates = append(candidates, all)
	}
	if recorded != nil {
		if recorded.Load.ProcessesPerCore > 0 && !slices.ContainsFunc(q.Hardware, func(h schemas.Hardware) bool { return h.Cores > 0 }) {
			return attempt{err: errors.New("the samples of its node are not in the log any more")}
		}
		var err error
		if candidates, err = v.versions.named(recorded.Regressors, at); err != nil {
			return attempt{err: err}
		}
	}
	var first attempt
	for i, regressors := range candidates {
		decided := advisor.Decide(q, regressors.advisor(), at)
		if recorded != nil {
			v.cluster.Judge(decided, recorded)
		}
		d, err := compared(r, q, recorded, decided)
		if d == nil || err != nil {
			return attempt{err: err}
		}
		if i == 0 {
			first.difference = d
		}
	}
	return first
}

// compared holds a decision against what was recorded of it: a whole advice, or
// the figures of a warning.
func compared(r *replayRecord, q *advisor.Question, recorded, again *schemas.Advice) (*difference, error) {
	var a, b any = recorded, again
	if recorded != nil {
		again.EventID, again.CauseSequence = recorded.EventID, recorded.CauseSequence
	} else {
		risk, now := r.Event.(*schemas.Risk), again.Running(q.Self.Setting.BatchSize, q.Self.Setting.CPUs)
		a, b = warned{&risk.Probability, &risk.PredictedSeconds}, warned{}
		if now != nil {
			b = warned{now.Probability, now.PredictedSeconds}
		}
	}
	x, err := schemas.Marshal(a)
	if err != nil {
		return nil, err
	}
	y, err := schemas.Marshal(b)
	if err != nil || bytes.Equal(x, y) {
		return nil, err
	}
	d := &difference{EventID: r.Event.ID(), Sequence: r.Sequence}
	var was, is any
	if err := json.Unmarshal(x, &was); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(y, &is); err != nil {
		return nil, err
	}
	d.find("", was, is)
	return d, nil
}

// find sets the first field in which two documents differ, by name.
func (d *difference) find(path string, a, b any) bool {
	if x, ok := a.(map[string]any); ok {
		if y, ok := b.(map[string]any); ok {
			names := slices.Collect(maps.Keys(x))
			for name := range y {
				if _, both := x[name]; !both {
					names = append(names, name)
				}
			}
			slices.Sort(names)
			for _, name := range names {
				if d.find(path+"."+name, x[name], y[name]) {
					return true
				}
			}
			return false
		}
	}
	if x, ok := a.([]any); ok {
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				if d.find(fmt.Sprintf("%s[%d]", path, i), x[i], y[i]) {
					return true
				}
			}
			return false
		}
	}
	was, _ := json.Marshal(a) // read from JSON a moment ago
	is, _ := json.Marshal(b)
	if bytes.Equal(was, is) {
		return false
	}
	d.Field, d.Recorded, d.Replayed = path[min(1, len(path)):], was, is
	return true
}

// warned are the figures of a warning.
type warned struct {
	Probability      *float64 `json:"probability"`
	PredictedSeconds *float64 `json:"predicted_seconds"`
}
