package decide

import (
	"math"
	"slices"

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
	isMeasured        bool    // the accuracy after its epochs is known
}

// candidates returns each batch size of the request with each number of CPUs.
func (p *problem) candidates(cpus []int) []candidate {
	all := make([]candidate, 0, len(cpus)*len(p.Request.BatchSizes))
	for _, n := range cpus {
		for _, batch := range p.Request.BatchSizes {
			all = append(all, p.candidate(uint32(batch), uint32(n)))
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
	c := candidate{Alternative: schemas.Alternative{
		BatchSize: batch, CPUs: cpus, Epochs: p.epochsLeft(),
	}}
	var leastCertain evidence.EpochTime
	if p.hasTime {
		if f := p.forecast(variantOf(&c.Alternative)); !math.IsInf(f.job.end, 1) {
			p.setTime(&c.Alternative, &f)
			leastCertain = f.job.leastCertain
		}
	}
	var reached evidence.Accuracy
	if p.hasAccuracy {
		reached = p.r.Accuracy.accuracyAt(p.job, batch, p.EpochsDone()+c.Epochs)
	}
	p.setAccuracy(&c, &reached)
	if p.Self == nil { // for a running job, the answer to its request had the evidence
		c.Evidence = p.evidenceOf(&c.Alternative, &leastCertain, &reached)
	}
	return c
}

// setTime sets the epochs of an alternative if the request does not set them, and its time.
func (p *problem) setTime(alt *schemas.Alternative, f *forecast) {
	if p.Request.Epochs == 0 && p.hasAccuracy {
		alt.Epochs = p.chooseEpochs(alt, f)
	}
	o := p.outlook(f, alt.Epochs)
	alt.Extrapolated = o.isExtrapolated
	alt.PredictedSeconds = figure(o.seconds)
	alt.CPUSeconds = figure(o.seconds * float64(alt.CPUs))
	if o.seconds == 0 { // all epochs are done
		if p.Request.SLO > 0 && p.Left() >= 0 {
			alt.Probability = figure(1)
		}
		return
	}
	if bound, ok := o.upperBound(p.Request.Confidence); ok {
		alt.UpperBoundSeconds = figure(bound)
	}
	if p.Request.SLO == 0 {
		return
	}
	if probability, ok := o.inTime(p.Left(), p.Request.Confidence); ok {
		alt.Probability = figure(probability)
	}
}

// setAccuracy sets the accuracy of an alternative, and multiplies the probability of the SLO by the
// probability of the target accuracy. The errors of time and accuracy are assumed to be independent.
func (p *problem) setAccuracy(c *candidate, a *evidence.Accuracy) {
	c.meanAccuracy, c.isMeasured, c.highestAccuracy = a.Mean, a.Known, a.Highest()
	c.sloProbability, c.targetProbability = ProbabilityOf(&c.Alternative), 1
	if t := p.Request.TargetAccuracy; t > 0 {
		c.targetProbability = promisedReach(a, t)
	}
	if p.Request.TargetAccuracy > 0 && p.hasAccuracy {
		c.AccuracyProbability = figure(c.targetProbability)
		if c.Probability != nil {
			c.SLOProbability = figure(c.sloProbability)
			c.Probability = figure(c.sloProbability * c.targetProbability)
		}
	}
	if !a.Known {
		return
	}
	c.PredictedAccuracy, c.MeanAccuracy = figure(a.Median), figure(a.Mean)
	low, high := a.Interval(p.Request.Confidence)
	if c.AccuracyUpper = figure(high); low > 0 {
		c.AccuracyLower = figure(low)
	}
}

// promisedReach returns the probability of the target accuracy. It is 0 if the batch size is
// outside the support, because such a batch size may not be promised.
func promisedReach(a *evidence.Accuracy, target float64) float64 {
	if !a.Support.Promisable() {
		return 0
	}
	return a.Reaches(target)
}

// nearlyCertain is the minimum probability at which the fastest alternative is preferred to the
// most likely alternative.
const nearlyCertain = 0.99

// unreachableTarget is the probability of SLO and target accuracy below which the target is
// ignored, because a job that misses the target is better than none.
const unreachableTarget = 0.001

// chooseEpochs chooses the number of remaining epochs, up to those of a forecast. With a target
// accuracy it chooses the fewest epochs that reach the target within the SLO almost certainly.
// Without one it maximizes probability times expected accuracy.
func (p *problem) chooseEpochs(alt *schemas.Alternative, f *forecast) uint32 {
	target := p.Request.TargetAccuracy
	first := min(1, alt.Epochs)
	best, highest, mostAccurate, accuracy := first, -1.0, first, -1.0
	for _, n := range epochGrid(alt.Epochs) {
		inTime := 1.0
		if p.Request.SLO > 0 {
			o := p.outlook(f, n)
			inTime, _ = o.inTime(p.Left(), p.Request.Confidence)
		}
		a := p.r.Accuracy.accuracyAt(p.job, alt.BatchSize, p.EpochsDone()+n)
		if worth := inTime * a.Mean; worth > accuracy {
			mostAccurate, accuracy = n, worth
		}
		if target == 0 {
			continue
		}
		if worth := inTime * promisedReach(&a, target); worth > highest {
			best, highest = n, worth
		}
		if highest >= nearlyCertain {
			break
		}
	}
	if highest < unreachableTarget {
		return mostAccurate
	}
	return best
}

// gridEpochs is the approximate size of a grid of epochs.
const gridEpochs = 64

// epochGrid returns the numbers of epochs to consider: every small number, then numbers up to
// highest that grow by a few percent per step.
func epochGrid(highest uint32) []uint32 {
	ratio := 1.0
	if highest > gridEpochs {
		ratio = math.Pow(float64(highest)/gridEpochs, 2.0/gridEpochs)
	}
	var all []uint32
	for n := uint32(1); n < highest; n = max(n+1, uint32(math.Ceil(float64(n)*ratio))) {
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
	v = math.Round(v*1e6) / 1e6
	return &v
}
