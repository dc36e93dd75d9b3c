package advisor

import (
	"maps"
	"math"
	"slices"

	"courier/schemas"
)

// Record is how the promises of the past came out: what the present ones are
// corrected by. It is a value that never changes; kept returns the next one. It
// follows from the log alone, because a promise is recorded with its figures.
//
// The table of residuals is that of the regressor at first; each job that ends
// puts one of its own, of the whole job, in the place of one of them. A whole
// job's residual holds what no regressor of epochs knows: jobs that came later.
//
// How much longer a job takes than predicted depends on what it is: one with few
// CPUs suffers more from those that come later. So each kind of job has a shift,
// the mean of its residuals, and the table holds what they scatter around it.
type Record struct {
	recent []float64           // residuals of the last jobs less the shift of their kind then, oldest first
	sorted []float64           // the same in order
	kinds  map[kind]total      // residuals of each kind
	all    total               // residuals of all
	alpha  map[float64]float64 // by confidence: how often a bound may fail (Gibbs, Candes 2021)
	digest string              // of the regressor of epoch times that predicted the last of them
}

const (
	recordWindow = 200  // residuals that count (models: adaptive conformal)
	recordGamma  = 0.02 // how fast alpha learns
	// Alpha stays within these multiples of what was asked for. At 0 nothing
	// could be promised, and what is never accepted never teaches that it can be.
	leastAlpha, mostAlpha = 0.2, 3
)

// kind is what a job's residual depends on, of all that is known before it runs.
type kind struct {
	model string
	cpus  uint32
}

func kindOf(s *schemas.Setting) kind { return kind{s.Model, s.CPUs} }

// total adds up residuals; old ones fade.
type total struct{ sum, n float64 }

const (
	kindWindow = 50  // residuals of a kind that count
	kindShrink = 4   // the mean of all counts like so many residuals of a kind
	mostKinds  = 256 // that are remembered; a kind beyond has the shift of all
)

func (t total) add(residual, window float64) total {
	if t.n >= window {
		t.sum, t.n = t.sum*(window-1)/window, window-1
	}
	return total{t.sum + residual, t.n + 1}
}

// shift is how much longer a kind of job takes than predicted, as a logarithm:
// its own mean, shrunk towards that of all, and that towards 0.
func (r *Record) shift(k kind) float64 {
	if r == nil {
		return 0
	}
	common := r.all.sum / (r.all.n + kindShrink)
	t := r.kinds[k]
	return (t.sum + kindShrink*common) / (t.n + kindShrink)
}

// broken reports whether bounds failed so often lately that what the record holds
// is of a spell which the regressor did not know.
func (r *Record) broken() bool {
	for confidence, a := range r.alpha {
		if a < (1-confidence)/2 {
			return true
		}
	}
	return false
}

// by is the record for jobs that another regressor predicts. That one has learnt of
// the spell that broke the promises of the last: were its residuals kept, nothing
// could be promised for as many jobs as the window holds.
func (r *Record) by(digest string) *Record {
	if r == nil || r.digest == digest || !r.broken() {
		return r
	}
	return nil
}

// kept is the record after a job of a kind that a regressor predicted to take some
// seconds, whose bound (0: it had none) was to hold with a confidence, and that
// took measured.
func (r *Record) kept(digest string, k kind, predicted, bound, confidence, measured float64) *Record {
	residual := math.Log(measured / predicted)
	if math.IsNaN(residual) || math.IsInf(residual, 0) {
		return r
	}
	r = r.by(digest)
	next := &Record{alpha: map[float64]float64{}, kinds: map[kind]total{}, digest: digest}
	if r != nil {
		next.all = r.all
		maps.Copy(next.kinds, r.kinds)
		next.recent = append(next.recent, r.recent[max(0, len(r.recent)+1-recordWindow):]...)
		for c, a := range r.alpha {
			next.alpha[c] = a
		}
	}
	next.recent = append(next.recent, residual-r.shift(k))
	next.all = next.all.add(residual, recordWindow)
	if t, known := next.kinds[k]; known || len(next.kinds) < mostKinds {
		next.kinds[k] = t.add(residual, kindWindow)
	}
	next.sorted = slices.Sorted(slices.Values(next.recent))
	if bound > 0 {
		miss := 0.0
		if measured > bound {
			miss = 1
		}
		fair := 1 - confidence
		next.alpha[confidence] = min(max(next.failing(confidence)+recordGamma*(fair-miss), leastAlpha*fair), mostAlpha*fair)
	}
	return next
}

// failing is the share of bounds that may fail for a confidence to be kept.
func (r *Record) failing(confidence float64) float64 {
	if r != nil {
		if a, ok := r.alpha[confidence]; ok {
			return a
		}
	}
	return 1 - confidence
}

// table returns the own residuals in order.
func (r *Record) table() []float64 {
	if r == nil {
		return nil
	}
	return r.sorted
}

// rank is how many of the own residuals are at most x, and how many there are.
func (r *Record) rank(x float64) (rank, count int) {
	return rankIn(r.table(), x), len(r.table())
}

// calibrated maps the share of a table to a probability, so that the level which
// keeps the confidence is that confidence.
func (r *Record) calibrated(share, confidence float64) float64 {
	level := 1 - r.failing(confidence)
	if share <= level {
		return share * confidence / level
	}
	return 1 - (1-share)*(1-confidence)/(1-level)
}
