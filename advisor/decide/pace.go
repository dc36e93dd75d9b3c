package decide

import "math"

// pace compares the observed epochs of a running job with their predictions.
type pace struct {
	ratio        float64 // of measured to predicted time
	varianceLeft float64 // share of the run's variance that its epochs leave
}

// usualPace is the pace of a job without observed epochs.
var usualPace = pace{ratio: 1, varianceLeft: 1}

// paceOf returns the pace of a running job. n epochs correct the prediction as a conjugate normal
// update by n v / (n v + s), with the variance v of the run and the noise s of an epoch.
func (r *Regressor) paceOf(m *Member) pace {
	var sum, n, variance, noise float64
	for i := range m.ObservedEpochs {
		l := &m.ObservedEpochs[i]
		e := r.epochTime(trainedBy(&m.Setting), l.BatchSize, l.CPUs, nodeState{
			nodeType: r.evidence.NodeType(l.Node, l.Load.On.NodeType()),
			cores:    l.Load.On.Cores,
			load:     l.Load.Load,
		})
		if !e.Known() || l.Seconds <= 0 {
			continue
		}
		sum += math.Log(l.Seconds) - e.Location
		variance, noise = max(variance, e.Variance), e.Noise
		n++
	}
	if n == 0 || variance == 0 {
		return usualPace
	}
	weight := n * variance / (n*variance + noise)
	return pace{math.Exp(weight * sum / n), 1 - weight}
}
