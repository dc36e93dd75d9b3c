package advisor

import (
	"courier/schemas"
)

// whyNone says why no alternative can be promised.
func (d *decision) whyNone() {
	q, s := d.q, &d.words
	target := q.Request.TargetAccuracy
	byEvidence := len(d.merits) > 0
	switch {
	case target > 0 && byEvidence && q.neverReached(&d.merits[0]):
		d.never()
		return
	case target > 0 && byEvidence:
		s.say("no alternative keeps the SLO and reaches accuracy ")
		s.ratio(target)
		s.say(" with probability ")
		s.ratio(d.a.RequiredProbability())
		s.say(": ")
		d.whyNotTarget()
		return
	case target > 0 && probability(d.a.Chosen) >= q.least():
		s.say("no alternative that keeps the SLO is predicted to reach accuracy ")
		s.ratio(target)
		return
	}
	s.say("no alternative keeps the SLO with probability ")
	s.ratio(d.a.RequiredProbability())
}

// route is how a target accuracy is reached, SLO or not.
type route struct {
	alt     *schemas.Alternative
	epochs  uint32  // from the beginning
	seconds float64 // from now on
}

// whyNotTarget says what keeps the SLO and the target accuracy from being promised together.
func (d *decision) whyNotTarget() {
	s, limit := &d.words, d.q.epochsDone()+d.mostEpochs()
	fewest, ever := d.fewestEpochs()
	quickest := d.quickestRoute(d.q.least())
	switch {
	case fewest.alt == nil:
		s.say("however long it runs, the accuracy is reached with probability ")
		s.chance(ever)
		s.say(" at most")
	case quickest.alt == nil:
		s.say("the accuracy takes ")
		s.route(fewest)
		s.say(" at least, more than the ")
		s.number(limit)
		s.say(" asked for")
	case quickest.seconds > d.q.left():
		s.say("the accuracy takes ")
		s.seconds(quickest.seconds)
		s.say(" at least (")
		s.route(quickest)
		s.say(")")
	default:
		d.whyNotBoth()
	}
}

// fewestEpochs returns the alternative that reaches the target accuracy as surely as asked for in
// the fewest epochs, and the highest probability with which any ever reaches it.
func (d *decision) fewestEpochs() (fewest route, ever float64) {
	for i := range d.a.Alternatives {
		alt := &d.a.Alternatives[i]
		if alt.Extrapolated {
			continue
		}
		epochs, p := d.epochsTo(alt.BatchSize, d.q.least())
		if ever = max(ever, p); epochs > 0 && (fewest.alt == nil || epochs < fewest.epochs) {
			fewest = route{alt: alt, epochs: epochs}
		}
	}
	return fewest, ever
}

// quickestRoute returns the alternative that reaches the target accuracy with a probability in the
// shortest time, within the epochs that were asked for.
func (d *decision) quickestRoute(p float64) (quickest route) {
	limit := d.q.epochsDone() + d.mostEpochs()
	for i := range d.a.Alternatives {
		alt := &d.a.Alternatives[i]
		if alt.Extrapolated {
			continue
		}
		epochs, _ := d.epochsTo(alt.BatchSize, p)
		if epochs == 0 || epochs > limit {
			continue
		}
		if t := d.secondsOf(alt, epochs); quickest.alt == nil || t < quickest.seconds {
			quickest = route{alt, epochs, t}
		}
	}
	return quickest
}

// whyNotBoth says by which probabilities SLO and target accuracy are too unlikely together.
func (d *decision) whyNotBoth() {
	s, c := &d.words, d.a.Chosen
	if c.SLOProbability == nil || c.AccuracyProbability == nil {
		s.say("they are too unlikely together")
		return
	}
	s.say("at best the SLO is kept with ")
	s.chance(*c.SLOProbability)
	s.say(" and the accuracy reached with ")
	s.chance(*c.AccuracyProbability)
}

func (s *sentence) route(r route) {
	s.count(int(r.epochs), "epoch")
	s.say(" with batch size ")
	s.number(r.alt.BatchSize)
}

// mostEpochs is how many epochs the job may still run.
func (d *decision) mostEpochs() uint32 {
	q := d.q
	if q.Request.Epochs > 0 {
		return uint32(q.Request.Epochs) - min(uint32(q.Request.Epochs), q.epochsDone())
	}
	return d.all()
}

// epochsTo returns after how many epochs a batch size has reached the target accuracy with a
// probability, 0 if never, and the probability that it is ever reached.
func (d *decision) epochsTo(batch uint32, p float64) (epochs uint32, ever float64) {
	r, target := d.r.Accuracy, d.q.Request.TargetAccuracy
	a := r.accuracyAt(d.codes.accuracy, batch, schemas.MaxEpochs)
	if ever = promisedReach(&a, target); ever < p {
		return 0, ever
	}
	c := r.accuracyConfiguration(d.codes.accuracy, batch)
	return uint32(r.evidence.SmallestEpochs(c, target, p, schemas.MaxEpochs)), ever
}

// secondsOf predicts when an alternative would end that ran until some epoch.
func (d *decision) secondsOf(alt *schemas.Alternative, epochs uint32) float64 {
	another := *alt
	another.Epochs = epochs - min(epochs, d.q.epochsDone())
	return d.f.run(d.ahead(&another, d.loadOf(alt.CPUs))).end
}
