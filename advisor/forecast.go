package advisor

import (
	"math"

	"courier/regress/evidence"
	"courier/schemas"
)

// ahead is a job as a forecast moves it.
type ahead struct {
	at      []int   // the nodes it runs on, by number
	cpus    uint32  // its processes
	batch   uint32  // its batch size
	model   float64 // its code among the regressor's models
	known   bool    // the regressor knows its model; else nobody knows when it ends
	factor  float64 // how much longer its epochs take than predicted, 1 if nothing is known
	narrow  float64 // by how much its own epochs narrow what is uncertain; 1: not at all
	wait    float64 // seconds until it starts
	startup float64 // seconds from its start to its first epoch
	epochs  float64 // that are left
	spent   float64 // seconds spent already on the first of them

	seconds      float64 // of an epoch at the present load
	end          float64 // when it ends, seconds from now; +Inf: nobody knows
	wider        float64 // what its bound is widened by between measured levels, as a logarithm
	extrapolated bool    // at some load that it meets

	standIn   bool               // runs on nodes of unknown hardware count for it
	left      float64            // share of the variance of its run that its own epochs leave; 1: all
	allEpochs float64            // epochs at the beginning
	planned   float64            // seconds of the start-up ahead of it at the beginning
	widest    evidence.EpochTime // the least certain prediction on its way
}

// meter is what runs on a node at a moment of a forecast.
type meter struct {
	jobs  int
	procs float64
}

// forecast runs jobs that share nodes forward. At each moment the rate of every
// job follows from the epoch time that the regressor predicts for the jobs and
// processes of that moment; whoever ends leaves its nodes to the others. One
// goroutine uses it at a time; base stays, jobs are moved.
type forecast struct {
	r        *Regressor
	names    []string           // of the nodes
	hardware []schemas.Hardware // of each
	codes    []schemas.NodeCode // of each, as the regressor reads it
	types    []string           // of each, as the evidence tells them apart; "" without evidence
	foreign  []schemas.Foreign  // load of each that is not due to jobs: it stays as it is
	base     []ahead            // the jobs that run
	jobs     []ahead            // base, and the one in question as the last
	nodes    []meter
	path     []mark // of the one in question
	memory   memory

	decision uint64 // counts up: what was remembered of another is forgotten
	memos    [memos]memo
}

// mark is how many epochs a job had left at a moment.
type mark struct{ at, epochs float64 }

// node numbers a node.
func (f *forecast) node(name string, h schemas.Hardware, foreign schemas.Foreign) int {
	for i, n := range f.names {
		if n == name {
			return i
		}
	}
	code, nodeType := schemas.NodeCode{}, ""
	if f.r != nil {
		code = f.r.encoder.Node(h)
		if f.r.evidence != nil {
			nodeType = f.r.evidence.NodeType(name, h.NodeType())
		}
	}
	f.names, f.hardware, f.codes = append(f.names, name), append(f.hardware, h), append(f.codes,
		code)
	f.types, f.foreign = append(f.types, nodeType), append(f.foreign, foreign)
	return len(f.names) - 1
}

// numbers numbers the nodes of a job; what is known of them is in their order.
func (f *forecast) numbers(
	nodes []string, hardware []schemas.Hardware, foreign []schemas.Foreign,
) []int {
	at := make([]int, 0, max(1, len(nodes)))
	for i, n := range nodesOrAny(nodes) {
		var h schemas.Hardware
		if i < len(hardware) {
			h = hardware[i]
		}
		var load schemas.Foreign
		if i < len(foreign) {
			load = foreign[i]
		}
		at = append(at, f.node(n, h, load))
	}
	return at
}

// nodesOrAny lets a job without a node have the load of being alone.
func nodesOrAny(nodes []string) []string {
	if len(nodes) == 0 {
		return []string{""}
	}
	return nodes
}

