package trainer

import (
	"math"

	"courier/schemas"
)

// Reasons for leaving out a whole run: published studies contain such runs.
const (
	refusedGap    = "run with epochs missing between others"
	refusedBack   = "run whose epoch numbers went back: a restart, or another job's log"
	refusedModel  = "run that names several models or datasets: another job's log"
	refusedCopied = "run with exactly the times of another run"
)

// distinctEpochs is the number of epochs from which on two runs do not have the same times by
// chance.
const distinctEpochs = 3

// implausible returns why a run is left out; "" if it is not. seen holds the times of the runs
// before it, and gets its own.
func (r *run) implausible(seen map[uint64]bool) string {
	switch {
	case r.back:
		return refusedBack
	case r.inconsistent:
		return refusedModel
	case r.gap:
		return refusedGap
	}
	if !r.times.telling() {
		return ""
	}
	if seen[r.times.sum] {
		return refusedCopied
	}
	seen[r.times.sum] = true
	return ""
}

// runTimes sums up the durations of a run's epochs, so that copies of the run are found.
type runTimes struct {
	sum    uint64 // FNV-1a of the durations' bits
	first  float64
	epochs int
	differ bool
}

// Parameters of the 64-bit FNV-1a hash (RFC 9923).
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func (t *runTimes) add(seconds float64) {
	if t.epochs == 0 {
		t.sum, t.first = fnvOffset, seconds
	}
	t.epochs++
	t.differ = t.differ || seconds != t.first
	bits := math.Float64bits(seconds)
	for shift := 0; shift < 64; shift += 8 {
		t.sum = (t.sum ^ bits>>shift&0xff) * fnvPrime
	}
}

// telling reports whether the durations tell the run from others.
func (t *runTimes) telling() bool { return t.epochs >= distinctEpochs && t.differ }

// checkModel notes whether an event of the run names another model or dataset.
func (r *run) checkModel(s *schemas.Setting) {
	r.inconsistent = r.inconsistent || r.model != s.Model || r.dataset != s.Dataset
}
