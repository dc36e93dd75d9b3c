package advisor

import (
	"math"
	"sync"
	"time"

	"courier/regress/evidence"
	"courier/schemas"
)

// deciders holds the buffers of past answers for reuse, so that an answer allocates nothing per
// alternative.
var deciders = sync.Pool{New: func() any { return &decider{} }}

// figuresPerAlternative is the capacity of figureSlab per alternative.
const figuresPerAlternative = 11

// decider holds the intermediate results of Decide for one question.
type decider struct {
	q                     *Question
	r                     Regressors
	a                     *schemas.Advice
	f                     forecast
	figureSlab            []float64        // backing array of the figures; retained by the advice
	evidenceBuffers       []evidenceBuffer // kept by the advice; nil for a running job
	curve                 accuracyCurve
	spans                 []schemas.Span // of the co-located jobs
	baseline              []jobForecast  // forecast of the co-located jobs without the job
	merits                []merit        // of the alternatives, if accuracy is by evidence
	baselineProbabilities []float64      // of the co-located SLOs; NaN if none or unknown
	self                  jobForecast    // the job of the question
	at                    []int          // its nodes, as indices into the forecast
	startupNode           nodeCodeCache  // node of the last predicted start-up
	startupCache          cachedStartup  // the last predicted start-up
	text                  sentence       // the message
	factor                float64        // ratio of measured to predicted time of its own epochs
	narrowing             float64        // factor of the uncertainty that its own epochs leave
	varianceLeft          float64        // share of the run's variance that its own epochs leave
	standIn               bool           // runs on unknown hardware are examples for the job
	knows                 struct{ time, accuracy bool }
	codes                 struct{ time, startup, accuracy float64 }
}

// Decide answers a question. It is pure: the same question and regressors give the same advice,
// except for its timestamp.
func Decide(q *Question, r Regressors, at time.Time) *schemas.Advice {
	a := &schemas.Advice{
		JobStamp: schemas.JobStamp{
			Stamp: schemas.Stamp{At: at},
			JobID: q.JobID,
			Run:   q.Run,
		},
		Action:         schemas.ActionStart,
		Model:          q.Request.Model,
		Dataset:        q.Request.Dataset,
		Nodes:          q.Nodes,
		SLOSeconds:     q.Request.SLO.Seconds(),
		ElapsedSeconds: q.Elapsed.Seconds(),
		Confidence:     q.Request.Confidence,
		Threshold:      q.Threshold,
		EpochsDone:     q.epochsDone(),
		Regressors:     r.digests(),
	}
	d := deciders.Get().(*decider)
	defer deciders.Put(d)
	d.reset(q, r, a)

	d.gather()
	d.predict(q.Request.CPUs)
	d.choose()

	a.Load = d.loadOf(a.Chosen.CPUs).Load
	if a.Decision == schemas.Exploring && !d.knows.time && q.Self == nil {
		a.Probes = d.probes(a)
	}
	if q.Self != nil {
		a.Action = q.action(a.Chosen)
		if len(q.Self.ObservedEpochs) > 0 {
			a.EpochRatio = d.factor
		}
	} else {
		if len(q.Others) > 0 {
			a.Effects = d.effects(a.Chosen)
		}
		if d.knows.time {
			a.Menu = d.menu(a)
		}
	}
	a.Message = d.message()
	d.listNotGranted()
	d.figureSlab, d.evidenceBuffers = nil, nil
	return a
}

// reset prepares a reused decision for another question.
func (d *decider) reset(q *Question, r Regressors, a *schemas.Advice) {
	d.q, d.r, d.a = q, r, a
	d.factor, d.narrowing, d.varianceLeft = 1, 1, 1
	d.standIn = false
	d.startupNode, d.startupCache = nodeCodeCache{}, cachedStartup{}

	d.spans, d.merits = d.spans[:0], d.merits[:0]
	d.baseline, d.baselineProbabilities = d.baseline[:0], d.baselineProbabilities[:0]
	d.f.reset(r.EpochTime)
}

