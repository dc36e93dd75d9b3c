package evidence

import "math"

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

// Missing returns why no SLO can be promised for a configuration.
func (p *Predictor) Missing(c Configuration) Missing {
	s := p.subjects[c.subject()]
	if s == nil || s.time == nil || !c.valid() {
		return Missing{Lacks: LacksModel}
	}
	c = c.Banded()
	node, ran := s.time.nodes[c.NodeType]
	if !ran {
		return Missing{Lacks: LacksNodeType}
	}
	if _, measured := s.time.measured[c]; measured {
		return Missing{}
	}

	// The range is checked first: an estimate costs more.
	at := pointOf(&c, node)
	if m := s.time.reaches[node].missing(&at); m.Lacks != "" {
		return m
	}
	if n := len(s.time.measured); n < minConfigurations {
		return Missing{LacksConfigurations, n, n}
	}
	if _, support, _ := s.time.estimate(&c); support.Promisable() {
		return Missing{}
	}
	return Missing{Lacks: LacksAgreement}
}

// missing returns which feature of a point lies outside the range.
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
