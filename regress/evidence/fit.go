package evidence

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Options of a fit. Zero fields mean the documented defaults.
type Options struct {
	// LastEpoch uses the accuracy of the last epoch instead of the best: a level is reached at
	// the epoch from which the run stays at or above it.
	LastEpoch bool
	// Threads that fit subjects in parallel; 0 means 1.
	Threads int
}

// Fit learns from runs. Runs without times or accuracies are ignored; without any run the regressor
// is empty. Fit returns an error if ctx ends.
func Fit(ctx context.Context, runs []Run, o Options) (*Regressor, error) {
	runs = distinct(runs)
	groups := groupNodes(runs)
	runsOf := bySubject(regrouped(runs, groups))
	subjects := slices.SortedFunc(maps.Keys(runsOf), subject.compare)
	h := &Regressor{Format: format, Subjects: make([]Subject, len(subjects)), NodeGroups: groups}
	measured := make([][]ConfigurationTimes, len(subjects))
	var all components
	var startups spread
	for i, s := range subjects {
		measured[i] = measure(runsOf[s])
		all.add(componentsOf(measured[i]))
		h.Subjects[i] = Subject{Model: s.model, Dataset: s.dataset}
		h.Subjects[i].Startup = measureStartups(runsOf[s])
		startups.add(startupSpread(h.Subjects[i].Startup))
	}
	for i := range h.Subjects {
		shareStartupVariance(h.Subjects[i].Startup, startups)
	}
	err := forEach(cmp.Or(o.Threads, 1), len(subjects), func(i int) error {
		s := &h.Subjects[i]
		var err error
		if s.Time, err = fitTime(ctx, measured[i], all); err != nil {
			return err
		}
		s.Accuracy, err = fitAccuracy(ctx, runsOf[subjects[i]], o.LastEpoch)
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

// forEach calls do for 0 to n-1 on several goroutines and returns the first error.
func forEach(threads, n int, do func(i int) error) error {
	errs := make([]error, n)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(max(threads, 1), max(n, 1)) {
		workers.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return cmp.Or(errs...)
}

// measure summarizes the timed runs of one subject by configuration.
func measure(runs []Run) []ConfigurationTimes {
	var all []ConfigurationTimes
	for i := 0; i < len(runs); {
		m, n := ConfigurationTimes{Configuration: runs[i].Configuration}, i
		for ; n < len(runs) && runs[n].Configuration == m.Configuration; n++ {
			m.count(&runs[n])
		}
		if i = n; m.Runs > 0 {
			all = append(all, m)
		}
	}
	return latest(all)
}

// count adds a run to the sums (Welford's recurrence).
func (m *ConfigurationTimes) count(r *Run) {
	t, ok := r.timing()
	if !ok {
		return
	}
	m.Runs++
	n := float64(m.Runs)
	d := t.mean - m.Mean
	m.Mean += d / n
	m.Squares += d * (t.mean - m.Mean)
	m.InverseEpochs += (1/t.epochs - m.InverseEpochs) / n
	m.EpochSquares += t.squares
	m.EpochFreedom += t.freedom
	if r.StartedAt.After(m.LastAt) {
		m.LastAt = r.StartedAt
	}
}

// latest keeps the configurations with the latest runs, at most MaxConfigurations.
func latest(all []ConfigurationTimes) []ConfigurationTimes {
	if len(all) <= MaxConfigurations {
		return all
	}
	slices.SortStableFunc(all, func(a, b ConfigurationTimes) int {
		return b.LastAt.Compare(a.LastAt)
	})
	all = slices.Clone(all[:MaxConfigurations])
	slices.SortFunc(all, func(a, b ConfigurationTimes) int { return a.compare(b.Configuration) })
	return all
}

// fitTime fits the epoch times of one subject; nil if no run was timed.
func fitTime(
	ctx context.Context, measured []ConfigurationTimes, all components,
) (*TimeModel, error) {
	if len(measured) == 0 {
		return nil, nil
	}
	v := variancesOf(componentsOf(measured), all)
	t := &TimeModel{
		EpochVariance: v.epoch, RunVariance: v.run, Degrees: v.degrees,
		Configurations: measured,
	}
	l := newLikelihood(t.observations())
	var err error
	t.Hyperparameters, err = l.search(ctx)
	t.RunVariance *= l.runRatio
	return t, err
}

// fitAccuracy fits the accuracies of one subject; nil if there is none.
func fitAccuracy(ctx context.Context, runs []Run, forGood bool) (*AccuracyModel, error) {
	curves := curvesOf(runs)
	if len(curves) == 0 {
		return nil, nil
	}
	m := &AccuracyModel{LastEpoch: forGood}
	m.Levels, m.Quantiles = levelsOf(curves)
	m.count(curves)
	err := m.search(ctx)
	return m, err
}