// run moves the running jobs and, if there is one, another to their ends, and
// returns that other's fate. The others' stand in jobs, in the order of base.
func (f *forecast) run(another *ahead) *ahead {
	f.jobs, f.path = append(f.jobs[:0], f.base...), f.path[:0]
	if another != nil {
		f.jobs = append(f.jobs, *another)
	}
	f.nodes = append(f.nodes[:0], make([]meter, len(f.names))...)
	for i := range f.jobs {
		j := &f.jobs[i]
		j.end = math.Inf(1)
		if j.wait == 0 {
			f.enter(j, 1)
		}
	}
	for now := 0.0; ; {
		next, step := f.step()
		if next == nil {
			break
		}
		now += step
		f.advance(now, step, next)
	}
	if another == nil {
		return nil
	}
	return &f.jobs[len(f.jobs)-1]
}

// enter adds a job to its nodes, or takes it away.
func (f *forecast) enter(j *ahead, sign int) {
	for _, n := range j.at {
		f.nodes[n].jobs += sign
		f.nodes[n].procs += float64(sign) * float64(j.cpus)
	}
}

// rest returns the seconds until the state of a job changes at the present load; +Inf if that is
// unknown. It is never NaN.
func (f *forecast) rest(j *ahead) float64 {
	switch {
	case j.wait > 0:
		return j.wait
	case j.startup > 0:
		return j.startup
	case !j.known:
		return math.Inf(1)
	case j.epochs <= 0:
		return 0 // also where the time of an epoch is unknown at this load
	}
	j.seconds = f.epoch(j)
	if !(j.seconds < math.Inf(1)) {
		return math.Inf(1)
	}
	if j.spent > 0 { // what was spent counts at today's rate, and the epoch is not over before it is told
		j.epochs -= min(j.spent/j.seconds, mostOfAnEpoch)
		j.spent = 0
	}
	return max(0, j.epochs) * j.seconds
}

// mostOfAnEpoch is how much of an epoch may have passed before its event comes.
const mostOfAnEpoch = 0.95

// fullest is the node whose load counts for a job now.
func (f *forecast) fullest(j *ahead) int {
	at := j.at[0]
	for _, n := range j.at[1:] {
		if schemas.MoreLoaded(f.nodes[n].procs, f.hardware[n], f.nodes[at].procs, f.hardware[at]) {
			at = n
		}
	}
	return at
}

// epoch returns the seconds of an epoch at the present load.
func (f *forecast) epoch(j *ahead) float64 {
	p := f.known(j, f.fullest(j))
	j.extrapolated, j.wider = j.extrapolated || p.extrapolated, max(j.wider, p.wider)
	if wider(&p.epoch, &j.widest) {
		j.widest = p.epoch
	}
	return p.seconds * j.factor
}

// memo is a prediction that this decision has made before: forecasts meet the
// same few loads again and again.
type memo struct {
	decision    uint64 // that it belongs to
	batch, cpus uint32
	model       float64
	at          int // the node
	meter

	seconds      float64 // +Inf: nobody knows
	wider        float64
	extrapolated bool

	standIn bool
	epoch   evidence.EpochTime // of a regressor of that family
}

// memos is how many predictions are remembered, a power of two.
const memos = 256

// known predicts an epoch at the present load of a node once in a decision.
func (f *forecast) known(j *ahead, at int) *memo {
	load := f.nodes[at]
	key := (uint64(j.batch)*31+uint64(j.cpus))*31 + uint64(j.model)
	key = ((key*31+uint64(load.jobs))*31+uint64(load.procs))*31 + uint64(at)
	m := &f.memos[key*0x9e3779b97f4a7c15>>(64-8)%memos]
	if m.decision == f.decision && m.batch == j.batch && m.cpus == j.cpus && m.model == j.model &&
		m.at == at && m.meter == load && m.standIn == j.standIn {
		return m
	}
	*m = memo{
		decision: f.decision, batch: j.batch, cpus: j.cpus, model: j.model, at: at, meter: load,
		seconds: math.Inf(1), standIn: j.standIn,
	}
	if f.r.evidence != nil {
		f.byEvidence(m)
		return m
	}
	features := schemas.Features{
		BatchSize: j.batch,
		CPUs:      j.cpus,
		ModelCode: j.model,
		Node:      f.codes[at],
		Load: schemas.Load{
			ConcurrentJobs:  float64(load.jobs),
			Processes:       load.procs,
			StableTimeRatio: 1,
		},
	}
	f.foreign[at].Set(&features.Load)
	if p, ok := f.r.predict(&features, &f.memory); ok {
		wider, promised := f.r.predictor.Widening(p)
		wider += f.r.foreignSpread(&features, p.Value, &f.memory)
		m.seconds, m.wider, m.extrapolated = p.Value, wider, !promised
	}
	return m
}

