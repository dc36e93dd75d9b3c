package simulate

import (
	"context"
	"fmt"
	"slices"

	"courier/schemas"
)

// Scenario is what every rule plays: a world, its history, and the jobs to come.
type Scenario struct {
	World   *World
	History []Record
	Jobs    []Job // by time
}

// NewScenario draws a scenario; the same arguments give the same.
func NewScenario(w *World, submissions int, confidence float64, seed uint64) *Scenario {
	return &Scenario{
		World:   w,
		History: w.History(seed),
		Jobs:    w.Jobs(submissions, confidence, seed),
	}
}

// Outcome is what became of one submission.
type Outcome struct {
	JobID           string
	Decision        schemas.Decision
	Node            string
	BatchSize, CPUs uint32  // chosen
	Epochs          uint32  // that it ran; 0 for a refusal
	Seconds         float64 // from submission to its end; 0 for a refusal
	MetSLO          bool    // it ran, and ended in time
	SLOSeconds      float64
	Probability     *float64 // of meeting the SLO, as the rule said; nil: it said none
	Accuracy        float64  // the true one of the choice
	// AtOnce is the best candidate had it started at submission and nobody come
	// later; InHindsight had all who came later done as they did. Both on the node
	// that was advised.
	AtOnce, InHindsight Best
	Watched             bool      // by a Watcher
	Warnings            []Warning // its, in order
}

// Warning is what a rule said of a job that ran.
type Warning struct {
	Seconds     float64 // since submission
	Cleared     bool    // all clear
	Probability float64 // of keeping the SLO
	Cause       string
}

// play is one rule in its own copy of the world.
type play struct {
	*Scenario
	ctx       context.Context
	rule      Rule
	nodes     []node
	sequence  uint64
	samples   uint64 // of each node
	submitted int    // jobs, the one in hand included
	job       *Job   // that is in hand
	outcomes  []Outcome
	before    []node               // the advised node of each outcome, as it was at submission
	index     map[string]int       // job to its outcome
	arrivals  map[string][]arrival // starts on each node
}

