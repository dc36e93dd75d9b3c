package evidence

import "math"

// Support says what a prediction rests on.
type Support uint8

// The kinds of support, from none to the best.
const (
	NeverRun     Support = iota // no run of the model on the node type
	Extrapolated                // outside of what the model ran on the node type
	Interpolated                // between measured batch sizes
	Measured                    // the configuration itself ran
)

var supportNames = [...]string{"never run", "extrapolated", "interpolated", "measured"}

// String returns the name in plain words.
func (s Support) String() string { return supportNames[s] }

// Promisable reports whether an SLO may be promised on this support.
func (s Support) Promisable() bool { return s >= Interpolated }

// Counts are the numbers of timed runs that a prediction rests on.
type Counts struct {
	Configuration int // of the very configuration
	NodeType      int // of the model on the node type
	Model         int // of the model and dataset
}

// The limits of interpolation (evidence method, promise rule).
const (
	mostOctaves        = 3
	leastNeighbours    = 3
	mostInterpolatedSD = 0.15
)

// reach is the range of what a model ran on one node type.
type reach struct {
	low, high [inputs]float64
	batches   []float64 // log2 of measured batch sizes, in order
	runs      int
}

// slack by which a load may lie outside the measured range: the width of its band.
var slack = [inputs]float64{
	2: jobsBand / 2,
	3: processesBand,
	4: foreignScale * foreignBand,
	5: foreignScale * foreignBand,
}

// interpolates reports whether a point lies between measured batch sizes at most
// mostOctaves apart, and within the range of the other features.
func (r *reach) interpolates(p *point) bool { return r.missing(p).Lacks == "" }

// around returns log2 of the measured batch sizes next to one, which may be one of them;
// infinities where there are none.
func (r *reach) around(x float64) (below, above float64) {
	below, above = math.Inf(-1), math.Inf(1)
	for _, b := range r.batches {
		if b <= x {
			below = b
		}
		if b >= x {
			return below, b
		}
	}
	return below, above
}
