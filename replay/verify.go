// Package replay repeats the decisions of a recorded log: the events of jobs, nodes and regressors,
// and the advice. Log.Verify makes every answer, prediction and warning of the log again and
// compares the numbers. Log.LateJobs counts the late jobs of the last month that would have been in
// time with the batch size that Courier promises.
//
// ReadBus reads a log. The package changes nothing: it never publishes. The same log gives the same
// result.
// A Log must not be changed while it is replayed; apart from that its methods may be called
// concurrently.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/advisor/shares"
	"courier/schemas"
)

// Verification compares the decisions of a log with those repeated from its events.
type Verification struct {
	Events       int               `json:"events"`
	FirstOfJobs  uint64            `json:"first_sequence"` // of JOB; more than 1: older events are gone
	Answers      VerifyCounts      `json:"answers"`        // to job.submit
	Predictions  VerifyCounts      `json:"predictions"`    // advice for running jobs, and admissions
	Warnings     VerifyCounts      `json:"warnings"`       // risk events, including all-clears
	Unrepeatable []Unrepeatable    `json:"unrepeatable"`
	Differences  []FieldDifference `json:"first_differences"` // at most one of each kind
}

// VerifyCounts counts recorded events by the outcome of repeating them: with the same numbers,
// with other numbers, or not at all, because their inputs are not in the log.
type VerifyCounts struct {
	Equal        int `json:"equal"`
	Different    int `json:"different"`
	Unrepeatable int `json:"unrepeatable"`
}

// Total adds up all kinds.
func (v *Verification) Total() (all VerifyCounts) {
	for _, c := range []VerifyCounts{v.Answers, v.Predictions, v.Warnings} {
		all.Equal += c.Equal
		all.Different += c.Different
		all.Unrepeatable += c.Unrepeatable
	}
	return all
}

// Unrepeatable is the reason why some events could not be repeated.
type Unrepeatable struct {
	Reason string `json:"reason"`
	Events int    `json:"events"`
}

// verifier applies a log to the state of an advisor and makes its decisions again.
type verifier struct {
	versions *versions
	cluster  *cluster.Cluster
	result   Verification
	reasons  map[string]int
	attempts map[*LogRecord]attempt // at the cause of a record
	first    map[*VerifyCounts]*FieldDifference
}

// attempt is the outcome of repeating a decision; equal if both fields are nil.
type attempt struct {
	difference *FieldDifference
	err        error // reason why it cannot be repeated
}

// errNoRun means that the state has no run of the job of an event.
var errNoRun = errors.New("the log does not hold the run of the event")

// Verify repeats every decision of the log and compares the numbers.
func (l *Log) Verify(ctx context.Context) (*Verification, error) {
	v := &verifier{
		versions: l.versions(),
		cluster:  cluster.New(),
		reasons:  map[string]int{},
		attempts: map[*LogRecord]attempt{},
		first:    map[*VerifyCounts]*FieldDifference{},
	}
	for _, s := range l.steps() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if s.decide {
			v.attempts[s.LogRecord] = v.decideAgain(s.LogRecord)
			continue
		}
		if _, _, ok := s.madeFrom(); ok {
			v.count(s.LogRecord)
		}
		v.cluster.Apply(s.Event, s.Sequence, s.StoredAt)
	}

	v.result.Events, v.result.FirstOfJobs = len(l.Records), l.firstOfJobs()
	for _, reason := range slices.Sorted(maps.Keys(v.reasons)) {
		v.result.Unrepeatable = append(v.result.Unrepeatable,
			Unrepeatable{Reason: reason, Events: v.reasons[reason]})
	}
	for _, c := range []*VerifyCounts{&v.result.Answers, &v.result.Predictions, &v.result.Warnings} {
		if d := v.first[c]; d != nil {
			v.result.Differences = append(v.result.Differences, *d)
		}
	}
	return &v.result, nil
}

// count counts a decision. If it was not equal at its cause, it is made again at its own position:
// an advisor that has just started names an old cause, but has read all later events.
func (v *verifier) count(r *LogRecord) {
	counts := &v.result.Predictions
	switch r.Event.(type) {
	case *schemas.Submitted:
		counts = &v.result.Answers
	case *schemas.Risk:
		counts = &v.result.Warnings
	}

	a, tried := v.attempts[r]
	if !tried || a.difference != nil || errors.Is(a.err, errNoRun) {
		second := v.decideAgain(r)
		if !tried || second == (attempt{}) || a.difference == nil {
			a = second
		}
	}
	switch {
	case a.err != nil:
		counts.Unrepeatable++
		v.reasons[a.err.Error()]++
	case a.difference == nil:
		counts.Equal++
	default:
		counts.Different++
		if v.first[counts] == nil {
			v.first[counts] = a.difference
		}
	}
}

