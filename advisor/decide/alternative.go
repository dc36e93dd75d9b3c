package decide

import (
	"math"
	"slices"
	"sort"

	"courier/regress/evidence"
	"courier/schemas"
)

// candidate is an alternative with the figures that rank it but are not published with it.
type candidate struct {
	schemas.Alternative
	meanAccuracy      float64 // 0 if unknown
	sloProbability    float64 // of the SLO alone
	targetProbability float64 // of the target accuracy; 1 without a target
	highestAccuracy   float64 // of any run of the model; 0 if none was measured
	isMeasured        bool    // the accuracy after its epochs is known well enough, or nothing depends on it
	isReachedOnce     bool    // too few runs have reached the target accuracy for a promise

	passage       evidence.Passage // when it reaches the target accuracy
	ends          evidence.Passage // when it stops by itself, if before its last epoch; unknown: never
	stopsAtTarget bool
	forecast      *forecast // of all epochs of the request; nil if its end is unknown
}

// candidates returns each batch size of the request with each number of workers and of CPUs.
func (p *problem) candidates(cpus []int) []candidate {
	counts := p.Request.WorkerCounts()
	all := make([]candidate, 0, len(counts)*len(cpus)*len(p.Request.BatchSizes))
	for _, workers := range counts {
		p := p.of(workers)
		for _, n := range cpus {
			for _, batch := range p.Request.BatchSizes {
				all = append(all, p.candidate(uint32(batch), uint32(n)))
			}
		}
	}
	return all
}

// areTimed reports whether the time of every candidate is known.
func areTimed(all []candidate) bool {
	return !slices.ContainsFunc(all, func(c candidate) bool { return c.PredictedSeconds == nil })
}

// candidate returns the figures of a batch size with some CPUs.
func (p *problem) candidate(batch, cpus uint32) candidate {
	c := p.untimed(schemas.Alternative{
		BatchSize: batch, CPUs: cpus, Workers: p.workers, Loaders: p.loaders, Epochs: p.epochsLeft(),
	})
	var leastCertain evidence.EpochTime
	if p.canForecast(batch, cpus) {
		if f := p.forecast(variantOf(&c.Alternative)); !math.IsInf(f.job.end, 1) {
			c.forecast = &f
			p.setEpochs(&c)
			p.setTime(&c, p.Request.Confidence)
			leastCertain = f.job.leastCertain
		}
	}
	reached := p.setAccuracy(&c)
	if p.Self == nil { // for a running job, the answer to its request had the evidence
		c.Evidence = p.evidenceOf(&c.Alternative, &leastCertain, &reached)
	}
	return c
}

// untimed returns an alternative as a candidate whose time is not known yet.
func (p *problem) untimed(alt schemas.Alternative) candidate {
	c := candidate{Alternative: alt, passage: p.passage(alt.BatchSize), ends: stopEpoch(p.Stops, alt.BatchSize)}
	if c.stopsAtTarget = p.stopsAt(&c.passage); c.stopsAtTarget && p.IsKnownToStop {
		c.ends = c.passage
	}
	return c
}

// setEpochs sets the epochs of an alternative if the request does not set them.
func (p *problem) setEpochs(c *candidate) {
	if p.Request.Epochs > 0 || !p.hasAccuracy {
		return
	}
	done := p.EpochsDone()
	if s := p.stop(c, done+c.Epochs); s.Probability >= unreachableTarget {
		c.Epochs = uint32(s.Epochs) - done
		return
	}
	c.Epochs = p.chooseEpochs(c)
}

// setTime sets the time of an alternative, its bound at a level, and the probability of the SLO.
func (p *problem) setTime(c *candidate, level float64) {
	o := p.outlook(c, c.Epochs)
	seconds := 0.0
	if o.Known() {
		seconds = o.Median()
	}
	c.Extrapolated = o.isExtrapolated
	c.PredictedSeconds = figure(seconds)
	c.CPUSeconds = figure(max(0, seconds-c.forecast.job.plan.wait) * float64(c.Processes()))
	if seconds == 0 { // all epochs are done, and what follows does not count for the SLO
		if m := p.Self; p.Request.SLO > 0 && m != nil && p.Left()+m.Since.Seconds() >= 0 {
			c.Probability = figure(1)
		}
		return
	}
	if bound, ok := o.upperBound(level); ok {
		c.UpperBoundSeconds = figure(bound)
	}
	if p.Request.SLO == 0 {
		return
	}
	if probability, ok := o.inTime(p.Left()); ok || p.Self != nil && o.Known() {
		// Of a running job it is known, though it may not be promised.
		c.Probability = figure(probability)
	}
}

