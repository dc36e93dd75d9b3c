package evidence

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
	if t := s.time.times(&c); t.support.Promisable() {
		return Missing{}
	}
	return Missing{Lacks: LacksAgreement}
}
