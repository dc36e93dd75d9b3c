package advisor

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// compileEvidence returns the distributions of a regressor of package evidence and their
// corrections; nil for others.
func compileEvidence(m *regress.Manifest) (*evidence.Predictor, *evidence.Corrections, error) {
	if m.Family != regress.FamilyHierarchy {
		return nil, nil, nil
	}
	var s evidence.State
	if err := json.Unmarshal(m.Hierarchy, &s); err != nil {
		return nil, nil, fmt.Errorf("read the hierarchy of %s: %w", m.Target, err)
	}
	return s.Compile()
}

// configuration is the model and the dataset of a code of this regressor; the zero value if there
// is none.
func (r *Regressor) configuration(code float64) (c evidence.Configuration) {
	if i := int(code); i >= 0 && i < len(r.trained) {
		return r.trained[i]
	}
	return c
}

// epochTime predicts an epoch of a job under a load from the evidence of its model.
func (r *Regressor) epochTime(
	code float64, batch, cpus uint32, l schemas.Load, cores uint32, nodeType string,
) evidence.EpochTime {
	e := r.evidence.Epochs(r.drift, r.timeConfiguration(code, batch, cpus, l, cores, nodeType))
	f := schemas.Features{Load: l}
	if !e.Known() || !r.encoder.LacksForeign(&f) {
		return e
	}

	// The prediction is that beside the typical foreign load, but it may be any that was measured.
	busiest := r.encoder.Busiest(f).Load
	c := r.timeConfiguration(code, batch, cpus, busiest, cores, nodeType)
	if slower := r.evidence.Epochs(r.drift, c).Location - e.Location; slower > 0 {
		e.Variance += slower * slower / foreignDeviations / foreignDeviations
	}
	return e
}

// foreignDeviations is how many standard deviations an unknown foreign load may be off: the greatest
// that was measured is as seldom as that.
const foreignDeviations = 2

// timeConfiguration is what the time of an epoch depends on.
func (r *Regressor) timeConfiguration(
	code float64, batch, cpus uint32, l schemas.Load, cores uint32, nodeType string,
) evidence.Configuration {
	load := evidence.Load{ConcurrentJobs: l.ConcurrentJobs}
	if cores > 0 {
		load.ProcessesPerCore = l.Processes / float64(cores)
	}
	load.ForeignCPURatio, load.ForeignIOWaitRatio = r.encoder.ForeignRatios(&l)
	c := r.configuration(code)
	c.NodeType, c.BatchSize, c.CPUs, c.Load = nodeType, int(batch), int(cpus), load
	return c
}

// standIn reports whether runs on nodes of unknown hardware, such as imported ones, count for a
// request that leaves the node to Courier. They stand for any node until the model has run on a
// node whose hardware is known, and as long as they do not differ from node to node.
func (r *Regressor) standIn(code float64, nodeType string) bool {
	types := r.evidence.NodeTypes(r.configuration(code))
	return nodeType != "" && len(types) == 1 && types[0] == ""
}

// ownEvidence is how much longer the epochs of a running job take than predicted, and the share
// of the variance of its expectation and its run that is left. Its n epochs correct the prediction
// as a conjugate normal update: by n v / (n v + s), with the variance v of the run and s of an
// epoch.
func (m *Member) ownEvidence(r *Regressor, code float64) (factor, left float64) {
	var sum, n, variance, noise float64
	for i := range m.laps {
		l := &m.laps[i]
		nodeType := r.evidence.NodeType(l.node, l.load.on.NodeType())
		e := r.epochTime(code, l.batch, m.Setting.CPUs, l.load.Load, l.load.on.Cores, nodeType)
		if !e.Known() || l.seconds <= 0 {
			continue
		}
		sum += math.Log(l.seconds) - e.Location
		variance, noise = max(variance, e.Variance), e.Noise
		n++
	}
	if n == 0 || variance == 0 {
		return 1, 1
	}
	weight := n * variance / (n*variance + noise)
	return math.Exp(weight * sum / n), 1 - weight
}

