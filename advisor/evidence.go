package advisor

import (
	"cmp"
	"math"

	"courier/regress/evidence"
	"courier/schemas"
)

// byEvidence reports whether an evidence regressor predicts epoch times.
func (d *decider) byEvidence() bool {
	return d.r.EpochTime != nil && d.r.EpochTime.evidence != nil
}

// chooseStandIn decides whether runs on nodes of unknown hardware are examples for the job.
func (d *decider) chooseStandIn() {
	r := d.r.EpochTime
	if !d.knows.time || r.evidence == nil || d.q.Self != nil || len(d.q.Request.Nodes) > 0 {
		return
	}
	d.standIn = r.standIn(d.codes.time, d.f.types[d.at[0]])
}

// hardware returns the hardware of the job's first node.
func (d *decider) hardware() schemas.Hardware { return d.f.hardware[d.at[0]] }

// cachedStartup is the last predicted start-up.
type cachedStartup struct {
	code  float64
	on    schemas.Hardware
	known bool // it has been predicted
	evidence.Distribution
	onNodeType, all int // number of its examples
}

// startupOf predicts the seconds from the start to the first epoch with an evidence regressor;
// otherwise the scale of the result is 0.
func (d *decider) startupOf(code float64, on schemas.Hardware) evidence.Distribution {
	r := d.r.Startup
	if r == nil || r.evidence == nil {
		return evidence.Distribution{}
	}
	if !d.startupCache.known || d.startupCache.code != code || d.startupCache.on != on {
		c := r.configuration(code)
		c.NodeType = on.NodeType()
		d.startupCache = cachedStartup{
			code:         code,
			on:           on,
			known:        true,
			Distribution: r.evidence.Startup(c),
		}
		d.startupCache.onNodeType, d.startupCache.all = r.evidence.StartupRuns(c)
	}
	return d.startupCache.Distribution
}

// evidenceBuffer holds the evidence of one alternative in one allocation.
type evidenceBuffer struct {
	all      schemas.Evidence
	time     schemas.TimeEvidence
	startup  schemas.StartupEvidence
	accuracy schemas.AccuracyEvidence
}

// fillEvidence sets the evidence of an alternative. Advice for a running job has none, because the
// answer to its request had it.
func (d *decider) fillEvidence(
	alt *schemas.Alternative, result *jobForecast, a *evidence.Accuracy,
) {
	if d.evidenceBuffers == nil {
		return
	}
	d.evidenceBuffers = append(d.evidenceBuffers, evidenceBuffer{})
	room := &d.evidenceBuffers[len(d.evidenceBuffers)-1]
	if r := d.r.EpochTime; r != nil && r.evidence != nil {
		room.all.Time = &room.time
		d.fillTimeEvidence(room.all.Time, alt, result)
	}
	r := d.r.Startup
	if r != nil && r.evidence != nil && d.startupCache.Scale > 0 && result != nil {
		room.all.Startup = &room.startup
		room.startup = schemas.StartupEvidence{
			Seconds:      math.Round(d.startupCache.Median()*1e6) / 1e6,
			NodeTypeRuns: uint32(d.startupCache.onNodeType), ModelRuns: uint32(d.startupCache.all),
		}
	}
	if a != nil && a.ModelRuns > 0 {
		room.all.Accuracy = &room.accuracy
		room.accuracy = schemas.AccuracyEvidence{
			Support: a.Support.String(), BatchSizeRuns: uint32(a.Runs), ModelRuns: uint32(
				a.ModelRuns,
			),
			LongestEpochs: uint32(a.Longest), HighestAccuracy: a.Highest(),
		}
		if !a.Known {
			room.accuracy.KnownFromEpoch = d.knownFrom(alt.BatchSize)
		}
	}
	alt.Evidence = &room.all
}

// knownFrom returns the epoch from which the accuracy of a batch size is known; 0 means never.
func (d *decider) knownFrom(batch uint32) uint32 {
	r := d.r.Accuracy
	const anyAccuracy, likely = 0, 0.5
	c := r.accuracyConfiguration(d.codes.accuracy, batch)
	return uint32(r.evidence.SmallestEpochs(c, anyAccuracy, likely, schemas.MaxEpochs))
}