// Play lets a rule answer every submission and returns what became of each, in
// the order of submission. progress may be nil; it is told how many submissions
// were answered. The error is ctx's or the rule's, or says that an advice or the
// world makes no sense.
func (s *Scenario) Play(
	ctx context.Context, rule Rule, progress func(done int),
) ([]Outcome, error) {
	p := &play{
		Scenario: s,
		ctx:      ctx,
		rule:     rule,
		nodes:    s.World.nodes(0),
		index:    map[string]int{},
		arrivals: map[string][]arrival{},
	}
	if k, ok := rule.(knowing); ok {
		k.know(p)
	}
	for _, r := range s.History {
		p.sequence = r.Sequence
		rule.Apply(r.Event, r.Sequence, r.At)
	}
	for i := range s.Jobs {
		p.job, p.submitted = &s.Jobs[i], i+1
		if err := p.runUntil(p.job.At); err != nil {
			return nil, err
		}
		if err := p.submit(p.job); err != nil {
			return nil, fmt.Errorf("job %s: %w", p.job.Request.JobID, err)
		}
		if progress != nil {
			progress(i + 1)
		}
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return p.outcomes, p.lookBack()
}

// runUntil lets the world go on: epochs end, jobs finish, nodes are sampled.
func (p *play) runUntil(until float64) error {
	for {
		sample := float64(p.samples) * p.World.SampleSeconds
		first, at := earliest(p.nodes)
		switch {
		case first != nil && at <= min(sample, until):
			if err := p.step(first); err != nil {
				return err
			}
		case sample <= until:
			p.sample(sample)
		default:
			for i := range p.nodes {
				p.nodes[i].pass(until)
			}
			return p.ctx.Err()
		}
	}
}

// pass lets time pass up to some instant, drifts of an idle node included.
func (n *node) pass(until float64) {
	for at, _ := n.next(); at <= until; at, _ = n.next() {
		n.step()
	}
	n.advance(until)
}

// finish runs until the last job has ended. Nobody asks any more, so that no
// samples are needed.
func (p *play) finish() error {
	for first, _ := earliest(p.nodes); first != nil; first, _ = earliest(p.nodes) {
		if err := p.step(first); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) tell(e schemas.Event, at float64) {
	p.sequence++
	numbered(e, p.sequence)
	p.rule.Apply(e, p.sequence, clock(at))
	w, ok := p.rule.(Watcher)
	if !ok {
		return
	}
	for _, r := range w.Watch(clock(at)) {
		if i, known := p.index[r.JobID]; known {
			o := &p.outcomes[i]
			o.Warnings = append(o.Warnings, Warning{
				at - p.Jobs[i].At,
				r.Cleared,
				r.Probability,
				r.Cause,
			})
		}
	}
}

// step goes to a node's next change.
func (p *play) step(n *node) error {
	if at, _ := n.next(); at > longestPlay {
		return fmt.Errorf("the world is overloaded: %d jobs on node %s would go on for over %g s",
			len(n.jobs), n.Name, longestPlay)
	}
	if r, what := n.tellStep(p.tell); what == jobEnded {
		o := &p.outcomes[p.index[r.id()]]
		o.Seconds = n.now - r.job.At
		o.MetSLO = o.Seconds <= r.job.Request.SLO.Seconds()
	}
	return p.ctx.Err()
}

func (p *play) sample(at float64) {
	p.samples++
	for i := range p.nodes {
		p.tell(p.nodes[i].sampleEvent(p.samples, p.World, at), at)
	}
}

func (p *play) node(name string) *node {
	for i := range p.nodes {
		if p.nodes[i].Name == name {
			return &p.nodes[i]
		}
	}
	return nil
}

// submit asks the rule and does as it says.
func (p *play) submit(j *Job) error {
	q := j.Request.WithDefaults()
	a, err := p.rule.Submit(q, clock(j.At))
	if err != nil {
		return err
	}
	n, err := p.check(&q, a)
	if err != nil {
		return err
	}
	choice := candidate{a.Chosen.BatchSize, a.Chosen.CPUs}
	number, refused := len(p.outcomes), a.Decision == schemas.BestEffort
	o := Outcome{
		JobID:       q.JobID,
		Decision:    a.Decision,
		Node:        n.Name,
		BatchSize:   choice.batch,
		CPUs:        choice.cpus,
		Epochs:      a.Chosen.Epochs,
		Accuracy:    j.accuracy(choice, a.Chosen.Epochs),
		AtOnce:      n.best(j),
		SLOSeconds:  j.Request.SLO.Seconds(),
		Probability: a.Chosen.Probability,
	}
	_, o.Watched = p.rule.(Watcher)
	if refused {
		o.Epochs = 0
	}
	p.before, p.outcomes, p.index[q.JobID] = append(p.before, n.copied()), append(p.outcomes, o), number
	p.tell(submittedEvent(&q, a, j.At), j.At)
	if refused {
		p.tell(withdrawnEvent(&q, j.At), j.At)
		return nil
	}
	p.arrivals[n.Name] = append(p.arrivals[n.Name], arrival{number, j.At, j, choice, o.Epochs})
	n.start(j, choice, o.Epochs, a.Decision == schemas.MeetsSLO)
	p.tell(n.jobs[len(n.jobs)-1].startedEvent(n), j.At)
	return nil
}

// lookBack tries every submission again, now that it is known who came later.
func (p *play) lookBack() error {
	for i := range p.outcomes {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		o, j, n := &p.outcomes[i], &p.Jobs[i], &p.before[i]
		later := p.arrivals[o.Node]
		for len(later) > 0 && later[0].number <= i {
			later = later[1:]
		}
		p.arrivals[o.Node] = later // the next submission is later still
		o.InHindsight = bestOf(j, func(c candidate) float64 { return n.try(j, c, later) })
	}
	return nil
}

// check finds the node of an advice that can be carried out; a refusal need not
// name any.
func (p *play) check(q *schemas.JobRequest, a *schemas.Advice) (*node, error) {
	if a == nil || a.Chosen == nil {
		return nil, fmt.Errorf("the advice chooses nothing")
	}
	if a.Decision == schemas.BestEffort && len(a.Nodes) == 0 {
		return leastLoaded(p.nodes, q), nil
	}
	c := candidate{a.Chosen.BatchSize, a.Chosen.CPUs}
	switch {
	case !slices.Contains([]schemas.Decision{
		schemas.MeetsSLO,
		schemas.BestEffort,
		schemas.Exploring,
	}, a.Decision):
		return nil, fmt.Errorf("the decision is %q", a.Decision)
	case !c.offeredBy(q):
		return nil, fmt.Errorf("batch size %d on %d CPUs was not offered", c.batch, c.cpus)
	case a.Chosen.Epochs < 1 || int64(a.Chosen.Epochs) > int64(q.Epochs):
		return nil, fmt.Errorf("%d epochs were advised, %d asked for", a.Chosen.Epochs, q.Epochs)
	case len(a.Nodes) != 1 || p.node(a.Nodes[0]) == nil:
		return nil, fmt.Errorf("the advice names the nodes %q, want one of this world", a.Nodes)
	}
	return p.node(a.Nodes[0]), nil
}