// uncertainty is the spread of a forecast: of the logarithm of the time that is left.
type uncertainty struct {
	scale, degrees float64 // of a Student-t distribution; scale 0: tables say it
}

// spread returns the uncertainty of a job's fate: that of its epochs, weighted by their share of
// the time, and that of its start-up.
func (j *ahead) spread(startup evidence.Distribution, epochs float64) uncertainty {
	e := &j.widest
	if !e.Known() || !(j.end > 0) {
		return uncertainty{}
	}
	variance := e.Variance*j.left + e.Noise/max(epochs, 1)
	if j.planned > 0 && startup.Scale > 0 {
		share := min(1, j.planned/j.end)
		variance = (1-share)*(1-share)*variance + share*share*startup.Scale*startup.Scale
	}
	return uncertainty{math.Sqrt(variance), e.Degrees}
}

// wider reports whether an estimate is less certain than another.
func wider(a, b *evidence.EpochTime) bool {
	if !a.Known() || !b.Known() {
		return a.Known()
	}
	if a.Support != b.Support {
		return a.Support < b.Support
	}
	return a.Variance > b.Variance
}

// accuracyAt predicts the accuracy of a batch size after some epochs.
func (r *Regressor) accuracyAt(code float64, batch, epochs uint32) evidence.Accuracy {
	return r.evidence.Accuracy(r.accuracyConfiguration(code, batch), int(epochs))
}

// accuracyConfiguration is what an accuracy depends on.
func (r *Regressor) accuracyConfiguration(code float64, batch uint32) evidence.Configuration {
	c := r.configuration(code)
	c.BatchSize, c.CPUs = int(batch), 1
	return c
}

// epochGrid returns the numbers of epochs to consider up to most: all of the first, then steps of
// some per cent.
func epochGrid(most uint32) []uint32 {
	var all []uint32
	ratio := stepTo(most)
	for n := uint32(1); n <= most; n = max(n+1, uint32(math.Ceil(float64(n)*ratio))) {
		all = append(all, n)
	}
	if len(all) == 0 || all[len(all)-1] != most {
		all = append(all, most)
	}
	return slices.Compact(all)
}

// own is how much longer the epochs of a running job take than predicted, by how much they narrow
// the tables of residuals, and the share of the variance of its run that they leave.
func (m *Member) own(r *Regressor, code float64, said *memory) (factor, narrow, left float64) {
	if r.evidence != nil {
		factor, left = m.ownEvidence(r, code)
		return factor, 1, left
	}
	factor, narrow = m.ownFactor(r, code, said)
	return factor, narrow, 1
}

// placeEvidence chooses whose runs count for the job: those on its node's type, or those that
// stand in for it where the request leaves the node to Courier.
func (d *decision) placeEvidence() {
	r := d.r.EpochTime
	if !d.knows.time || r.evidence == nil || d.q.Self != nil || len(d.q.Request.Nodes) > 0 {
		return
	}
	d.standIn = r.standIn(d.codes.time, d.f.types[d.at[0]])
}

// hardware is that of the job's node, the first of several.
func (d *decision) hardware() schemas.Hardware { return d.f.hardware[d.at[0]] }

// startupTime is a predicted start-up: that of a job in question is asked for again and again.
type startupTime struct {
	code  float64
	on    schemas.Hardware
	known bool // it was predicted
	evidence.Distribution
	onNodeType, all int // runs that showed it
}

// startupOf predicts the seconds from the start to the first epoch from the evidence of a model.
func (d *decision) startupOf(code float64, on schemas.Hardware) evidence.Distribution {
	r := d.r.Startup
	if r == nil || r.evidence == nil {
		return evidence.Distribution{}
	}
	if !d.begun.known || d.begun.code != code || d.begun.on != on {
		c := r.configuration(code)
		c.NodeType = on.NodeType()
		d.begun = startupTime{code: code, on: on, known: true, Distribution: r.evidence.Startup(c)}
		d.begun.onNodeType, d.begun.all = r.evidence.StartupRuns(c)
	}
	return d.begun.Distribution
}