// setAccuracy sets the accuracy of an alternative, which it returns, and multiplies the probability of the
// SLO by the probability of the target accuracy. The errors of time and accuracy are assumed to be
// independent.
func (p *problem) setAccuracy(c *candidate) (a evidence.Accuracy) {
	done := p.EpochsDone()
	last, _ := c.lastEpochs(done, done+c.Epochs)
	if last-done < c.Epochs {
		c.ExpectedEpochs = last - done
	}
	if p.hasAccuracy {
		a = p.accuracyAt(c.BatchSize, last)
	}
	c.meanAccuracy, c.highestAccuracy = a.Mean, a.Highest
	c.isMeasured = a.Known || p.isOneBatchSize()
	c.sloProbability, c.targetProbability = ProbabilityOf(&c.Alternative), 1
	switch {
	case c.stopsAtTarget && c.forecast != nil:
		all := int(done + c.Epochs)
		inTime := c.passage.Stop(p.inTimeAfter(c.forecast), all, 1).Probability
		c.targetProbability = c.passage.By(all)
		c.sloProbability = min(inTime/max(c.targetProbability, 1e-9), maxProbability)
	case p.Request.TargetAccuracy > 0:
		c.targetProbability = c.passage.Reaches(&a, int(done+c.Epochs))
	}
	if c.passage.Known() && !c.passage.Promisable {
		c.isMeasured, c.isReachedOnce = false, true
	}
	if p.Request.TargetAccuracy > 0 && p.hasAccuracy {
		c.AccuracyProbability = figure(c.targetProbability)
		if c.Probability != nil {
			c.SLOProbability = figure(c.sloProbability)
			c.Probability = figure(c.sloProbability * c.targetProbability)
		}
	}
	if !a.Known {
		return a
	}
	c.PredictedAccuracy = figure(a.Mean)
	low, high := a.Interval(p.Request.Confidence)
	if c.AccuracyUpper = figure(high); low > 0 {
		c.AccuracyLower = figure(low)
	}
	return a
}

// isOneBatchSize reports whether the request asks for the time of some epochs with one batch size, so that
// its accuracy decides nothing.
func (q *Question) isOneBatchSize() bool {
	r := &q.Request
	return len(r.BatchSizes) == 1 && r.Epochs > 0 && r.SLO > 0 && r.TargetAccuracy == 0
}

// stop chooses the epochs of a new job with a target accuracy: the fewest after which target and SLO are as
// probable as wanted, at most a number. Without an SLO it reaches the target nearly certainly.
func (p *problem) stop(c *candidate, most uint32) (best evidence.Stop) {
	wanted, inTime := p.Request.Confidence, p.inTimeAfter(c.forecast)
	if p.Request.SLO == 0 {
		wanted = nearlyCertain
	}
	if c.stopsAtTarget {
		return c.passage.Stop(inTime, int(most), wanted)
	}
	for _, n := range epochGrid(most) { // it runs on after its target
		if reached := c.passage.By(int(n)); reached > best.Probability {
			if both := reached * inTime(int(n)); both > best.Probability {
				best = evidence.Stop{Epochs: int(n), Reached: reached, Probability: both}
			}
		}
		if best.Probability >= wanted {
			break
		}
	}
	return best
}

// inTimeAfter returns the probability that a forecast job ends within the SLO, by its total epochs.
func (p *problem) inTimeAfter(f *forecast) func(epochs int) float64 {
	return func(epochs int) float64 { return p.inTime(p.outlookOf(f, uint32(epochs)-p.EpochsDone())) }
}

// inTime returns the probability that a job ends within the SLO; 1 without one.
func (p *problem) inTime(o outlook) float64 {
	if p.Request.SLO == 0 {
		return 1
	}
	probability, _ := o.inTime(p.Left())
	return probability
}

// nearlyCertain is the minimum probability at which the fastest alternative is preferred to the
// most likely alternative.
const nearlyCertain = 0.99

// unreachableTarget is the probability of SLO and target accuracy below which the target is
// ignored, because a job that misses the target is better than none.
const unreachableTarget = 0.001

// chooseEpochs chooses the number of remaining epochs without a reachable target, up to those of a
// forecast: it maximizes probability times expected accuracy. The probability falls with the epochs. If the
// accuracy is unknown, these are the most epochs that probably end in time.
func (p *problem) chooseEpochs(c *candidate) uint32 {
	grid := epochGrid(c.Epochs)
	upTo := func(least float64) int {
		return sort.Search(len(grid), func(i int) bool { return p.inTime(p.outlook(c, grid[i])) < least })
	}
	longest := p.accuracyAt(c.BatchSize, p.EpochsDone()+c.Epochs)
	if longest.Mean == 0 {
		return grid[max(1, upTo(LikelyMissed))-1]
	}
	certain := upTo(maxProbability)
	best, highest := min(1, c.Epochs), -1.0
	most := max(longest.Mean, longest.Highest)
	for i, n := range grid {
		a, probability := p.accuracyAt(c.BatchSize, p.EpochsDone()+n), maxProbability
		if i >= certain {
			probability = p.inTime(p.outlook(c, n))
		}
		if worth := probability * a.Mean; worth > highest {
			best, highest = n, worth
		}
		if probability*most < highest {
			break
		}
	}
	return best
}

// epochGrid returns the numbers of epochs to consider: every small number, then numbers up to highest that
// grow by a few percent per step.
func epochGrid(highest uint32) (all []uint32) {
	const small = 32
	for n := uint32(1); n < highest; n += 1 + n/small {
		all = append(all, n)
	}
	return append(all, highest)
}

// accuracy returns the predicted accuracy, 0 if it is unknown.
func accuracy(alt *schemas.Alternative) float64 { return orZero(alt.PredictedAccuracy) }

// ProbabilityOf returns the probability of the SLO, 0 if it is unknown.
func ProbabilityOf(alt *schemas.Alternative) float64 { return orZero(alt.Probability) }

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// figure returns a number for the advice, rounded to a millionth, so that decisions are made with
// the published numbers.
func figure(v float64) *float64 {
	return new(math.Round(v*1e6) / 1e6)
}
