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
}

// Fit learns from runs. Runs without times or accuracies are ignored; without any run the regressor
// is empty. Subjects are fitted alone, but for the variance that others lend. Fit returns an error
// only if ctx ends.
func Fit(ctx context.Context, runs []Run, o Options) (*Regressor, error) {
	runs = distinct(runs)
	groups := groupNodes(runs)
	runsOf := bySubject(regrouped(runs, groups))
	subjects := slices.SortedFunc(maps.Keys(runsOf), subject.compare)
	h := &Regressor{Format: format, Subjects: make([]Subject, len(subjects)), NodeGroups: groups}
	measured := make([][]*measuredTimes, len(subjects))
	aside := make([][]SetAside, len(subjects))
	threads := cmp.Or(o.Threads, 1)
	err := forEach(threads, len(subjects), func(i int) error {
		s := subjects[i]
		measured[i], aside[i] = measure(runsOf[s])
		h.Subjects[i] = Subject{Model: s.model, Dataset: s.dataset,
			Startup: measureStartups(runsOf[s]), Accuracy: collectRecords(runsOf[s])}
		return ctx.Err()
	})
	if err != nil {
		return nil, fmt.Errorf("fit evidence: %w", err)
	}
	h.SetAside = slices.Concat(o.SetAside, slices.Concat(aside...))
	h.SetAside = h.SetAside[max(0, len(h.SetAside)-MaxSetAside):]
	lent, startups := make([]spread, len(subjects)), make([]spread, len(subjects))
	passages := make([]spread, len(subjects))
	for i := range subjects {
		lent[i] = lendRuns(measured[i])
		startups[i] = lendStartups(h.Subjects[i].Startup)
		passages[i] = h.Subjects[i].Accuracy.lendPassages()
	}
	err = forEach(threads, len(subjects), func(i int) error {
		s := &h.Subjects[i]
		fitStartups(s.Startup, othersOf(startups, i))
		if s.Accuracy != nil {
			s.Accuracy.Prior = passageVariance.borrow(othersOf(passages, i))
		}
		var err error
		s.Time, err = fitTime(ctx, measured[i], priorVariance(othersOf(lent, i)))
		if err == nil && s.Time != nil {
			s.Time.fitLoads(runsOf[subjects[i]])
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("fit evidence: %w", err)
	}
	h.Subjects = slices.DeleteFunc(h.Subjects, func(s Subject) bool {
		return s.Time == nil && s.Startup == nil && s.Accuracy == nil
	})
	return h, nil
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

// forEach calls do for 0 to n-1 on several goroutines and returns the first error.
func forEach(threads, n int, do func(i int) error) error {
	var all errgroup.Group
	all.SetLimit(max(threads, 1))
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	return all.Wait()
}

// fitTime fits the times of one subject, given the variance of runs of other subjects; nil if no run
// was timed.
func fitTime(ctx context.Context, all []*measuredTimes, prior float64) (*TimeModel, error) {
	if len(all) == 0 {
		return nil, nil
	}
	t := newTimeModel(all, prior)
	var err error
	t.Hyperparameters, err = newSearch(t.observations()).run(ctx)
	t.smooth()
	return t, err
}

// newTimeModel returns the curves of a subject, without hyperparameters.
func newTimeModel(all []*measuredTimes, prior float64) *TimeModel {
	t := &TimeModel{PaceVariance: paceVarianceOf(all)}
	for i := range all {
		t.Configurations = append(t.Configurations, fitCurve(all, i, prior))
	}
	t.fitNoise(all)
	t.measurePaces()
	return t
}
