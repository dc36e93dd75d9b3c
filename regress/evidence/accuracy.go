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
	// Mean over the runs of the batch size that lasted as many epochs, 0 to 1. Between measured
	// batch sizes it is the highest accuracy that would be reached by then.
	Mean      float64
	Support   Support
	Runs      int // of the same batch size
	ModelRuns int // of the model and dataset
	// Longest is the last epoch with an accuracy in any run of the model. Beyond reports that no
	// run lasted as long as requested.
	Longest int
	Beyond  bool
	Highest float64 // accuracy of any run of the model; 0 if none was measured

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
	a := Accuracy{ModelRuns: p.runs, Longest: p.longest, Beyond: epochs > p.longest,
		Highest: p.highest, Support: p.support(batch)}
	i, isMeasured := p.find(batch)
	if isMeasured {
		a.Runs = len(p.batches[i].runs)
	}
	switch {
	case epochs < 1:
	case isMeasured:
		a.setMeasured(p.batches[i].accuraciesAt(epochs))
	case i > 0 && i < len(p.batches):
		a.Mean, a.Known = p.course(batch, "").highestBy(epochs)
		a.degrees, a.deviation = accuracyWeight, unmeasuredDeviation
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

// accuraciesAt returns the best accuracies until an epoch of the runs of a batch size that lasted as
// long, or of the longest ones, and the number of these runs.
func (b *batchRecords) accuraciesAt(epoch int) (values []float64, runs int) {
	longest := 0
	for _, r := range b.runs {
		longest = max(longest, r.Length)
	}
	values = make([]float64, 0, len(b.runs))
	for _, r := range b.runs {
		if r.Length < min(epoch, longest) {
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
