package evidence

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// AccuracyModel predicts the accuracy of a subject after a number of epochs. It
// depends on the batch size only.
type AccuracyModel struct {
	// Levels of accuracy, rising: the measured values, or quantiles of them.
	Levels []float64 `json:"levels"`
	// Quantiles reports that more values were measured than there are levels.
	Quantiles bool `json:"quantiles,omitempty"`
	// LastEpoch is as in Options.
	LastEpoch bool `json:"last_epoch,omitempty"`
	// Amplitude, Length (octaves) and Effect of the Gaussian process over batch sizes.
	Amplitude float64 `json:"amplitude"`
	Length    float64 `json:"length"`
	Effect    float64 `json:"effect"`
	// Batches that ran, by size.
	Batches []BatchAccuracy `json:"batches"`
}

// BatchAccuracy summarizes the accuracies of the runs of one batch size.
type BatchAccuracy struct {
	BatchSize int       `json:"batch_size"`
	Runs      int       `json:"runs"`
	Longest   int       `json:"longest"`  // last epoch with an accuracy
	Passages  []Passage `json:"passages"` // of each level
}

// Passage summarizes when the runs of one batch size first reached a level.
type Passage struct {
	// Tried counts the runs that reached the level or were long enough. Reached counts the former.
	Tried   int `json:"tried"`
	Reached int `json:"reached"`
	// Mean of ln(epoch - 0.5) of the first epoch at the level, and the Squares about it.
	Mean    float64 `json:"mean"`
	Squares float64 `json:"squares"`
}

const (
	maxLevels  = 40
	maxBatches = 64
	// tolerance of comparisons of accuracies, for numbers that were rounded in the log.
	tolerance = 1e-9
)

// epochCurve is the accuracies of one run.
type epochCurve struct {
	batch  int
	epochs []EpochRecord // with accuracies, in order
}

func (c *epochCurve) last() int { return c.epochs[len(c.epochs)-1].Number }

// passage returns the first epoch at which the curve reaches a level; with forGood, the epoch from
// which it stays there. It is 0 if there is none.
func (c *epochCurve) passage(level float64, forGood bool) int {
	first := 0
	for _, e := range c.epochs {
		switch reached := e.Accuracy >= level-tolerance; {
		case reached && first == 0:
			first = e.Number
		case !reached && forGood:
			first = 0
		}
	}
	return first
}

// curvesOf returns the accuracies of runs by batch size: at most maxBatches batch sizes, the ones
// with most runs.
func curvesOf(runs []Run) []epochCurve {
	var curves []epochCurve
	count := map[int]int{}
	for i := range runs {
		c := epochCurve{batch: runs[i].BatchSize}
		for _, e := range runs[i].Epochs {
			if e.HasAccuracy && e.Number > 0 && e.Accuracy >= 0 && e.Accuracy <= 1 {
				c.epochs = append(c.epochs, e)
			}
		}
		if len(c.epochs) > 0 {
			curves = append(curves, c)
			count[c.batch]++
		}
	}
	slices.SortStableFunc(curves, func(a, b epochCurve) int {
		return cmp.Or(cmp.Compare(count[b.batch], count[a.batch]), cmp.Compare(a.batch, b.batch))
	})
	kept := 0
	for i := range curves {
		if i > 0 && curves[i].batch == curves[i-1].batch {
			continue
		}
		if kept++; kept > maxBatches {
			curves = curves[:i]
			break
		}
	}
	slices.SortStableFunc(curves, func(a, b epochCurve) int {
		return cmp.Compare(a.batch, b.batch)
	})
	return curves
}

// count summarizes the curves, which are ordered by batch size.
func (m *AccuracyModel) count(curves []epochCurve) {
	for i := 0; i < len(curves); {
		n := i
		for n < len(curves) && curves[n].batch == curves[i].batch {
			n++
		}
		m.Batches = append(m.Batches, m.measure(curves[i:n]))
		i = n
	}
	m.countTried(curves)
}

