package simulate

import (
	"context"
	"fmt"

	"courier/schemas"
)

// Scenario is a world with its history and all submissions.
type Scenario struct {
	World   *World
	History []HistoryRecord
	Jobs    []Submission // ordered by time
}

// NewScenario draws a scenario. The same arguments give the same scenario.
func NewScenario(w *World, submissions int, confidence float64, seed uint64) *Scenario {
	return &Scenario{
		World:   w,
		History: w.History(seed),
		Jobs:    w.Jobs(submissions, confidence, seed),
	}
}

// JobOutcome is the outcome of one submission.
type JobOutcome struct {
	JobID           string
	Decision        schemas.Decision
	Node            string
	BatchSize, CPUs uint32  // chosen
	Epochs          uint32  // number of epochs; 0 for a refusal
	Seconds         float64 // from submission to end; 0 for a refusal
	MetSLO          bool    // the job ran and met its SLO
	SLOSeconds      float64
	Probability     *float64 // predicted probability of meeting the SLO; nil: none
	Accuracy        float64  // true accuracy of the choice
	// InHindsight is the best candidate on the advised node given all later jobs.
	InHindsight   Best
	Watched       bool     // the rule is a Watcher
	WarnedSeconds *float64 // from submission to the first warning; nil: none
}

// play is the state of one rule in its copy of the world.
type play struct {
	*Scenario
	ctx       context.Context
	rule      Rule
	nodes     []node
	sequence  uint64
	samples   uint64      // number of samples of each node
	submitted int         // number of submitted jobs, including job
	job       *Submission // job that is being submitted
	outcomes  []JobOutcome
	before    []node               // state of the advised node of each outcome at submission
	index     map[string]int       // job ID to its outcome
	arrivals  map[string][]arrival // starts on each node
}

// Play lets a rule answer every submission, and returns the outcomes in the order of submission.
// progress may be nil; it is called with the number of answered submissions. Play returns the error
// of ctx or of the rule.
func (s *Scenario) Play(ctx context.Context, rule Rule, progress func(done int)) ([]JobOutcome, error) {
	p := &play{
		Scenario: s,
		ctx:      ctx,
		rule:     rule,
		nodes:    s.World.nodes(0),
		index:    map[string]int{},
		arrivals: map[string][]arrival{},
	}
	if k, ok := rule.(omniscient); ok {
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

// runUntil simulates the world up to a time: epochs, ends of jobs, and samples of nodes.
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

// pass simulates the node up to a time.
func (n *node) pass(until float64) {
	for at, _ := n.next(); at <= until; at, _ = n.next() {
		n.step()
	}
	n.advance(until)
}

// finish runs until the last job has ended. There are no more submissions, so samples are not
// needed.
func (p *play) finish() error {
	for first, _ := earliest(p.nodes); first != nil; first, _ = earliest(p.nodes) {
		if err := p.step(first); err != nil {
			return err
		}
	}
	return nil
}

func (p *play) publish(e schemas.Event, at float64) {
	p.sequence++
	e.Stamped().Sequence = p.sequence
	p.rule.Apply(e, p.sequence, timeAt(at))
	w, ok := p.rule.(Watcher)
	if !ok {
		return
	}
	for _, r := range w.Watch(timeAt(at)) {
		i, isSubmitted := p.index[r.JobID]
		if isSubmitted && !r.Cleared && p.outcomes[i].WarnedSeconds == nil {
			p.outcomes[i].WarnedSeconds = new(at - p.Jobs[i].At)
		}
	}
}

func (p *play) step(n *node) error {
	if r, what := n.publishStep(p.publish); what == jobEnded {
		o := &p.outcomes[p.index[r.id()]]
		o.Seconds = n.now - r.job.At
		o.MetSLO = o.Seconds <= r.job.Request.SLO.Seconds()
	}
	return p.ctx.Err()
}

func (p *play) sample(at float64) {
	p.samples++
	for i := range p.nodes {
		p.publish(p.nodes[i].sampleEvent(p.samples, p.World, at), at)
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

// submit lets the rule answer the job, and starts the job as advised.
func (p *play) submit(j *Submission) error {
	q := j.Request.WithDefaults()
	a, err := p.rule.Submit(q, leastLoaded(p.nodes, &q).load(), timeAt(j.At))
	if err != nil {
		return err
	}
	n := leastLoaded(p.nodes, &q)
	if len(a.Nodes) > 0 { // a refusal need not name a node
		n = p.node(a.Nodes[0])
	}
	choice := jobCandidate{a.Chosen.BatchSize, a.Chosen.CPUs}
	number, isRefused := len(p.outcomes), a.Decision == schemas.BestEffort
	o := JobOutcome{
		JobID:       q.JobID,
		Decision:    a.Decision,
		Node:        n.Name,
		BatchSize:   choice.batch,
		CPUs:        choice.cpus,
		Epochs:      a.Chosen.Epochs,
		Accuracy:    j.accuracy(choice, a.Chosen.Epochs),
		SLOSeconds:  j.Request.SLO.Seconds(),
		Probability: a.Chosen.Probability,
	}
	_, o.Watched = p.rule.(Watcher)
	if isRefused {
		o.Epochs = 0
	}
	p.index[q.JobID] = number
	p.before, p.outcomes = append(p.before, n.copied()), append(p.outcomes, o)
	p.publish(submittedEvent(&q, a, j.At), j.At)
	if isRefused {
		p.publish(withdrawnEvent(&q, j.At), j.At)
		return nil
	}
	p.arrivals[n.Name] = append(p.arrivals[n.Name], arrival{number, j.At, j, choice, o.Epochs})
	n.start(j, choice, o.Epochs, a.Decision == schemas.MeetsSLO)
	p.publish(n.jobs[len(n.jobs)-1].startedEvent(n), j.At)
	return nil
}

// lookBack finds the best candidate of every submission, given all later jobs.
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
		p.arrivals[o.Node] = later // The next submission is even later.
		o.InHindsight = bestOf(j, func(c jobCandidate) float64 { return n.try(j, c, later) })
	}
	return nil
}