// gather adds the running jobs to the forecast, looks up the codes of the job, and compares the
// epochs of a running job with their predictions.
func (d *decider) gather() {
	f := &d.f
	d.at = f.nodeIndices(d.q.Nodes, d.q.Hardware, d.q.Foreign)

	level := schemas.ModelLevel(d.a.Model, d.a.Dataset)
	d.codes.time, d.knows.time = d.r.EpochTime.knows(level)
	d.codes.startup, _ = d.r.Startup.knows(level)
	d.codes.accuracy, d.knows.accuracy = d.r.Accuracy.knows(level)
	d.chooseStandIn()
	if d.q.Self != nil && d.knows.time {
		d.factor, d.narrowing, d.varianceLeft = d.q.Self.compareEpochs(
			d.r.EpochTime, d.codes.time, &f.cache,
		)
	}
	if d.q.Self != nil {
		d.spans = append(d.spans, schemas.Span{
			JobID:    d.q.JobID,
			Nodes:    d.q.Nodes,
			CPUs:     d.q.Self.Setting.CPUs,
			Hardware: d.q.Hardware,
		})
	}
	for i := range d.q.Others {
		m := &d.q.Others[i]
		d.spans = append(d.spans, schemas.Span{
			JobID:    m.JobID,
			Nodes:    m.Setting.Nodes,
			CPUs:     m.Setting.CPUs,
			Hardware: m.Hardware,
		})
	}
	for i := range d.q.Others {
		m := &d.q.Others[i]
		j := jobForecast{
			at:           f.nodeIndices(m.Setting.Nodes, m.Hardware, m.Foreign),
			cpus:         m.Setting.CPUs,
			batch:        m.Setting.BatchSize,
			factor:       1,
			narrowing:    1,
			varianceLeft: 1,
			epochs:       float64(m.epochsLeft()),
		}
		if j.model, j.known = d.r.EpochTime.knows(levelOf(&m.Setting)); j.known {
			j.factor, j.narrowing, j.varianceLeft = m.compareEpochs(
				d.r.EpochTime, j.model, &f.cache,
			)
			d.setProgress(&j, m)
		}
		f.base = append(f.base, j)
	}
}

// setProgress sets the progress of a running job in its start-up or in its current epoch.
func (d *decider) setProgress(j *jobForecast, m *Member) {
	if m.EpochsDone > 0 || d.r.Startup == nil {
		j.spent = m.Since.Seconds()
		return
	}
	code, _ := d.r.Startup.knows(levelOf(&m.Setting))
	load, on := schemas.LoadNow(schemas.Span{
		JobID:    m.JobID,
		Nodes:    nodesOrAny(m.Setting.Nodes),
		CPUs:     m.Setting.CPUs,
		Hardware: m.Hardware,
	}, d.spans)
	at := LoadOnNode{load, on}
	j.startup = max(0,
		d.startupSeconds(m.Setting.BatchSize, m.Setting.CPUs, code, at)-m.Since.Seconds())
	j.plannedStartup = j.startup
}

// startupSeconds predicts the seconds from a start to the first epoch, 0 if unknown.
func (d *decider) startupSeconds(batch, cpus uint32, code float64, load LoadOnNode) float64 {
	if d.r.Startup == nil {
		return 0
	}
	if d.r.Startup.evidence != nil {
		if s := d.startupOf(code, load.On); s.Scale > 0 {
			return s.Median()
		}
		return 0
	}
	p, ok := d.r.Startup.predict(&schemas.Features{
		BatchSize: batch,
		CPUs:      cpus,
		ModelCode: code,
		Load:      load.Load,
		Node:      d.startupNode.node(d.r.Startup, load.On),
	}, &d.f.cache)
	if !ok {
		return 0
	}
	return p.Value
}

// loadOf returns the load that the job has, or would have with some CPUs.
func (d *decider) loadOf(cpus uint32) LoadOnNode {
	self := schemas.Span{
		JobID: d.q.JobID, Nodes: nodesOrAny(d.q.Nodes), CPUs: cpus,
		Hardware: d.q.Hardware, Foreign: d.q.Foreign,
	}
	load, on := schemas.LoadNow(self, d.spans)
	return LoadOnNode{load, on}
}

// nodeCode returns the code of the job's first node.
func (d *decider) nodeCode() schemas.NodeCode { return d.f.codes[d.at[0]] }

// figure stores a number for the advice, rounded to a millionth, so that decisions are made with
// the published numbers.
func (d *decider) figure(v float64) *float64 {
	d.figureSlab = append(d.figureSlab, math.Round(v*1e6)/1e6)
	return &d.figureSlab[len(d.figureSlab)-1]
}

// predict fills in the alternatives: each batch size with each number of CPUs. A running job keeps
// its CPUs.
func (d *decider) predict(cpus []int) {
	q := d.q
	n := len(q.Request.BatchSizes) * len(cpus)
	d.a.Alternatives = make([]schemas.Alternative, 0, n)
	d.figureSlab = make([]float64, 0, figuresPerAlternative*n)
	if d.evidenceBuffers = nil; q.Self == nil && d.byEvidence() {
		d.evidenceBuffers = make([]evidenceBuffer, 0, n)
	}
	for _, c := range cpus {
		load := d.loadOf(uint32(c))
		for _, batch := range q.Request.BatchSizes {
			d.a.Alternatives = append(d.a.Alternatives, schemas.Alternative{
				BatchSize: uint32(batch),
				CPUs:      uint32(c),
			})
			d.predictAlternative(&d.a.Alternatives[len(d.a.Alternatives)-1], load)
		}
	}
}

// listNotGranted appends the alternatives with CPUs that the job does not get. Nothing else of the
// answer depends on them.
func (d *decider) listNotGranted() {
	if len(d.q.notGranted) == 0 {
		return
	}
	granted := d.a.Alternatives
	d.predict(d.q.notGranted)
	for i := range d.a.Alternatives {
		alt := &d.a.Alternatives[i]
		if alt.Reason = reasonTooManyCPUs; alt.CPUs < d.a.Chosen.CPUs {
			alt.Reason = reasonMoreGranted
		}
	}
	d.a.Alternatives = append(granted, d.a.Alternatives...)
}

