package decide

import (
	"cmp"
	"math"

	"courier/regress/evidence"
	"courier/schemas"
)

// evidenceOf reports the runs behind an alternative. e is the least certain prediction of its epoch
// time, which is unknown without a forecast.
func (p *problem) evidenceOf(
	alt *schemas.Alternative, e *evidence.EpochTime, a *evidence.Accuracy,
) *schemas.Evidence {
	if p.r.EpochTime == nil {
		return nil
	}
	all := &schemas.Evidence{Time: p.timeEvidence(alt, e)}
	if e.Known() {
		all.Startup = p.startupRuns
	}
	if a.ModelRuns > 0 {
		all.Accuracy = p.accuracyEvidence(alt.BatchSize, a)
	}
	return all
}

// timeEvidence reports the runs behind a predicted time. If the load changes during the job, these
// are the runs of the least certain prediction.
func (p *problem) timeEvidence(alt *schemas.Alternative, e *evidence.EpochTime) *schemas.TimeEvidence {
	r := p.r.EpochTime
	if !e.Known() {
		e = new(r.rest(p.configuration(alt.BatchSize, alt.CPUs), nil, int(p.EpochsDone()+alt.Epochs)))
	}
	t := &schemas.TimeEvidence{
		Support:           e.Support.String(),
		NodeType:          p.firstNodeType(),
		ConfigurationRuns: uint32(e.Counts.Configuration),
		NodeTypeRuns:      uint32(e.Counts.NodeType),
		ModelRuns:         uint32(e.Counts.Model),
	}
	if e.Known() && len(r.factors) > 0 {
		t.Corrections = r.correctionsOf(p.configuration(alt.BatchSize, alt.CPUs))
	}
	return t
}

// missing returns the evidence that is missing for a promise of an alternative. If no evidence is
// missing for the load at its start, the evidence is missing for a later load.
func (p *problem) missing(alt *schemas.Alternative) evidence.Missing {
	if p.r.EpochTime == nil {
		return evidence.Missing{Lacks: evidence.LacksModel}
	}
	m := p.r.EpochTime.evidence.Missing(p.configuration(alt.BatchSize, alt.CPUs))
	m.Lacks = cmp.Or(m.Lacks, evidence.LacksLoad)
	if m.Lacks == evidence.LacksCPUs && p.workers > 1 { // the runs had the same number of workers
		m.Low, m.High = m.Low/int(p.workers), m.High/int(p.workers)
	}
	return m
}

// correctionsOf returns the drift corrections that apply to a configuration.
func (r *Regressor) correctionsOf(c evidence.Configuration) []schemas.DriftFactor {
	var all []schemas.DriftFactor
	for i := range r.factors {
		f := &r.factors[i]
		if f.Covers(&c) {
			all = append(all, schemas.DriftFactor{
				Scope:     f.Kind,
				BatchSize: uint32(f.BatchSize),
				Ratio:     math.Round(f.Ratio*1e6) / 1e6,
				Runs:      uint32(f.Runs),
				SinceAt:   f.Since.UTC(),
			})
		}
	}
	return all
}

func (p *problem) startupEvidence() *schemas.StartupEvidence {
	c := p.timed.configuration(0, 0)
	c.NodeType = p.hardwareType
	onNodeType, all := p.r.Startup.evidence.StartupRuns(c)
	return &schemas.StartupEvidence{
		Seconds:      math.Round(p.startup.Median()*1e6) / 1e6,
		NodeTypeRuns: uint32(onNodeType),
		ModelRuns:    uint32(all),
	}
}

func (p *problem) accuracyEvidence(batch uint32, a *evidence.Accuracy) *schemas.AccuracyEvidence {
	e := &schemas.AccuracyEvidence{
		Support:         a.Support.String(),
		BatchSizeRuns:   uint32(a.Runs),
		ModelRuns:       uint32(a.ModelRuns),
		LongestEpochs:   uint32(a.Longest),
		HighestAccuracy: a.Highest,
	}
	if !a.Known {
		e.KnownFromEpoch = p.knownFrom(batch)
	}
	return e
}

// knownFrom returns the epoch from which the accuracy of a batch size is known; 0 means never.
func (p *problem) knownFrom(batch uint32) uint32 {
	return uint32(p.r.Accuracy.evidence.AccuracyKnownFrom(p.accuracyConfiguration(batch)))
}
