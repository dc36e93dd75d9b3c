package decide

import (
	"math"

	"courier/regress/evidence"
	"courier/schemas"
)

// problem is a question with what the regressors know about its job and about the running jobs. It
// does not change. Some fields depend on the number of workers: of returns a copy for another number.
type problem struct {
	*Question
	r Regressors

	workers     uint32    // of the job; 0 for a single one
	job         trainedOn // for the accuracy
	timed       trainedOn // for times, which depend on the data loaders, too
	loaders     uint32
	hasTime     bool // the regressors know epoch times of the model
	hasAccuracy bool // and its accuracy
	standsIn    bool // runs on nodes of unknown hardware are examples for the job

	sim          simulation
	at           []int                 // the nodes of the job in the simulation
	hardwareType string                // node type of the first one by its hardware
	done         []evidence.Span       // its epochs until now
	startup      evidence.Distribution // on its first node; unknown with scale 0
	startupRuns  *schemas.StartupEvidence
	spans        []schemas.Span // of the job and its co-located jobs, as they run
}

func newProblem(q *Question, r Regressors) *problem {
	p := &problem{Question: q, r: r, sim: simulation{r: r.EpochTime}}
	p.at = p.sim.addNodes(q.Nodes, q.Hardware, q.Foreign)
	p.hardwareType = p.sim.nodes[p.at[0]].hardware.NodeType()
	p.setWorkers(q.Request.WorkerCounts()[0])
	if q.Self != nil {
		p.done = r.EpochTime.spansOf(q.Self)
		p.spans = append(p.spans, schemas.Span{
			JobID: q.JobID, Nodes: q.Nodes, CPUs: q.Self.Setting.Processes(), Hardware: q.Hardware,
		})
	}
	for i := range q.Others {
		p.addRunning(&q.Others[i])
	}
	return p
}

// setWorkers sets the number of workers of the job, and what the regressors know about its runs.
func (p *problem) setWorkers(workers uint32) {
	q, r := p.Question, p.r
	asked := schemas.Setting{Model: q.Request.Model, Dataset: q.Request.Dataset, Workers: workers}
	p.workers, p.loaders, p.job = workers, q.Request.FirstLoaders(), trainedBy(&asked, uint32(q.Request.BatchSizes[0]))
	p.timed = p.job.timedWith(p.loaders)
	p.hasTime, p.hasAccuracy = r.EpochTime.knows(p.timed), r.Accuracy.knows(p.job)
	p.startupRuns = nil
	if p.startup = r.Startup.startup(p.timed, p.hardwareType); p.startup.Known() {
		p.startupRuns = p.startupEvidence()
	}
	p.standsIn = p.hasTime && q.Self == nil && len(q.Request.Nodes) == 0 &&
		r.EpochTime.standsIn(p.timed, p.sim.nodes[p.at[0]].nodeType)
}

// of returns the problem for a number of workers of the job.
func (p *problem) of(workers uint32) *problem {
	if workers == p.workers {
		return p
	}
	other := *p
	other.setWorkers(workers)
	return &other
}

// addRunning adds a co-located job to the simulation.
func (p *problem) addRunning(m *Member) {
	p.spans = append(p.spans, schemas.Span{
		JobID: m.JobID, Nodes: m.Setting.Nodes, CPUs: m.Setting.Processes(), Hardware: m.Hardware,
	})
	j := plannedJob{
		at:     p.sim.addNodes(m.Setting.Nodes, m.Hardware, m.Foreign),
		model:  trainedBy(&m.Setting, m.Setting.BatchSize).timedWith(m.Setting.Loaders),
		batch:  m.Setting.BatchSize,
		cpus:   m.Setting.Processes(),
		epochs: float64(m.epochsLeft()),
		total:  int(max(m.Setting.Epochs, m.EpochsDone)),
		times:  map[nodeLoad]evidence.EpochTime{},
	}
	j.isKnown = p.r.EpochTime.knows(j.model) || len(m.ObservedEpochs) > 0
	if j.isKnown {
		j.done = p.r.EpochTime.spansOf(m)
		nodeType := p.sim.nodes[j.at[0]].hardware.NodeType()
		j.setProgress(m, p.r.Startup.startup(j.model, nodeType))
	}
	p.sim.running = append(p.sim.running, j)
}

// firstNodeType returns the type of the job's first node, or the type that stands in for it.
func (p *problem) firstNodeType() string { return p.sim.state(p.at[0], p.standsIn).nodeType }