// decideAgain repeats the decision of a record with the current state.
func (v *verifier) decideAgain(r *LogRecord) attempt {
	q := decide.Recall(v.cluster, r.Event)
	if q == nil {
		return attempt{err: errNoRun}
	}
	_, at, _ := r.madeFrom()
	recorded := adviceOf(r.Event)
	candidates, err := v.candidates(q, recorded, r)
	if err != nil {
		return attempt{err: err}
	}

	var first attempt
	for i, regressors := range candidates {
		decided := repeat(q, recorded, regressors, at)
		if recorded != nil {
			shares.ApplyPolicy(v.cluster, decided, recorded)
		}
		d, err := compare(r, q, recorded, decided)
		if d == nil || err != nil {
			return attempt{err: err}
		}
		if i == 0 {
			first.difference = d
		}
	}
	return first
}

// repeat repeats a decision, with the moves of CPUs that were planned then.
func repeat(q *decide.Question, recorded *schemas.Advice, r decide.Regressors, at time.Time) *schemas.Advice {
	switch {
	case recorded == nil:
	case recorded.Move != nil:
		return shares.DecideMove(q, *recorded.Move, r, at)
	default:
		q = q.AssumeMoves(recorded)
	}
	return decide.Decide(q, r, at)
}

// adviceOf returns the advice that an event holds; nil for a warning.
func adviceOf(e schemas.Event) *schemas.Advice {
	switch e := e.(type) {
	case *schemas.Submitted:
		return &e.Advice
	case *schemas.JobAdmitted:
		return &e.Advice
	case *schemas.Advice:
		return e
	}
	return nil
}

// candidates returns the sets of regressors that may have made a decision.
func (v *verifier) candidates(
	q *decide.Question, recorded *schemas.Advice, r *LogRecord,
) ([]decide.Regressors, error) {
	_, at, _ := r.madeFrom()
	if recorded == nil {
		all, err := v.versions.champions(at)
		return []decide.Regressors{all}, err
	}
	hasCores := func(h schemas.Hardware) bool { return h.Cores > 0 }
	if recorded.Load.ProcessesPerCore > 0 && !slices.ContainsFunc(q.Hardware, hasCores) {
		return nil, errors.New("the samples of its node are no longer in the log")
	}
	return v.versions.named(recorded.Regressors, at)
}

// compare compares a decision with the recorded one: a whole advice, or the numbers of a warning.
func compare(r *LogRecord, q *decide.Question, recorded, again *schemas.Advice) (*FieldDifference, error) {
	if recorded != nil {
		again.EventID, again.CauseSequence = recorded.EventID, recorded.CauseSequence
		return firstDifference(r, recorded, again)
	}
	risk := r.Event.(*schemas.Risk)
	was, is := warning{&risk.Probability, &risk.PredictedSeconds}, warning{}
	if x := again.Running(q.Self.Setting.BatchSize, q.Self.Setting.CPUs); x != nil {
		is = warning{x.Probability, x.PredictedSeconds}
	}
	return firstDifference(r, was, is)
}

// warning holds the numbers of a warning that are compared.
type warning struct {
	Probability      *float64 `json:"probability"`
	PredictedSeconds *float64 `json:"predicted_seconds"`
}

// WriteText writes the counts as a table, the reasons and the first differences. Tabs separate cells, for
// the caller to align.
func (v *Verification) WriteText(out io.Writer) {
	fmt.Fprintf(out, "%d events", v.Events)
	if v.FirstOfJobs > 1 {
		fmt.Fprintf(out, "; the log begins with event %d of the jobs, earlier events were dropped",
			v.FirstOfJobs)
	}
	fmt.Fprintln(out, "\n\nreplayed\tequal\tdifferent\tunrepeatable\t")
	for _, line := range []struct {
		name string
		VerifyCounts
	}{
		{"answers", v.Answers},
		{"predictions", v.Predictions},
		{"warnings", v.Warnings},
		{"all", v.Total()},
	} {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t\n", line.name, line.Equal, line.Different,
			line.Unrepeatable)
	}
	for _, u := range v.Unrepeatable {
		fmt.Fprintf(out, "unrepeatable: %d because %s\n", u.Events, u.Reason)
	}
	for _, d := range v.Differences {
		fmt.Fprintf(out, "first difference: %s, event %d: %s was %s, is %s\n",
			d.EventID, d.Sequence, d.Field, d.Recorded, d.Replayed)
	}
}
