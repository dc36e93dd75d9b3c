package evidence

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Options of a fit. Zero fields mean the documented defaults.
type Options struct {
	// SetAside are runs that the caller left out, and why.
	SetAside []SetAside
	// Threads that fit subjects in parallel; 0 means 1.
	Threads int
	// Memory of previous fits; nil: fit each subject.
	Memory *Memory
}

// Fit learns from runs. Runs without times or accuracies are ignored; without any run the regressor
// is empty. Each subject is fitted alone; only the prior variance of passages comes from the other
// ones. Fit returns an error only if ctx ends.
func Fit(ctx context.Context, runs []Run, o Options) (*Regressor, error) {
	runs = distinct(runs)
	groups := groupNodes(runs)
	runsOf := bySubject(regrouped(runs, groups))
	subjects := slices.SortedFunc(maps.Keys(runsOf), subject.compare)
	fits := make([]*subjectFit, len(subjects))
	var all errgroup.Group
	all.SetLimit(cmp.Or(o.Threads, 1))
	known := o.Memory.begin()
	for i, s := range subjects {
		all.Go(func() (err error) {
			fits[i], err = known.fit(ctx, s, runsOf[s])
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, fmt.Errorf("fit evidence: %w", err)
	}
	h := &Regressor{Format: format, NodeGroups: groups, SetAside: slices.Clone(o.SetAside)}
	passages := make([]spread, len(fits))
	for i, f := range fits {
		passages[i] = f.passages
	}
	for i, f := range fits {
		h.SetAside = append(h.SetAside, f.aside...)
		s := f.Subject
		if s.Time == nil && s.Startup == nil && s.Accuracy == nil {
			continue
		}
		if s.Accuracy != nil {
			prior := passageVariance.borrow(othersOf(passages, i))
			s.Accuracy = &AccuracyModel{Prior: prior, Groups: s.Accuracy.Groups}
		}
		h.Subjects = append(h.Subjects, s)
	}
	h.SetAside = h.SetAside[max(0, len(h.SetAside)-MaxSetAside):]
	return h, nil
}

// subjectFit is the fit of a subject alone, without the prior of its passages.
type subjectFit struct {
	Subject
	aside    []SetAside
	passages spread // that it lends to others
	used     int    // last round of the memory that used it
}

// fitSubject fits the sorted runs of a subject.
func fitSubject(ctx context.Context, s subject, runs []Run) (*subjectFit, error) {
	measured, aside := measure(runs)
	f := &subjectFit{aside: aside}
	f.Subject = Subject{Model: s.model, Dataset: s.dataset,
		Startup: fitStartups(measureStartups(runs)), Accuracy: collectRecords(runs)}
	f.passages = f.Accuracy.lendPassages()
	if len(measured) > 0 {
		f.Time = newTimeModel(measured)
		var err error
		if f.Time.Hyperparameters, err = newSearch(f.Time.observations()).run(ctx); err != nil {
			return nil, err
		}
		f.Time.smooth()
		f.Time.fitLoads(runs)
	}
	f.evaluate(runs)
	return f, ctx.Err()
}

// maxLenders is the number of other subjects that lend a variance, so that a fit of thousands of
// subjects takes a time in proportion to their number.
const maxLenders = 100

// othersOf returns what the nearest other subjects lend.
func othersOf(lent []spread, i int) []spread {
	first := max(0, min(i-maxLenders/2, len(lent)-maxLenders-1))
	window := lent[first:min(len(lent), first+maxLenders+1)]
	return slices.Concat(window[:i-first], window[i-first+1:])
}

// newTimeModel returns the curves of a subject, without hyperparameters.
func newTimeModel(all []*measuredTimes) *TimeModel {
	t := &TimeModel{PaceVariance: paceVarianceOf(all)}
	for i := range all {
		t.Configurations = append(t.Configurations, fitCurve(all, i))
	}
	t.fitNoise(all)
	t.measurePaces()
	return t
}