// predictAlternative fills in the figures of one alternative.
func (d *decider) predictAlternative(alt *schemas.Alternative, load LoadOnNode) {
	q := d.q
	all := uint32(q.Request.Epochs)
	if all == 0 {
		all = uint32(q.Request.MaxEpochs)
	}
	alt.Epochs = all - min(all, q.epochsDone())
	if d.knows.accuracy && d.r.Accuracy.evidence == nil {
		d.fillCurve(alt.BatchSize, alt.CPUs, all, load.Load)
	}
	var result *jobForecast
	if d.knows.time {
		result = d.f.run(d.forecastJob(alt, load))
		d.knows.time = !math.IsInf(result.end, 1)
	}
	if d.knows.time {
		d.predictTime(alt, result)
	}
	var reached *evidence.Accuracy
	switch {
	case !d.knows.accuracy:
	case d.r.Accuracy.evidence != nil:
		a := d.r.Accuracy.accuracyAt(d.codes.accuracy, alt.BatchSize, q.epochsDone()+alt.Epochs)
		d.applyAccuracy(alt, &a)
		reached = &a
	default:
		alt.PredictedAccuracy = d.figure(d.curve.at(q.epochsDone() + alt.Epochs))
	}
	if !d.knows.time {
		result = nil
	}
	d.fillEvidence(alt, result, reached)
}

// outlook returns the distribution of the job's time after a forecast.
func (d *decider) outlook(result *jobForecast) outlook {
	startup := d.startupOf(d.codes.startup, d.hardware())
	kind := jobKind{d.a.Model, d.a.Dataset, result.cpus}
	return outlook{
		seconds:        result.end,
		uncertainty:    result.spread(startup, result.allEpochs),
		table:          d.r.EpochTime.residuals(d.codes.time, d.nodeCode()),
		narrowing:      d.narrowing,
		isExtrapolated: result.extrapolated,
		recalibration:  d.q.Recalibration,
		shift:          d.q.Recalibration.shift(kind) + result.widening,
	}
}

// forecastJob returns the job of the question, run with an alternative, for the forecast.
func (d *decider) forecastJob(alt *schemas.Alternative, load LoadOnNode) *jobForecast {
	d.self = jobForecast{
		at:           d.at,
		cpus:         alt.CPUs,
		batch:        alt.BatchSize,
		model:        d.codes.time,
		known:        d.knows.time,
		factor:       d.factor,
		epochs:       float64(alt.Epochs),
		allEpochs:    float64(alt.Epochs),
		standIn:      d.standIn,
		varianceLeft: d.varianceLeft,
	}
	j := &d.self
	switch m := d.q.Self; {
	case m == nil:
		j.startup = d.startupSeconds(alt.BatchSize, alt.CPUs, d.codes.startup, load)
		j.plannedStartup = j.startup
	case d.q.isCurrent(alt):
		d.setProgress(j, m)
	}
	return j
}

// predictTime fills in the predicted times, and chooses the epochs if the request does not set
// them.
func (d *decider) predictTime(alt *schemas.Alternative, result *jobForecast) {
	o := d.outlook(result)
	if d.q.Request.Epochs == 0 && d.knows.accuracy {
		if d.r.Accuracy.evidence != nil {
			alt.Epochs = d.chooseEpochsByEvidence(alt, result, &o)
		} else {
			alt.Epochs = d.chooseEpochs(alt.Epochs, &o)
		}
		startup := d.startupOf(d.codes.startup, d.hardware())
		o.uncertainty = result.spread(startup, float64(alt.Epochs))
		o.seconds = d.f.endAfter(float64(d.maxEpochs()), float64(alt.Epochs))
	}
	alt.Extrapolated = o.isExtrapolated
	alt.PredictedSeconds = d.figure(o.seconds)
	alt.MeanSeconds = d.figure(o.seconds * d.r.EpochTime.predictor.Manifest().Smearing)
	alt.CPUSeconds = d.figure(o.seconds * float64(alt.CPUs))
	if o.seconds == 0 { // all epochs are done
		if d.q.Request.SLO > 0 && d.q.left() >= 0 {
			alt.Probability = d.figure(1)
		}
		return
	}
	if bound, ok := o.bound(d.q.Request.Confidence); ok {
		alt.UpperBoundSeconds = d.figure(bound)
	}
	if d.q.Request.SLO == 0 {
		return
	}
	if p, ok := o.probability(d.q.left(), d.q.Request.Confidence); ok {
		alt.Probability = d.figure(p)
	}
}

// action returns what a running job should do.
func (q *Question) action(chosen *schemas.Alternative) schemas.Action {
	if chosen.PredictedSeconds == nil || q.isCurrent(chosen) || q.Request.SLO == 0 {
		return schemas.ActionKeep
	}
	return schemas.ActionBatch
}
