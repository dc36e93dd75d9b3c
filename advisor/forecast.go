package advisor

import (
	"math"

	"courier/regress/evidence"
	"courier/schemas"
)

// jobForecast is the state of a job at the current time of a forecast.
type jobForecast struct {
	at        []int   // indices of its nodes
	cpus      uint32  // number of its processes
	batch     uint32  // batch size
	model     float64 // code of its model in the regressor
	known     bool    // the regressor knows its model; otherwise its end is unknown
	factor    float64 // ratio of measured to predicted time of its own epochs; 1 without any
	narrowing float64 // of the uncertainty by its own epochs; 1 without any
	wait      float64 // seconds until it starts
	startup   float64 // remaining seconds of its start-up
	epochs    float64 // remaining epochs
	spent     float64 // seconds since the end of its last epoch

	seconds      float64 // of an epoch at the current load
	end          float64 // its end in seconds from now; +Inf if unknown
	widening     float64 // of its bound because of interpolation, as a logarithm
	extrapolated bool    // some load on its way is outside the support

	standIn        bool               // runs on nodes of unknown hardware are examples for it
	varianceLeft   float64            // share of the run's variance that its own epochs leave
	allEpochs      float64            // remaining epochs at the beginning
	plannedStartup float64            // remaining seconds of the start-up at the beginning
	leastCertain   evidence.EpochTime // its least certain prediction
}

// nodeLoad is the number of jobs and processes on a node at the current time of a forecast.
type nodeLoad struct {
	jobs  int
	procs float64
}

// forecast simulates jobs that share nodes until they end. At any time the rate of a job follows
// from the epoch time that the regressor predicts for the current load; a job that ends frees its
// nodes. base stays unchanged, jobs is simulated. A forecast is used by one goroutine at a time.
type forecast struct {
	r        *LoadedRegressor
	names    []string           // of the nodes
	hardware []schemas.Hardware // of each
	codes    []schemas.NodeCode // of each, as the regressor encodes it
	types    []string           // of each, for an evidence regressor; otherwise ""
	foreign  []schemas.Foreign  // load of each that no job causes; assumed constant
	base     []jobForecast      // the running jobs
	jobs     []jobForecast      // base, then the job of the question
	nodes    []nodeLoad
	path     []progressPoint // of the job of the question
	cache    predictionCache

	decision   uint64 // number of the decision; invalidates epochCache
	epochCache [epochCacheSlots]cachedEpoch
}

// progressPoint is the number of epochs that a job has left at a time.
type progressPoint struct{ at, epochs float64 }

// reset prepares a reused forecast for another decision.
func (f *forecast) reset(r *LoadedRegressor) {
	f.r = r
	f.names, f.hardware, f.codes = f.names[:0], f.hardware[:0], f.codes[:0]
	f.types, f.foreign, f.base = f.types[:0], f.foreign[:0], f.base[:0]
	f.decision++
}

// node returns the index of a node, which it adds on first use.
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
	f.names = append(f.names, name)
	f.hardware = append(f.hardware, h)
	f.codes = append(f.codes, code)
	f.types = append(f.types, nodeType)
	f.foreign = append(f.foreign, foreign)
	return len(f.names) - 1
}

