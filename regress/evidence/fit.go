package evidence

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

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
	runs = sortedRuns(runs)
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
	used     int    // last round of the Memory in which it was used
}

// fitSubject fits the sorted runs of a subject.
func fitSubject(ctx context.Context, s subject, runs []Run) (*subjectFit, error) {
	measured, aside := measure(runs)
	f := &subjectFit{aside: aside}
	f.Subject = Subject{Model: s.model, Dataset: s.dataset,
		Startup: fitStartups(runs), Accuracy: collectRecords(runs)}
	f.passages = f.Accuracy.lendPassages()
	if len(measured) > 0 {
		f.Time = newTimeModel(measured)
		var err error
		if f.Time.Hyperparameters, err = newSearch(f.Time.observations()).run(ctx); err != nil {
			return nil, err
		}
		f.Time.smooth()
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
		t.Configurations = append(t.Configurations, fitCurve(all, i, runVariance))
	}
	t.fitNoise(all)
	t.measurePaces()
	return t
}

// Memory holds the fits of subjects, so that a fit repeats only those whose runs have changed. It keeps
// only the subjects of the last few fits, so its size is bounded by theirs. A Memory is for the fits of one
// State, and is safe for concurrent use. The zero value is empty; a nil pointer remembers nothing.
type Memory struct {
	mu    sync.Mutex
	round int                    // number of fits that have begun
	fits  map[uint64]*subjectFit // by fingerprint
}

// usedRounds is the number of fits for which an unused subject is kept. An update of a State fits its base
// and the regressor that it serves, so a subject may be used only in every second or third fit.
const usedRounds = 3

// begin starts the next round, drops the subjects that were not used for too long, and returns the memory
// of the fit: m, or an empty one if m is nil.
func (m *Memory) begin() *Memory {
	m = cmp.Or(m, &Memory{})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fits == nil {
		m.fits = map[uint64]*subjectFit{}
	}
	m.round++
	maps.DeleteFunc(m.fits, func(_ uint64, f *subjectFit) bool { return m.round-f.used > usedRounds })
	return m
}

// fit returns the fit of the sorted runs of a subject.
func (m *Memory) fit(ctx context.Context, s subject, runs []Run) (*subjectFit, error) {
	key := fingerprint(runs)
	m.mu.Lock()
	f := m.fits[key]
	m.mu.Unlock()
	if f == nil {
		var err error
		if f, err = fitSubject(ctx, s, runs); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fits[key], f.used = f, m.round
	return f, nil
}

var fingerprintSeed = maphash.MakeSeed()

// fingerprint hashes all that a fit of runs depends on.
func fingerprint(runs []Run) uint64 {
	var h maphash.Hash
	h.SetSeed(fingerprintSeed)
	for i := range runs {
		r := &runs[i]
		maphash.WriteComparable(&h, r.Configuration)
		maphash.WriteComparable(&h, [3]string{r.ID, r.Job, r.Node})
		maphash.WriteComparable(&h, [2]int64{r.StartedAt.UnixNano(), r.EndedAt.UnixNano()})
		maphash.WriteComparable(&h, r.StartupSeconds)
		maphash.WriteComparable(&h, len(r.Epochs))
		for _, e := range r.Epochs {
			maphash.WriteComparable(&h, e)
		}
	}
	return h.Sum64()
}
