package trainer

import (
	"slices"
	"time"

	"courier/schemas"
)

// evictNeighbours removes the runs from the neighbours that ended Limits.Spans runs ago.
func (p *Past) evictNeighbours() {
	for len(p.ended) > p.limits.Spans {
		old := p.ended[0]
		p.ended[0] = endedRun{}
		p.ended = p.ended[1:]
		if old.run.ends == old.ends && old.run.indexed == indexedEnded {
			p.evict(old.run)
		}
	}
}

// evict removes a run from the neighbours, after making the loads final that it contributes to.
func (p *Past) evict(r *run) {
	p.freeze(r, r.span.Until)
	for _, o := range slices.Clone(p.neighbours.touching(r, r.span.From, r.span.Until)) {
		p.freeze(o, r.span.Until)
	}
	p.neighbours.remove(r)
	if r.dropped {
		p.forget(r)
	}
}

// freeze makes the loads of a run final that begin before an instant.
func (p *Past) freeze(r *run, until time.Time) {
	if r.dropped {
		return
	}
	if len(r.epochs) > 0 && r.startLoad == nil && r.span.From.Before(until) {
		r.startLoad = new(p.measure(r, r.span.From, r.epochs[0].begin()))
	}
	for ; r.frozen < len(r.epochs); r.frozen++ {
		e := &r.epochs[r.frozen]
		if !e.begin().Before(until) {
			return
		}
		e.load = p.measureEpoch(r, e)
	}
}

// measure returns the load of a run between two instants.
func (p *Past) measure(r *run, from, until time.Time) runLoad {
	self := r.span
	self.Hardware = make([]schemas.Hardware, len(self.Nodes))
	for i := range self.Nodes {
		self.Hardware[i] = p.hardware(r, i)
	}
	l, on := schemas.LoadBetween(self, p.neighbours.between(r, from, until), from, until)
	measured := runLoad{Load: l}
	for measured.node < len(self.Hardware)-1 && self.Hardware[measured.node] != on {
		measured.node++
	}
	return measured
}

// loadBefore returns the load of a run from its start to an instant, which may be final already.
func (p *Past) loadBefore(r *run, until time.Time, final *runLoad) runLoad {
	if final != nil {
		return *final
	}
	return p.measure(r, r.span.From, until)
}

// measureEpoch returns the load of a run during an epoch, and the foreign load of its node.
func (p *Past) measureEpoch(r *run, e *keptEpoch) runLoad {
	l := p.measure(r, e.begin(), e.end())
	if len(r.span.Nodes) == 1 {
		from := e.end().Add(-time.Duration(e.observed.Usage.Seconds * float64(time.Second)))
		e.observed.Foreign(r.span, p.neighbours.between(r, from, e.end()), e.end()).Set(&l.Load)
	}
	return l
}

// hardware returns the hardware of a node of a run, completed by the reports of other jobs.
func (p *Past) hardware(r *run, node int) (h schemas.Hardware) {
	if node >= len(r.span.Nodes) {
		return h
	}
	if node < len(r.span.Hardware) {
		h = r.span.Hardware[node]
	}
	return p.fleet.Complete(r.span.Nodes[node], h)
}

// loadOf returns a load as examples have it, and the hardware of the most loaded node.
func (p *Past) loadOf(r *run, l runLoad) (schemas.Load, schemas.Hardware) {
	on := p.hardware(r, l.node)
	if l.ProcessesPerCore = 0; on.Cores > 0 { // they may have become known later
		l.ProcessesPerCore = l.Processes / float64(on.Cores)
	}
	return l.Load, on
}
