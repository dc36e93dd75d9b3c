package decide

import "courier/schemas"

// route is a way to reach the target accuracy, regardless of the SLO.
type route struct {
	variant         // with its epochs since the beginning of the job
	seconds float64 // from now; 0 if the epochs are more than requested
}

// routes returns the ways in which the candidates reach the target accuracy with a probability, and the
// highest probability with which any ever reaches it.
func (p *problem) routes(all []candidate, probability float64) (found []route, ever float64) {
	done := p.EpochsDone()
	for i := range all {
		c := &all[i]
		passage := p.of(c.Workers).passage(c.BatchSize)
		if c.Extrapolated || !passage.Promisable {
			continue
		}
		reach := passage.By(schemas.MaxEpochs)
		if ever = max(ever, reach); reach < probability {
			continue
		}
		r := route{variant: variantOf(&c.Alternative)}
		r.epochs = uint32(passage.Epochs(probability/reach, schemas.MaxEpochs))
		if left := r.epochs - min(r.epochs, done); left <= p.epochsLeft() {
			rest := r.variant
			rest.epochs = left
			f := p.forecast(rest)
			r.seconds = f.job.end
		}
		found = append(found, r)
	}
	return found, ever
}

// quickest returns the route that takes the shortest time within the epochs of the request, or nil.
func quickest(all []route) (best *route) {
	for i := range all {
		if r := &all[i]; r.seconds > 0 && (best == nil || r.seconds < best.seconds) {
			best = r
		}
	}
	return best
}
