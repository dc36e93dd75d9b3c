package advisor

import (
	"math"

	"courier/schemas"
)

// ownFactor is how much longer a run's epochs take than predicted, and by how
// much they narrow what is uncertain about it. With n epochs the mean of their
// log ratios, each to the batch size that it ran with, is shrunk by n/(n+1): as much of the error is taken to belong to
// the run as to each epoch.
func (m *Member) ownFactor(r *Regressor, code float64, said *memory) (factor, narrow float64) {
	sum, n := 0.0, 0.0
	var on reading
	for i := range m.laps {
		l := &m.laps[i]
		f := schemas.Features{
			BatchSize: l.batch,
			CPUs:      m.Setting.CPUs,
			ModelCode: code,
			Load:      l.load.Load,
			Node:      on.node(r, l.load.on),
		}
		if p, ok := r.predict(&f, said); ok && p.Value > 0 && l.seconds > 0 {
			sum += math.Log(l.seconds / p.Value)
			n++
		}
	}
	if n == 0 {
		return 1, 1
	}
	return math.Exp(sum / (n + 1)), max(leastNarrow, 1/math.Sqrt(n+1))
}

// leastNarrow is what own epochs leave of the uncertainty: jobs that come later
// slow down a job whose epochs are well known, too.
const leastNarrow = 0.5
