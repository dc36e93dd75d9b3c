package simulate

import (
	"fmt"
	"slices"
	"time"

	"courier/schemas"
)

// Rule answers job requests. It only sees the event log of its world. One goroutine calls it, in
// the order of simulated time.
type Rule interface {
	// Apply receives the next event. The rule must not change it, because other rules see it, too.
	Apply(e schemas.Event, sequence uint64, at time.Time)
	// Submit answers a request, whose defaults are set. Only the decision, the node and the chosen
	// alternative of the advice matter: meets_slo is a promise, best_effort a refusal, and
	// exploring a run without a promise.
	Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error)
}

// Watcher is a rule that warns of promises at risk.
type Watcher interface {
	// Watch returns the warnings and all-clears after the last applied event. It is called after
	// each event of a job.
	Watch(at time.Time) []*schemas.Risk
}

// omniscient is a rule that sees the world: only rules of this package can.
type omniscient interface{ know(p *play) }

// View is the state of nodes and running jobs according to the events so far. It is for rules that
// have no other state.
type View struct {
	nodes   []WorldNode // ordered by name
	running map[string]schemas.Span
}

// Apply applies the next event.
func (v *View) Apply(e schemas.Event, _ uint64, _ time.Time) {
	switch e := e.(type) {
	case *schemas.Sample:
		i, known := slices.BinarySearchFunc(v.nodes, e.Node, func(n WorldNode, name string) int {
			switch {
			case n.Name < name:
				return -1
			case n.Name > name:
				return 1
			}
			return 0
		})
		if !known {
			v.nodes = slices.Insert(v.nodes, i, WorldNode{})
		}
		v.nodes[i] = WorldNode{Name: e.Node, Cores: e.Cores}
	case *schemas.Started:
		if v.running == nil {
			v.running = map[string]schemas.Span{}
		}
		v.running[e.JobID] = schemas.Span{JobID: e.JobID, Nodes: e.Nodes, CPUs: e.CPUs, From: e.At}
	case *schemas.Ended:
		delete(v.running, e.JobID)
	}
}

// Load returns the load on a node including a new job with cpus CPUs.
func (v *View) Load(n WorldNode, cpus uint32) schemas.Load {
	spans := make([]schemas.Span, 0, len(v.running))
	for _, s := range v.running {
		spans = append(spans, s) // in any order: sums of whole numbers are exact
	}
	load, _ := schemas.LoadNow(schemas.Span{
		Nodes:    []string{n.Name},
		CPUs:     cpus,
		Hardware: []schemas.Hardware{{Cores: n.Cores}},
	}, spans)
	return load
}

// Place returns the requested node. Otherwise it returns the node with the fewest processes per
// core among the nodes with enough cores for the smallest requested number of CPUs, the first by
// name, as the advisor does.
func (v *View) Place(q *schemas.JobRequest) (WorldNode, error) {
	if len(q.Nodes) > 0 {
		named := WorldNode{Name: q.Nodes[0]}
		for _, n := range v.nodes {
			if n.Name == named.Name {
				named.Cores = n.Cores
			}
		}
		return named, nil
	}
	best, least := -1, 0.0
	for i, n := range v.nodes {
		if int(n.Cores) < slices.Min(q.CPUs) {
			continue
		}
		if load := v.Load(n, 0).ProcessesPerCore; best < 0 || load < least {
			best, least = i, load
		}
	}
	if best < 0 {
		return WorldNode{}, fmt.Errorf("no node has enough cores for job %s", q.JobID)
	}
	return v.nodes[best], nil
}

// Answer returns the advice to run a request with a batch size and CPUs on a node.
func Answer(
	q *schemas.JobRequest,
	at time.Time,
	decision schemas.Decision,
	on WorldNode,
	load schemas.Load,
	batch, cpus uint32,
) *schemas.Advice {
	a := &schemas.Advice{JobStamp: schemas.JobStamp{
		Stamp: schemas.Stamp{At: at},
		JobID: q.JobID,
	}, Decision: decision, Action: schemas.ActionStart, Model: q.Model, Dataset: q.Dataset,
		Nodes:      []string{on.Name},
		SLOSeconds: q.SLO.Seconds(),
		Confidence: q.Confidence,
		Load:       load,
		Regressors: map[string]string{},
		Message:    fmt.Sprintf("batch size %d on %s", batch, schemas.FormatCPUs(cpus))}
	for _, c := range candidates(q) {
		a.Alternatives = append(a.Alternatives, schemas.Alternative{
			BatchSize: c.batch,
			CPUs:      c.cpus,
			Epochs:    uint32(q.Epochs),
		})
		if c.batch == batch && c.cpus == cpus {
			chosen := a.Alternatives[len(a.Alternatives)-1]
			a.Chosen = &chosen
		}
	}
	return a
}

// Names of the rules of this package.
const (
	RuleRandom  = "random"
	RuleLargest = "largest"
	RuleOracle  = "oracle"
)

// randomRule chooses a random candidate and promises everything.
type randomRule struct {
	View
	seed uint64
}

// NewRandom returns the rule that chooses a random candidate and always promises.
func NewRandom(seed uint64) Rule { return &randomRule{seed: seed} }

func (c *randomRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	all := candidates(&q)
	choice := all[randomFor(c.seed, streamRandomRule, q.JobID).IntN(len(all))]
	return accept(&c.View, &q, at, choice)
}

// largestRule chooses the largest batch size and promises everything.
type largestRule struct{ View }

// NewLargest returns the rule that chooses the largest batch size and number of CPUs, and always
// promises.
func NewLargest() Rule { return &largestRule{} }

func (l *largestRule) Submit(q schemas.JobRequest, at time.Time) (*schemas.Advice, error) {
	return accept(&l.View, &q, at, jobCandidate{
		uint32(slices.Max(q.BatchSizes)),
		uint32(slices.Max(q.CPUs)),
	})
}

func accept(v *View, q *schemas.JobRequest, at time.Time, c jobCandidate) (*schemas.Advice, error) {
	n, err := v.Place(q)
	if err != nil {
		return nil, err
	}
	return Answer(q, at, schemas.MeetsSLO, n, v.Load(n, c.cpus), c.batch, c.cpus), nil
}
