// Package replay re-evaluates a recorded log: the events of jobs, nodes and regressors, and the
// advice. Verify makes every answer, prediction and warning of the log again and compares the
// numbers. Run also lets other rules, regressors or confidences answer the same submissions, and
// compares their scores.
//
// A log is read from a bus (ReadBus) or from JSON lines (Parse), and saved as JSON lines
// (Log.Write). The package changes nothing: it never publishes. The same log gives the same result.
// A Log must not be changed while it is replayed; apart from that its methods may be called
// concurrently.
package replay

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"courier/regress"
	"courier/schemas"
	"courier/simulate"
)

// Options determine which rules answer the submissions of a log again.
type Options struct {
	Rules      []string        // names from Rules; without any, Run only verifies
	Regressors []string        // additional regressors for the rules; see Load
	Confidence float64         // additional confidence that every job requests; 0 means none
	Promise    schemas.Promise // additional promise that every job requests; empty means none

	// Load loads a regressor whose name is not a digest of the log. Nil without Regressors.
	Load func(name string) (*regress.Predictor, error)
}

// Validate returns an error that names the first invalid option.
func (o *Options) Validate() error {
	if o.Confidence < 0 || o.Confidence >= 1 {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", o.Confidence)
	}
	for i, name := range o.Rules {
		if !slices.Contains(Rules(), name) {
			return fmt.Errorf("rule %q is not one of %s", name, strings.Join(Rules(), ", "))
		}
		if slices.Contains(o.Rules[:i], name) {
			return fmt.Errorf("rule %q is given twice", name)
		}
	}
	return nil
}

// Reevaluation is the outcome of Run.
type Reevaluation struct {
	Events       int           `json:"events"`
	FirstOfJobs  uint64        `json:"first_sequence"` // of JOB; more than 1: older events are gone
	Verification *Verification `json:"verification"`
	Referee      string        `json:"referee,omitempty"` // predictor of the outcomes that were not measured
	Rules        []RuleScore   `json:"rules,omitempty"`
}

// Run verifies a log and lets the rules of the options answer its submissions.
func Run(ctx context.Context, l *Log, o Options) (*Reevaluation, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r := &Reevaluation{Events: len(l.Records)}
	for i := range l.Records {
		if l.Records[i].ofJobs() {
			r.FirstOfJobs = l.Records[i].Sequence
			break
		}
	}
	var err error
	if r.Verification, err = l.Verify(ctx); err != nil || len(o.Rules) == 0 {
		return r, err
	}

	variants, err := o.variants(l)
	if err != nil {
		return nil, err
	}
	h, err := l.lookBack(ctx)
	if err != nil {
		return nil, err
	}
	recorded := map[string]*schemas.Advice{}
	for _, e := range h.submissions {
		recorded[e.JobID] = &e.Advice
	}
	r.Referee = h.referee
	r.Rules = append(r.Rules, h.score(RuleRecorded, "", recorded))

	for _, name := range o.Rules {
		for _, v := range variants {
			rule := newRule(ctx, name)
			if v.name != "" && !rule.dependsOn(v) {
				continue
			}
			answers, err := l.answers(ctx, rule, v)
			if err != nil {
				return nil, fmt.Errorf("replay rule %s: %w", name, err)
			}
			r.Rules = append(r.Rules, h.score(name, v.name, answers))
		}
	}
	return r, nil
}

// variants returns the recorded circumstances, and the changed ones of the options.
func (o *Options) variants(l *Log) ([]variant, error) {
	all := []variant{{}}
	if len(o.Regressors) == 0 && o.Confidence == 0 && o.Promise == "" {
		return all, nil
	}

	changed := variant{
		regressors: regressorSet{},
		confidence: o.Confidence,
		promise:    o.Promise,
	}
	versions := l.versions()
	var names []string
	for _, name := range o.Regressors {
		target, v, err := versions.given(name, o.Load)
		if err != nil {
			return nil, err
		}
		if changed.regressors[target] != nil {
			return nil, fmt.Errorf("%s is the second regressor of %s", name, target)
		}
		changed.regressors[target] = v
		names = append(names, target+" of "+name)
	}
	if o.Confidence > 0 {
		names = append(names, fmt.Sprintf("confidence %g", o.Confidence))
	}
	if o.Promise != "" {
		names = append(names, "promise "+string(o.Promise))
	}
	changed.name = strings.Join(names, ", ")
	return append(all, changed), nil
}

// Rules returns the names of the rules that can answer the submissions of a log: all rules of
// simulate except the oracle, which needs the future.
func Rules() []string {
	return []string{
		simulate.RuleCourier,
		simulate.RulePaper,
		simulate.RuleRandom,
		simulate.RuleLargest,
	}
}

// RuleRecorded is the name of the recorded decisions.
const RuleRecorded = "recorded"