// nodeIndices returns the indices of the nodes of a job. hardware and foreign are in the order of
// nodes and may be shorter.
func (f *forecast) nodeIndices(
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

// nodesOrAny replaces an empty list of nodes by an unnamed node without other load.
func nodesOrAny(nodes []string) []string {
	if len(nodes) == 0 {
		return []string{""}
	}
	return nodes
}

// run simulates the running jobs, and another job unless it is nil, until they end. It returns the
// result of that job. The results of the running jobs are in f.jobs, in the order of f.base.
func (f *forecast) run(job *jobForecast) *jobForecast {
	f.jobs, f.path = append(f.jobs[:0], f.base...), f.path[:0]
	if job != nil {
		f.jobs = append(f.jobs, *job)
	}
	f.nodes = append(f.nodes[:0], make([]nodeLoad, len(f.names))...)
	for i := range f.jobs {
		j := &f.jobs[i]
		j.end = math.Inf(1)
		if j.wait == 0 {
			f.addToNodes(j, 1)
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
	if job == nil {
		return nil
	}
	return &f.jobs[len(f.jobs)-1]
}

// addToNodes adds a job to its nodes (sign 1) or removes it (sign -1).
func (f *forecast) addToNodes(j *jobForecast, sign int) {
	for _, n := range j.at {
		f.nodes[n].jobs += sign
		f.nodes[n].procs += float64(sign) * float64(j.cpus)
	}
}

// untilChange returns the seconds until the state of a job changes at the current load, +Inf if
// unknown. It never returns NaN.
func (f *forecast) untilChange(j *jobForecast) float64 {
	switch {
	case j.wait > 0:
		return j.wait
	case j.startup > 0:
		return j.startup
	case !j.known:
		return math.Inf(1)
	case j.epochs <= 0:
		return 0 // even if the epoch time at this load is unknown
	}
	j.seconds = f.epoch(j)
	if !(j.seconds < math.Inf(1)) {
		return math.Inf(1)
	}
	if j.spent > 0 { // no event has reported the end of this epoch, so some of it is left
		j.epochs -= min(j.spent/j.seconds, maxUnreportedShare)
		j.spent = 0
	}
	return max(0, j.epochs) * j.seconds
}

// maxUnreportedShare bounds the share of an epoch that may have passed without its event.
const maxUnreportedShare = 0.95

// busiestNode returns the most loaded node of a job, which determines its rate.
func (f *forecast) busiestNode(j *jobForecast) int {
	at := j.at[0]
	for _, n := range j.at[1:] {
		if schemas.MoreLoaded(f.nodes[n].procs, f.hardware[n], f.nodes[at].procs, f.hardware[at]) {
			at = n
		}
	}
	return at
}

// epoch returns the seconds of an epoch at the current load.
func (f *forecast) epoch(j *jobForecast) float64 {
	p := f.predictEpoch(j, f.busiestNode(j))
	j.extrapolated, j.widening = j.extrapolated || p.extrapolated, max(j.widening, p.widening)
	if lessCertain(&p.epoch, &j.leastCertain) {
		j.leastCertain = p.epoch
	}
	return p.seconds * j.factor
}

// cachedEpoch is a prediction of this decision. Its forecasts encounter the same loads again and
// again.
type cachedEpoch struct {
	decision    uint64
	batch, cpus uint32
	model       float64
	at          int // index of the node
	nodeLoad

	seconds      float64 // +Inf if unknown
	widening     float64
	extrapolated bool

	standIn bool
	epoch   evidence.EpochTime // only of an evidence regressor
}

// epochCacheSlots is a power of two.
const epochCacheSlots = 256

// predictEpoch predicts an epoch at the current load of a node, once per decision.
func (f *forecast) predictEpoch(j *jobForecast, at int) *cachedEpoch {
	load := f.nodes[at]
	key := (uint64(j.batch)*31+uint64(j.cpus))*31 + uint64(j.model)
	key = ((key*31+uint64(load.jobs))*31+uint64(load.procs))*31 + uint64(at)
	m := &f.epochCache[key*0x9e3779b97f4a7c15>>(64-8)%epochCacheSlots]
	if m.decision == f.decision && m.batch == j.batch && m.cpus == j.cpus && m.model == j.model &&
		m.at == at && m.nodeLoad == load && m.standIn == j.standIn {
		return m
	}
	*m = cachedEpoch{
		decision: f.decision, batch: j.batch, cpus: j.cpus, model: j.model, at: at, nodeLoad: load,
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
	if p, ok := f.r.predict(&features, &f.cache); ok {
		wider, promised := f.r.predictor.Widening(p)
		wider += f.r.foreignSpread(&features, p.Value, &f.cache)
		m.seconds, m.widening, m.extrapolated = p.Value, wider, !promised
	}
	return m
}

// byEvidence fills in a prediction of an evidence regressor.
func (f *forecast) byEvidence(m *cachedEpoch) {
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

// step returns the job whose state changes first and the seconds until then, or nil if no state
// changes.
func (f *forecast) step() (next *jobForecast, seconds float64) {
	seconds = math.Inf(1)
	for i := range f.jobs {
		j := &f.jobs[i]
		if !math.IsInf(j.end, 1) {
			continue
		}
		if rest := f.untilChange(j); rest < seconds {
			next, seconds = j, rest
		}
	}
	return next, seconds
}

// advance simulates a step at the loads for which it was computed. The state of next changes
// regardless of rounding errors, so that every step brings the forecast closer to its end.
func (f *forecast) advance(now, step float64, next *jobForecast) {
	for i := range f.jobs {
		if j := &f.jobs[i]; j.isTraining() && j.epochs > 0 && j.seconds < math.Inf(1) {
			j.epochs -= step / j.seconds
		}
	}
	if next.isTraining() {
		next.epochs = 0
	}
	if len(f.jobs) > len(f.base) {
		f.path = append(f.path, progressPoint{now, f.jobs[len(f.jobs)-1].epochs})
	}
	for i := range f.jobs {
		j := &f.jobs[i]
		switch {
		case !math.IsInf(j.end, 1):
		case j.wait > 0:
			if j.wait -= step; j == next || j.wait < tinySeconds {
				j.wait = 0
				f.addToNodes(j, 1)
			}
		case j.startup > 0:
			if j.startup -= step; j == next || j.startup < tinySeconds {
				j.startup = 0
			}
		case j.known && j.epochs < tinyEpochs:
			j.end = now
			f.addToNodes(j, -1)
		}
	}
}

// isTraining reports whether the job is past its start-up and has not ended.
func (j *jobForecast) isTraining() bool {
	return math.IsInf(j.end, 1) && j.wait == 0 && j.startup == 0 && j.known
}

// endAfter returns when the job would have ended with fewer epochs. Until its end, the other jobs
// do not depend on its number of epochs.
func (f *forecast) endAfter(all, epochs float64) float64 {
	last := progressPoint{0, all}
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

// Rounding errors that may remain of a start-up or of the last epoch.
const (
	tinySeconds = 1e-9
	tinyEpochs  = 1e-9
)
