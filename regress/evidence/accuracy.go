package evidence

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
)

// Accuracy is the predicted accuracy after a number of epochs.
type Accuracy struct {
	// Known is false if less than half of such runs measured an accuracy by then.
	Known bool
	// Mean over the runs of the batch size that lasted as many epochs, 0 to 1. If all runs were shorter, it
	// rises like the accuracy of another batch size after their end. Between measured batch sizes, it is the
	// highest accuracy that would be reached by then.
	Mean      float64
	Support   Support
	Runs      int     // of the same batch size
	ModelRuns int     // of the model and dataset
	Longest   int     // last epoch that runs show: of the batch size, of both next to it, or of any
	Highest   float64 // accuracy of any run of the model; 0 if none was measured

	deviation, degrees float64 // of one run's accuracy
}

// Interval returns the central interval of the accuracy of one run for a confidence. An unknown
// accuracy has no interval.
func (a *Accuracy) Interval(confidence float64) (low, high float64) {
	if !a.Known {
		return 0, 0
	}
	out := (1 - confidence) / 2
	t := a.deviation * studentQuantile(1-out, a.degrees)
	return max(0, a.Mean-t), min(1, a.Mean+t)
}

// The variance of the accuracy of runs: a deviation, and its weight in degrees of freedom.
const (
	priorAccuracyDeviation = 0.005
	accuracyWeight         = 3.0
	unmeasuredDeviation    = 0.01 // of a batch size between measured ones
)

// predict returns the prediction for a batch size after a number of epochs.
func (p *accuracyPredictor) predict(batch int, epochs int) Accuracy {
	a := Accuracy{ModelRuns: p.runs, Longest: p.longest, Highest: p.highest, Support: p.support(batch)}
	i, isMeasured := p.find(batch)
	if isMeasured {
		a.Runs, a.Longest = len(p.batches[i].runs), p.batches[i].longest
	}
	switch {
	case epochs < 1:
	case isMeasured:
		a.setMeasured(p.batches[i].accuraciesAt(epochs))
	case i > 0 && i < len(p.batches):
		a.Longest = min(p.batches[i-1].longest, p.batches[i].longest)
		a.Mean, a.Known = p.course(batch, "").highestBy(min(epochs, a.Longest))
		a.degrees, a.deviation = accuracyWeight, unmeasuredDeviation
	}
	if until := min(epochs, p.longest); a.Known && a.Longest < until {
		p.continueBeyond(&a, batch, until)
	}
	return a
}

// setMeasured sets the figures from the accuracies of runs, of which some measured none.
func (a *Accuracy) setMeasured(values []float64, runs int) {
	if a.Known = len(values) > 0 && 2*len(values) >= runs; !a.Known {
		return
	}
	n, of := float64(len(values)), 0.0
	a.Mean, of = stat.PopMeanVariance(values, nil)
	a.degrees = accuracyWeight + n - 1
	variance := (accuracyWeight*priorAccuracyDeviation*priorAccuracyDeviation + n*of) / a.degrees
	a.deviation = math.Sqrt(variance * (1 + 1/n))
}

// continueBeyond lets an accuracy rise after the end of the runs of its batch size like the accuracy of the
// nearest batch size with longer runs. The distance between the two shrinks by the ratio of that rise.
func (p *accuracyPredictor) continueBeyond(a *Accuracy, batch, until int) {
	var longer []*Records
	nearest := math.Inf(1)
	for i := range p.batches {
		b := &p.batches[i]
		if d := math.Abs(math.Log(float64(b.size) / float64(batch))); b.longest >= until && d < nearest {
			longer, nearest = b.runs, d
		}
	}
	before, after, runs := 0.0, 0.0, 0.0
	for _, r := range longer {
		if v, ok := r.at(a.Longest); ok && r.Length >= until {
			last, _ := r.at(until)
			before, after, runs = before+v, after+last, runs+1
		}
	}
	if after == 0 {
		return
	}
	distance, gain := a.Mean-before/runs, (after-before)/runs
	a.Mean, a.Support = min(1, max(a.Mean, after/runs+distance*before/after)), min(a.Support, Interpolated)
	a.deviation = math.Hypot(a.deviation, math.Hypot(distance/2, gain/4))
}

// accuraciesAt returns the best accuracies until an epoch of the runs of a batch size that lasted as
// long, or of the longest ones, and the number of these runs.
func (b *batchRecords) accuraciesAt(epoch int) (values []float64, runs int) {
	values = make([]float64, 0, len(b.runs))
	for _, r := range b.runs {
		if r.Length < min(epoch, b.longest) {
			continue
		}
		runs++
		if v, ok := r.at(epoch); ok {
			values = append(values, v)
		}
	}
	return values, runs
}

// highestBy returns the highest level that most runs reach by an epoch; false if there is none.
func (c *course) highestBy(epochs int) (level float64, ok bool) {
	x := float64(epochs) * (1 + 1e-9)
	k := sort.Search(len(c.levels), func(k int) bool {
		a := &c.passages[k]
		return !a.Known() || a.Reach <= 0.5 || a.Median() > x
	})
	if k == 0 {
		return 0, false
	}
	return c.levels[k-1], true
}

// knownFrom returns the first epoch from which the accuracy of a batch size is known; 0: never.
func (p *accuracyPredictor) knownFrom(batch int, node string) int {
	if i, isMeasured := p.find(batch); isMeasured {
		var first []int
		for _, r := range p.batches[i].runs {
			first = append(first, r.Epochs[0])
		}
		slices.Sort(first)
		return first[(len(first)-1)/2]
	}
	lowest := p.course(batch, node).passages[0]
	if !lowest.Known() {
		return 0
	}
	return lowest.Epochs(0.5, maxGridEpochs)
}

// Accuracy predicts the accuracy after a number of epochs.
func (p *Predictor) Accuracy(c Configuration, epochs int) Accuracy {
	s := p.accuracyOf(&c)
	if s == nil {
		return Accuracy{}
	}
	return s.predict(c.BatchSize, epochs)
}

// AccuracyKnownFrom returns the first epoch from which an accuracy is known; 0: never.
func (p *Predictor) AccuracyKnownFrom(c Configuration) int {
	s := p.accuracyOf(&c)
	if s == nil {
		return 0
	}
	return s.knownFrom(c.BatchSize, c.NodeType)
}

// Passage predicts when a target accuracy is reached. It depends on the node type only where node
// types disagree.
func (p *Predictor) Passage(c Configuration, target float64) Passage {
	s := p.accuracyOf(&c)
	if s == nil {
		return Passage{}
	}
	return s.passage(c.BatchSize, c.NodeType, target)
}

// Reaches returns the probability that a run of some epochs reaches a target accuracy: see
// Passage.Reaches.
func (p *Predictor) Reaches(c Configuration, target float64, epochs int) float64 {
	passage, predicted := p.Passage(c, target), p.Accuracy(c, epochs)
	return passage.Reaches(&predicted, epochs)
}

func (p *Predictor) accuracyOf(c *Configuration) *accuracyPredictor {
	if c.BatchSize < 1 {
		return nil
	}
	return p.of(c).accuracy
}
