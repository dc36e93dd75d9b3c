package evidence

import "math"

// Support is the kind of evidence for a prediction.
type Support uint8

// The kinds of support, from none to best.
const (
	NeverRun     Support = iota // no run of the model on the node type
	Extrapolated                // outside the measured range on the node type
	OwnEpochs                   // only the running job's own epochs: an estimate, no promise
	Interpolated                // between measured batch sizes
	Measured                    // the configuration itself ran
)

var supportNames = [...]string{"never run", "extrapolated", "own epochs", "interpolated", "measured"}

// String returns the name for reports.
func (s Support) String() string { return supportNames[s] }

// Promisable reports whether the support suffices to promise an SLO.
func (s Support) Promisable() bool { return s >= Interpolated }

// RunCounts are the numbers of timed runs behind a prediction.
type RunCounts struct {
	Configuration int // of the same configuration
	NodeType      int // of the model on the node type
	Model         int // of the model and dataset
}

// The limits of interpolation (docs/decisions/0016).
const (
	maxOctaves               = 3
	minConfigurations        = 3
	maxInterpolatedDeviation = 0.15
)

// measuredRange is the range of the measured configurations of a model on one node type.
type measuredRange struct {
	low, high [inputs]float64
	batches   []float64 // log2 of measured batch sizes, in order
	runs      int
}

// slack is the tolerance of the measured range of a load: the width of its band.
var slack = [inputs]float64{
	2: jobsBand / 2,
	3: processesBand,
	4: foreignScale * foreignBand,
	5: foreignScale * foreignBand,
}

// around returns the log2 of the nearest measured batch sizes below and above one, which may be
// measured itself; infinities if there are none.
func (r *measuredRange) around(x float64) (below, above float64) {
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

// Reasons why an SLO cannot be promised for a configuration.
const (
	LacksModel          = "model"          // no timed run of the model
	LacksNodeType       = "node_type"      // no run of the model on the node type
	LacksCPUs           = "cpus"           // outside the measured range of CPUs
	LacksLoad           = "load"           // outside the measured loads
	LacksBatchSize      = "batch_size"     // outside the measured batch sizes
	LacksNeighbours     = "neighbours"     // the neighbouring batch sizes are too far apart
	LacksConfigurations = "configurations" // too few configurations to interpolate
	LacksAgreement      = "agreement"      // the neighbouring runs are too few, or differ too much
)

// Missing is the reason why no SLO can be promised for a configuration.
type Missing struct {
	// Lacks is one of the constants above; "" if nothing is missing.
	Lacks string
	// Low and High describe the measured runs: the range of CPUs, batch sizes or concurrent
	// jobs, the batch sizes around a gap, or the number of configurations (in both). They are 0
	// for other reasons.
	Low, High int
}

// missing returns which feature of a point lies outside the range. Within it a point lies between
// measured batch sizes at most maxOctaves apart.
func (r *measuredRange) missing(p *point) Missing {
	for f := 1; f < inputs; f++ {
		if p.x[f] >= r.low[f]-slack[f]-1e-9 && p.x[f] <= r.high[f]+slack[f]+1e-9 {
			continue
		}
		switch f {
		case 1:
			return Missing{LacksCPUs, exactPower(r.low[f]), exactPower(r.high[f])}
		case 2: // concurrent jobs / 2
			return Missing{LacksLoad, int(math.Floor(2 * r.low[f])), int(math.Ceil(2 * r.high[f]))}
		}
		return Missing{Lacks: LacksLoad}
	}
	below, above := r.around(p.x[0])
	switch {
	case math.IsInf(below, 0) || math.IsInf(above, 0):
		return Missing{LacksBatchSize, exactPower(r.low[0]), exactPower(r.high[0])}
	case above-below > maxOctaves:
		return Missing{LacksNeighbours, exactPower(below), exactPower(above)}
	}
	return Missing{}
}

// exactPower returns the whole number with the given log2.
func exactPower(log2 float64) int { return int(math.Round(math.Exp2(log2))) }
