package evidence

import (
	"cmp"
	"math"
	"slices"
)

// AccuracyModel has the accuracies of the runs of a subject.
type AccuracyModel struct {
	// Prior is the variance of the log of the first epoch at an accuracy, from other subjects.
	Prior float64 `json:"prior"`
	// Groups are the runs of a batch size on a node type, in order.
	Groups []RecordGroup `json:"groups"`
}

// RecordGroup are the last runs of one batch size on one node type.
type RecordGroup struct {
	BatchSize int       `json:"batch_size"`
	NodeType  string    `json:"node_type,omitempty"`
	Runs      []Records `json:"runs"`
}

// Records are the epochs at which the accuracy of a run was higher than before.
type Records struct {
	Length   int       `json:"length"` // last epoch with an accuracy
	Epochs   []int     `json:"epochs"`
	Accuracy []float64 `json:"accuracy"` // rising
}

const (
	maxRecordRuns = 20 // of a group, the latest ones
	maxRecords    = 48 // of a run
	maxGroups     = 96 // of a subject, the ones with most runs
	// tolerance of comparisons of accuracies, for numbers that were rounded in the log.
	tolerance = 1e-9
)

// recordsOf returns the records of a run; false if it has no accuracy.
func recordsOf(r *Run) (rec Records, ok bool) {
	best := -1.0
	for _, e := range r.Epochs {
		if !e.HasAccuracy || e.Number < 1 || !(e.Accuracy >= 0 && e.Accuracy <= 1) {
			continue
		}
		rec.Length = e.Number
		if e.Accuracy <= best+tolerance {
			continue
		}
		best = e.Accuracy
		if n := len(rec.Epochs); n > 0 && rec.Epochs[n-1] == e.Number { // it was reported twice
			rec.Accuracy[n-1] = best
		} else {
			rec.Epochs, rec.Accuracy = append(rec.Epochs, e.Number), append(rec.Accuracy, best)
		}
	}
	rec.Epochs, rec.Accuracy = evenly(rec.Epochs, maxRecords), evenly(rec.Accuracy, maxRecords)
	return rec, rec.Length > 0
}

// evenly keeps the first and the last of values, and others evenly between them.
func evenly[T any](values []T, most int) []T {
	n := len(values)
	if n <= most {
		return values
	}
	for k := range most {
		values[k] = values[k*(n-1)/(most-1)]
	}
	return values[:most]
}

// first returns the first epoch at a target accuracy; 0 if it was not reached.
func (r *Records) first(target float64) int {
	k, _ := slices.BinarySearch(r.Accuracy, target-tolerance)
	if k == len(r.Epochs) {
		return 0
	}
	return r.Epochs[k]
}

// at returns the best accuracy up to an epoch; false before the first record.
func (r *Records) at(epoch int) (accuracy float64, ok bool) {
	k, found := slices.BinarySearch(r.Epochs, epoch)
	if !found {
		k--
	}
	if k < 0 {
		return 0, false
	}
	return r.Accuracy[k], true
}

// stalled reports whether the last quarter of the run brought no higher accuracy.
func (r *Records) stalled() bool { return 4*r.Epochs[len(r.Epochs)-1] <= 3*r.Length }

// collectRecords returns the accuracies of the runs of a subject; nil if there is none.
func collectRecords(runs []Run) *AccuracyModel {
	m := &AccuracyModel{}
	for i := range runs {
		rec, ok := recordsOf(&runs[i])
		if !ok {
			continue
		}
		key := RecordGroup{BatchSize: runs[i].BatchSize, NodeType: runs[i].NodeType}
		at, found := slices.BinarySearchFunc(m.Groups, key, compareGroups)
		if !found {
			m.Groups = slices.Insert(m.Groups, at, key)
		}
		g := &m.Groups[at]
		g.Runs = append(g.Runs, rec)
	}
	if len(m.Groups) == 0 {
		return nil
	}
	for i := range m.Groups {
		g := &m.Groups[i]
		g.Runs = g.Runs[max(0, len(g.Runs)-maxRecordRuns):]
	}
	if len(m.Groups) > maxGroups {
		slices.SortStableFunc(m.Groups, func(a, b RecordGroup) int { return len(b.Runs) - len(a.Runs) })
		m.Groups = m.Groups[:maxGroups]
		slices.SortFunc(m.Groups, compareGroups)
	}
	return m
}

func compareGroups(a, b RecordGroup) int {
	return cmp.Or(cmp.Compare(a.BatchSize, b.BatchSize), cmp.Compare(a.NodeType, b.NodeType))
}

// The variances of the log of the first epoch at a target: deviations of logarithms, and weights in
// degrees of freedom or runs.
const (
	passageTails         = 6.0
	minPassageDeviation  = 0.01
	nodePassageDeviation = 0.05 // between node types
	linePassageDeviation = 0.10 // of a batch size from the line between its neighbours
	reachWeight          = 0.5  // of the prior probability of ever reaching a target, in runs
	reachMean            = 0.9
	lateDeviations       = 2.0 // a stalled run that lasted so much longer has failed
	promisedRuns         = 2   // that must have reached a target
)

// passageVariance is the variance of passages.
var passageVariance = sharedVariance{prior: 0.12 * 0.12, weight: 3}

// passageSpread returns the squares of the log passages of a group at the highest accuracy that all
// of its runs reached, without the variance of rounding to whole epochs.
func (g *RecordGroup) passageSpread() spread {
	target := 1.0
	for i := range g.Runs {
		target = min(target, g.Runs[i].Accuracy[len(g.Runs[i].Accuracy)-1])
	}
	y, rounding := make([]float64, len(g.Runs)), 0.0
	for i := range g.Runs {
		y[i] = logPassage(g.Runs[i].first(target))
		rounding += roundingVariance(y[i]) / float64(len(y))
	}
	free := float64(len(y) - 1)
	return spread{max(clippedSquares(y)-free*rounding, 1e-8), free}
}

// logPassage is the log of the middle of an epoch.
func logPassage(epoch int) float64 { return math.Log(float64(epoch) - 0.5) }

// roundingVariance is the variance of a log passage because epochs are whole numbers.
func roundingVariance(y float64) float64 { return math.Exp(-2*y) / 12 }

// lendPassages returns what the passages of a subject lend to others; nothing unless a group has two runs.
func (m *AccuracyModel) lendPassages() spread {
	var groups []spread
	if m != nil {
		for i := range m.Groups {
			if len(m.Groups[i].Runs) > 1 {
				groups = append(groups, m.Groups[i].passageSpread())
			}
		}
	}
	if len(groups) == 0 {
		return spread{}
	}
	return passageVariance.lend(groups)
}