// loadNow returns the load that the job has, or would have with some CPUs of each worker.
func (p *problem) loadNow(cpus uint32) schemas.Load {
	load, _ := schemas.LoadNow(schemas.Span{
		JobID: p.JobID, Nodes: nodesOrAny(p.Nodes), CPUs: schemas.Processes(p.workers, cpus),
		Hardware: p.Hardware, Foreign: p.Foreign,
	}, p.spans)
	return load
}

// configuration returns the configuration of an alternative at the load at its start.
func (p *problem) configuration(batch, cpus uint32) evidence.Configuration {
	on := p.sim.state(p.at[0], p.standsIn)
	on.load = p.loadNow(cpus)
	return p.r.EpochTime.timeConfiguration(p.timed, batch, schemas.Processes(p.workers, cpus), on)
}

// variant is a way to run the job.
type variant struct {
	workers, batch, cpus, epochs uint32
	wait                         float64 // seconds until its start
}

func variantOf(alt *schemas.Alternative) variant {
	return variant{workers: alt.Workers, batch: alt.BatchSize, cpus: alt.CPUs, epochs: alt.Epochs}
}

// canForecast reports whether the time of the job with a batch size and CPUs can be predicted: by past
// runs, or as it runs now by its own epochs.
func (p *problem) canForecast(batch, cpus uint32) bool {
	if p.hasTime {
		return true
	}
	m := p.Self
	return m != nil && len(m.ObservedEpochs) > 0 && batch == m.Setting.BatchSize &&
		cpus == m.Setting.CPUs
}

// forecast simulates the job as a variant, beside the running jobs.
func (p *problem) forecast(v variant) forecast {
	p = p.of(v.workers)
	j := plannedJob{
		at:       p.at,
		model:    p.timed,
		isKnown:  p.canForecast(v.batch, v.cpus),
		standsIn: p.standsIn,
		batch:    v.batch,
		cpus:     schemas.Processes(v.workers, v.cpus),
		done:     p.done,
		total:    int(p.EpochsDone() + v.epochs),
		wait:     v.wait,
		epochs:   float64(v.epochs),
	}
	switch m := p.Self; {
	case m == nil && p.startup.Known():
		j.startup = p.startup.Median()
	case m != nil:
		j.setProgress(m, p.startup)
		if v.batch != m.Setting.BatchSize || v.cpus != m.Setting.CPUs {
			j.spent, j.block = 0, 0 // it is unknown which share of the epoch is done
		}
	}
	return p.sim.run(&j)
}

// outlook returns the distribution of the time of a number of epochs of a candidate, or until it stops by
// itself before, by its forecast of at least as many.
func (p *problem) outlook(c *candidate, epochs uint32) outlook {
	done, f := p.EpochsDone(), c.forecast
	last, late := c.lastEpochs(done, done+epochs)
	o := p.outlookOf(f, last-done)
	if late == last || !o.Known() {
		return o
	}
	// The bound at stopLevel is the time until a late stop.
	standard := evidence.Distribution{Scale: 1, Degrees: o.Degrees}
	until := p.outlookOf(f, late-done)
	o.Scale = math.Hypot(o.Scale, (until.Location-o.Location)/math.Log(standard.Quantile(stopLevel)))
	return o
}

// outlookOf is outlook for a job that does not stop before.
func (p *problem) outlookOf(f *forecast, epochs uint32) outlook {
	e, seconds := f.job.leastCertain, f.endAfter(float64(epochs))
	if plan := f.job.plan; float64(epochs) != plan.epochs && e.Known() {
		// The epochs of a run differ, for example the first one.
		if !f.whole.Known() {
			f.whole = p.planned(plan, plan.total)
		}
		some := p.planned(plan, int(p.EpochsDone()+epochs))
		if f.whole.Known() && some.Known() {
			before := min(seconds, plan.wait+plan.startup)
			seconds = before + (seconds-before)*math.Exp(some.Location-f.whole.Location)
			e.Variance *= some.Variance / f.whole.Variance
		}
	}
	return f.job.outlook(seconds, &e, p.startup)
}

// planned predicts the epochs of a plan at the load at its start.
func (p *problem) planned(plan *plannedJob, total int) evidence.EpochTime {
	return p.r.EpochTime.rest(p.configuration(plan.batch, plan.cpus), plan.done, total)
}

// ownRatio compares the epochs of a running job with what past runs make expect: the ratio for its
// remaining epochs; 1 if it is unknown.
func (p *problem) ownRatio() float64 {
	m := p.Self
	if !p.hasTime {
		return 1
	}
	c, total := p.configuration(m.Setting.BatchSize, m.Setting.CPUs), int(p.EpochsDone()+p.epochsLeft())
	return math.Exp(p.r.EpochTime.rest(c, p.done, total).Pace)
}