// fillTimeEvidence sets the evidence of the predicted time. If the load changes during the job, it
// is the evidence of the least certain prediction. result is nil if the time is unknown.
func (d *decider) fillTimeEvidence(
	t *schemas.TimeEvidence, alt *schemas.Alternative, result *jobForecast,
) {
	r := d.r.EpochTime
	e := evidence.EpochTime{}
	if result != nil {
		e = result.leastCertain
	}
	if !e.Known() {
		e = r.evidence.Epochs(r.drift, d.configuration(alt))
	}
	t.Support, t.NodeType = e.Support.String(), d.nodeType()
	t.ConfigurationRuns = uint32(e.Counts.Configuration)
	t.NodeTypeRuns, t.ModelRuns = uint32(e.Counts.NodeType), uint32(e.Counts.Model)
	if !e.Support.Promisable() {
		m := d.missing(alt)
		t.Lacks, t.RanLow, t.RanHigh = m.Lacks, uint32(m.Low), uint32(m.High)
	}
	if !e.Known() {
		return
	}
	t.CorrectionRatio = visibleRatio(e.Correction.Shift)
	if e.Correction.Factors > 0 {
		c := d.configuration(alt)
		t.Corrections = r.correctionsOf(&c)
	}
	kind := jobKind{d.a.Model, d.a.Dataset, alt.CPUs}
	t.OutcomeRatio = visibleRatio(d.q.Recalibration.shift(kind))
}

// configuration returns the configuration of an alternative at the load at its start.
func (d *decider) configuration(alt *schemas.Alternative) evidence.Configuration {
	r, cores := d.r.EpochTime, d.f.hardware[d.at[0]].Cores
	if d.standIn {
		cores = 0
	}
	load := d.loadOf(alt.CPUs).Load
	c := r.timeConfiguration(d.codes.time, alt.BatchSize, alt.CPUs, load, cores, d.nodeType())
	c.Model, c.Dataset = d.a.Model, d.a.Dataset // an unknown model has no code of its own
	return c
}

// nodeType returns the type of the job's first node, or the type that stands in for it.
func (d *decider) nodeType() string {
	if d.standIn {
		return d.r.EpochTime.evidence.NodeType(d.f.names[d.at[0]], "")
	}
	return d.f.types[d.at[0]]
}

// missing returns the evidence that is missing for a promise of an alternative. If no evidence is
// missing for the load at its start, the evidence is missing for a later load.
func (d *decider) missing(alt *schemas.Alternative) evidence.Missing {
	r := d.r.EpochTime
	if r == nil || r.evidence == nil {
		return evidence.Missing{}
	}
	if e := alt.Evidence; e != nil && e.Time != nil && e.Time.Lacks != "" {
		return evidence.Missing{
			Lacks: e.Time.Lacks,
			Low:   int(e.Time.RanLow),
			High:  int(e.Time.RanHigh),
		}
	}
	m := r.evidence.Missing(d.configuration(alt))
	m.Lacks = cmp.Or(m.Lacks, evidence.LacksLoad)
	return m
}

// visibleRatio returns the ratio of a logarithmic shift; 0 if it is 1 to three digits.
func visibleRatio(shift float64) float64 {
	const visible = 0.0005
	if math.Abs(shift) < visible {
		return 0
	}
	return math.Round(math.Exp(shift)*1e6) / 1e6
}

// correctionsOf returns the drift corrections that apply to a configuration.
func (r *LoadedRegressor) correctionsOf(c *evidence.Configuration) []schemas.DriftFactor {
	var all []schemas.DriftFactor
	for i := range r.factors {
		f := &r.factors[i]
		if f.Covers(c) {
			all = append(all, schemas.DriftFactor{
				Scope: f.Kind, BatchSize: uint32(f.BatchSize), Ratio: math.Round(f.Ratio*1e6) / 1e6,
				Runs: uint32(f.Runs), SinceAt: f.Since.UTC(),
			})
		}
	}
	return all
}
