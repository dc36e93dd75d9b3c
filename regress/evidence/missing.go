package evidence

import "math"

// What a promise for a configuration lacks.
const (
	LacksModel          = "model"          // no timed run of the model
	LacksNodeType       = "node_type"      // none on the type of node
	LacksCPUs           = "cpus"           // none with so many or so few CPUs
	LacksLoad           = "load"           // none under such a load
	LacksBatchSize      = "batch_size"     // none with so large or so small a batch size
	LacksNeighbours     = "neighbours"     // the batch sizes around it are too far apart
	LacksConfigurations = "configurations" // too few configurations to say anything between them
	LacksAgreement      = "agreement"      // the runs around it are too few, or differ too much
)

// Missing is why nothing is promised for a configuration.
type Missing struct {
	// Lacks is one of the constants above; "" if nothing is missing.
	Lacks string
	// Low and High are what ran: the range of CPUs, batch sizes or concurrent jobs, the batch
	// sizes around a gap, or the number of configurations (in both). 0 where that says nothing.
	Low, High int
}

// Missing returns what a promise for a configuration lacks.
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
	if n := len(s.time.measured); n < leastNeighbours {
		return Missing{LacksConfigurations, n, n}
	}
	if _, support, _ := s.time.estimate(&c); support.Promisable() {
		return Missing{}
	}
	return Missing{Lacks: LacksAgreement}
}

// missing returns what of the range a point lies outside of.
func (r *reach) missing(p *point) Missing {
	for f := 1; f < inputs; f++ {
		if p.x[f] >= r.low[f]-slack[f]-1e-9 && p.x[f] <= r.high[f]+slack[f]+1e-9 {
			continue
		}
		switch f {
		case 1:
			return Missing{LacksCPUs, exactly(r.low[f]), exactly(r.high[f])}
		case 2: // concurrent jobs / 2
			return Missing{LacksLoad, int(math.Floor(2 * r.low[f])), int(math.Ceil(2 * r.high[f]))}
		}
		return Missing{Lacks: LacksLoad}
	}
	below, above := r.around(p.x[0])
	switch {
	case math.IsInf(below, 0) || math.IsInf(above, 0):
		return Missing{LacksBatchSize, exactly(r.low[0]), exactly(r.high[0])}
	case above-below > mostOctaves:
		return Missing{LacksNeighbours, exactly(below), exactly(above)}
	}
	return Missing{}
}

// exactly is the whole number of which a feature is log2.
func exactly(log2 float64) int { return int(math.Round(math.Exp2(log2))) }