// levelsOf returns the distinct accuracies, or quantiles of them if they are too many.
func levelsOf(curves []epochCurve) (levels []float64, quantiles bool) {
	var values []float64
	for i := range curves {
		for _, e := range curves[i].epochs {
			values = append(values, e.Accuracy)
		}
	}
	slices.Sort(values)
	values = slices.CompactFunc(values, func(a, b float64) bool {
		return math.Abs(b-a) <= tolerance
	})
	if len(values) <= maxLevels {
		return values, false
	}
	for k := range maxLevels {
		levels = append(levels, values[k*(len(values)-1)/(maxLevels-1)])
	}
	return levels, true
}

// measure summarizes the passages of the runs of one batch size.
func (m *AccuracyModel) measure(curves []epochCurve) BatchAccuracy {
	b := BatchAccuracy{BatchSize: curves[0].batch, Runs: len(curves)}
	for i := range curves {
		b.Longest = max(b.Longest, curves[i].last())
	}
	for _, level := range m.Levels {
		var p Passage
		for i := range curves {
			if at := curves[i].passage(level, m.LastEpoch); at > 0 {
				p.Reached++
				y := math.Log(float64(at) - 0.5)
				d := y - p.Mean
				p.Mean += d / float64(p.Reached)
				p.Squares += d * (y - p.Mean)
			}
		}
		b.Passages = append(b.Passages, p)
	}
	return b
}

// countTried counts the runs that could have reached each level: those that did, and those that
// lasted longer than its usual passage. A run that ended early has not failed.
func (m *AccuracyModel) countTried(curves []epochCurve) {
	of := map[int]int{}
	for i := range m.Batches {
		of[m.Batches[i].BatchSize] = i
	}
	for k, level := range m.Levels {
		for i := range curves {
			b := of[curves[i].batch]
			longEnough := math.Log(float64(curves[i].last())) > m.usualPassage(b, k)
			if longEnough || curves[i].passage(level, m.LastEpoch) > 0 {
				m.Batches[b].Passages[k].Tried++
			}
		}
	}
}

// usualPassage returns the mean passage of a level at a batch size. Without one it is the later
// passage of the nearest smaller and larger batch sizes that reached the level.
func (m *AccuracyModel) usualPassage(b, k int) float64 {
	if p := m.Batches[b].Passages[k]; p.Reached > 0 {
		return p.Mean
	}
	usual := math.Inf(-1)
	for i := b - 1; i >= 0; i-- {
		if p := m.Batches[i].Passages[k]; p.Reached > 0 {
			usual = p.Mean
			break
		}
	}
	for i := b + 1; i < len(m.Batches); i++ {
		if p := m.Batches[i].Passages[k]; p.Reached > 0 {
			usual = max(usual, p.Mean)
			break
		}
	}
	return usual
}

func (m *AccuracyModel) check() error {
	levels, batches := len(m.Levels), len(m.Batches)
	if levels == 0 || levels > maxLevels || batches == 0 || batches > maxBatches {
		return fmt.Errorf("%d levels and %d batch sizes, want 1 to %d and 1 to %d",
			levels, batches, maxLevels, maxBatches)
	}
	for k, a := range m.Levels {
		if !(a >= 0 && a <= 1) || k > 0 && a <= m.Levels[k-1] {
			return fmt.Errorf("level %d is %g, want 0 to 1 and above the previous level", k, a)
		}
	}
	for _, x := range [...]float64{m.Amplitude, m.Length, m.Effect} {
		if !(x > 0) || x > 1e3 {
			return fmt.Errorf("hyperparameter is %g, want above 0 and at most 1000", x)
		}
	}
	for i := range m.Batches {
		b := &m.Batches[i]
		if b.BatchSize < 1 || i > 0 && b.BatchSize <= m.Batches[i-1].BatchSize ||
			len(b.Passages) != len(m.Levels) || b.Runs < 1 {
			return fmt.Errorf("invalid entry %d: batch size %d, %d runs, %d passages",
				i, b.BatchSize, b.Runs, len(b.Passages))
		}
		for k, p := range b.Passages {
			if p.Reached < 0 || p.Tried < p.Reached || p.Tried > b.Runs ||
				!(math.Abs(p.Mean) < 100) || !(p.Squares >= 0) || p.Squares > 1e9 {
				return fmt.Errorf("batch size %d, level %d: invalid passage %+v", b.BatchSize, k, p)
			}
		}
	}
	return nil
}
