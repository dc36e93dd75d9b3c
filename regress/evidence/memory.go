package evidence

import (
	"context"
	"hash/maphash"
	"maps"
	"sync"
)

// Memory holds the fits of subjects, so that a fit repeats only those whose runs have changed. It
// forgets what the last fits did not use. It is for one kind of runs and is safe for concurrent use.
// The zero value is empty; a nil pointer remembers nothing.
type Memory struct {
	mu    sync.Mutex
	round int
	fits  map[uint64]*subjectFit // by fingerprint
}

// usedRounds is the number of fits for which an unused subject is remembered. An update of a State
// fits its base and what it serves.
const usedRounds = 3

// begin begins a fit.
func (m *Memory) begin() *Memory {
	if m == nil {
		m = &Memory{}
	}
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
		maphash.WriteComparable(&h, [2]float64{r.StartupSeconds, r.MeanSeconds})
		maphash.WriteComparable(&h, [2]int{r.EpochCount, len(r.Epochs)})
		for _, e := range r.Epochs {
			maphash.WriteComparable(&h, e)
		}
	}
	return h.Sum64()
}