// byEvidence fills in a prediction from the evidence of the model.
func (f *forecast) byEvidence(m *memo) {
	nodeType, cores := f.types[m.at], f.hardware[m.at].Cores
	if m.standIn {
		nodeType, cores = f.r.evidence.NodeType(f.names[m.at], ""), 0
	}
	load := schemas.Load{ConcurrentJobs: float64(m.jobs), Processes: m.procs}
	f.foreign[m.at].Set(&load)
	m.epoch = f.r.epochTime(m.model, m.batch, m.cpus, load, cores, nodeType)
	if m.epoch.Known() {
		m.seconds, m.extrapolated = math.Exp(m.epoch.Location), !m.epoch.Support.Promisable()
	}
}

// step returns the job whose state changes first and the seconds until then; nil if no job's does.
func (f *forecast) step() (next *ahead, seconds float64) {
	seconds = math.Inf(1)
	for i := range f.jobs {
		j := &f.jobs[i]
		if !math.IsInf(j.end, 1) {
			continue
		}
		if rest := f.rest(j); rest < seconds {
			next, seconds = j, rest
		}
	}
	return next, seconds
}

// advance moves all jobs by a step, at the loads that it was measured at. The state of next changes
// whatever rounding leaves, so that each step brings the forecast nearer to its end.
func (f *forecast) advance(now, step float64, next *ahead) {
	for i := range f.jobs {
		if j := &f.jobs[i]; j.runs() && j.epochs > 0 && j.seconds < math.Inf(1) {
			j.epochs -= step / j.seconds
		}
	}
	if next.runs() {
		next.epochs = 0
	}
	if len(f.jobs) > len(f.base) {
		f.path = append(f.path, mark{now, f.jobs[len(f.jobs)-1].epochs})
	}
	for i := range f.jobs {
		j := &f.jobs[i]
		switch {
		case !math.IsInf(j.end, 1):
		case j.wait > 0:
			if j.wait -= step; j == next || j.wait < tinySeconds {
				j.wait = 0
				f.enter(j, 1)
			}
		case j.startup > 0:
			if j.startup -= step; j == next || j.startup < tinySeconds {
				j.startup = 0
			}
		case j.known && j.epochs < tinyEpochs:
			j.end = now
			f.enter(j, -1)
		}
	}
}

// runs reports whether epochs of the job pass.
func (j *ahead) runs() bool {
	return math.IsInf(j.end, 1) && j.wait == 0 && j.startup == 0 && j.known
}

// after returns when the job in question would have ended with only some of its
// epochs: until it ends, the others do not depend on how many it has.
func (f *forecast) after(all, epochs float64) float64 {
	last := mark{0, all}
	for _, m := range f.path {
		if all-m.epochs >= epochs-tinyEpochs {
			if m.epochs == last.epochs {
				return m.at
			}
			return last.at + (m.at-last.at)*(epochs-(all-last.epochs))/(last.epochs-m.epochs)
		}
		last = m
	}
	return math.Inf(1)
}

// What rounding may leave of a start-up or of the last epoch.
const (
	tinySeconds = 1e-9
	tinyEpochs  = 1e-9
)
