package decide

import "courier/schemas"

// route is a way to reach the target accuracy, regardless of the SLO.
type route struct {
	batch, cpus uint32
	epochs      uint32  // since the beginning of the job
	seconds     float64 // from now
}

// fewestEpochs returns the candidate that reaches the target accuracy in the fewest epochs with
// the confidence, nil if none does, and the highest probability with which any ever reaches it.
func (p *problem) fewestEpochs(all []candidate) (fewest *route, ever float64) {
	for i := range all {
		c := &all[i]
		if c.Extrapolated {
			continue
		}
		epochs, probability := p.epochsToTarget(c.BatchSize, p.Request.Confidence)
		ever = max(ever, probability)
		if epochs > 0 && (fewest == nil || epochs < fewest.epochs) {
			fewest = &route{batch: c.BatchSize, cpus: c.CPUs, epochs: epochs}
		}
	}
	return fewest, ever
}

// quickestRoute returns the candidate that reaches the target accuracy with a probability in the
// shortest time, within the epochs of the request; nil if none does.
func (p *problem) quickestRoute(all []candidate, probability float64) (quickest *route) {
	limit := p.EpochsDone() + p.epochsLeft()
	for i := range all {
		c := &all[i]
		if c.Extrapolated {
			continue
		}
		epochs, _ := p.epochsToTarget(c.BatchSize, probability)
		if epochs == 0 || epochs > limit {
			continue
		}
		f := p.forecast(variant{
			batch: c.BatchSize, cpus: c.CPUs, epochs: epochs - min(epochs, p.EpochsDone()),
		})
		if quickest == nil || f.job.end < quickest.seconds {
			quickest = &route{c.BatchSize, c.CPUs, epochs, f.job.end}
		}
	}
	return quickest
}

// epochsToTarget returns the number of epochs after which a batch size has reached the target
// accuracy with a probability, 0 if never, and the probability that it ever reaches it.
func (p *problem) epochsToTarget(batch uint32, probability float64) (epochs uint32, ever float64) {
	a := p.passage(batch)
	if !a.Promisable {
		return 0, 0
	}
	if ever = a.By(schemas.MaxEpochs); ever < probability {
		return 0, ever
	}
	return uint32(a.Epochs(probability/ever, schemas.MaxEpochs)), ever
}
