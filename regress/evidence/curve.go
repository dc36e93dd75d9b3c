package evidence

import (
	"fmt"
	"math"
	"slices"
	"sort"
)

// epochGrid are the numbers of epochs at which curves have points: 1, 2, 3, 4, 6, 8, 12, 16, ...
var epochGrid = func() []int {
	grid := []int{1, 2, 3}
	for n := 4; n <= maxGridEpochs; n *= 2 {
		grid = append(grid, n, n+n/2)
	}
	return grid
}()

const maxGridEpochs = 1 << 19

// gridUntil returns the points of a curve of some epochs.
func gridUntil(epochs int) []int {
	points := slices.Clone(epochGrid[:sort.SearchInts(epochGrid, epochs)])
	return append(points, epochs)
}

// Bounds of plausible epoch times, in seconds, and the smallest plausible share of the median of a
// run: a shorter epoch was resumed, or logged twice.
const (
	minSeconds, maxSeconds = 1e-6, 1e9
	minShareOfMedian       = 1e-3
)

// runCurve is the cumulative seconds of one run after each of its epochs.
type runCurve struct {
	sums []float64
	// isLater is true if the first epochs were not measured under the configuration.
	isLater  bool
	isRecent bool // one of the latest runs of its configuration
}

func (c *runCurve) epochs() int { return len(c.sums) }

// curve returns the cumulative seconds of a run; false if it was not timed. A run of which less than
// half is plausible is not used. reason says what is not believed; it is empty otherwise.
func (r *Run) curve() (c runCurve, reason string, ok bool) {
	seconds, reason := r.epochSeconds()
	if len(seconds) == 0 {
		return c, reason, false
	}
	c.sums = make([]float64, len(seconds))
	sum := 0.0
	for i, s := range seconds {
		sum += s
		c.sums[i] = sum
	}
	c.isLater = len(r.Epochs) > 0 && r.Epochs[0].first() > 1+maxLeading
	return c, reason, true
}

// first returns the number of the first epoch of the record.
func (e *EpochRecord) first() int { return e.Number - max(e.Count, 1) + 1 }

// timedEpochs are epochs of a run that took equally long, as far as is known.
type timedEpochs struct {
	number, count int // of the last of them
	seconds       float64
}

// maxLeading is the number of missing epochs at the begin of a run that count with the next ones: an
// epoch that contains the start-up is not timed.
const maxLeading = 2

// timed returns the plausible epochs of a run. Epochs that are missing between others count with the
// next ones; a run of many epochs keeps only some of them.
func (r *Run) timed() (all []timedEpochs, reason string) {
	for _, e := range r.Epochs {
		count := max(e.Count, 1)
		if before := e.first() - 1; len(all) == 0 && before <= maxLeading {
			count += max(before, 0)
		}
		if n := len(all); n > 0 {
			if e.first() <= all[n-1].number {
				continue // the epoch was repeated
			}
			count = e.Number - all[n-1].number
		}
		if s := e.Seconds / float64(max(e.Count, 1)); e.first() >= 1 && s >= minSeconds && s <= maxSeconds {
			all = append(all, timedEpochs{e.Number, count, s})
		} else if e.Seconds != 0 && reason == "" {
			reason = fmt.Sprintf("epoch %d took %.3g s, which is not plausible", e.Number, e.Seconds)
		}
	}
	return all, reason
}

// epochSeconds returns the seconds of each epoch of a run, from its first. A part of a run that began
// later counts as if its epochs were the first: see runCurve.isLater.
func (r *Run) epochSeconds() (seconds []float64, reason string) {
	timed, reason := r.timed()
	if len(timed) == 0 || 2*len(timed) < len(r.Epochs) {
		return nil, reason
	}
	each := make([]float64, len(timed))
	for i := range timed {
		each[i] = timed[i].seconds
	}
	usual := Median(each)
	for i, e := range timed {
		if e.seconds <= usual*minShareOfMedian {
			if reason == "" {
				reason = fmt.Sprintf("epoch %d took %.3g s, others of the run %.3g s", e.number, e.seconds, usual)
			}
			timed[i].seconds = usual
		}
		for range min(e.count, maxGridEpochs-len(seconds)) {
			seconds = append(seconds, timed[i].seconds)
		}
	}
	return seconds, reason
}

func isTimed(r Run) bool {
	seconds, _ := r.epochSeconds()
	return len(seconds) > 0
}

// curveSet are the curves of the runs of one configuration, at the points of a grid.
type curveSet struct {
	points  []int
	logs    [][]float64 // of cumulative seconds, by run and point
	lengths []int       // epochs of the runs
}

// newCurveSet brings curves to one grid. A run that is shorter than the longest continues at the
// increments of the median of the longer ones, times the ratio of its pace after the first epoch to
// theirs.
func newCurveSet(curves []runCurve) *curveSet {
	slices.SortStableFunc(curves, func(a, b runCurve) int { return b.epochs() - a.epochs() })
	s := &curveSet{points: gridUntil(curves[0].epochs())}
	for _, c := range curves {
		row := make([]float64, 0, len(s.points))
		for _, n := range s.points {
			if n <= c.epochs() {
				row = append(row, math.Log(c.sums[n-1]))
			}
		}
		if len(row) < len(s.points) {
			row = s.continued(row, &c)
		}
		s.logs = append(s.logs, row)
		s.lengths = append(s.lengths, c.epochs())
	}
	return s
}

// continued completes the logs of a short run.
func (s *curveSet) continued(row []float64, c *runCurve) []float64 {
	base := make([]float64, len(s.points))
	for k := range base {
		base[k] = math.Exp(Median(s.column(k)))
	}
	own, n := c.sums, c.epochs()
	at := interpolate(s.points, base, n)
	ratio := paceRatio(own[0], own[n-1], base[0], at)
	for k := len(row); k < len(s.points); k++ {
		row = append(row, math.Log(own[n-1]+ratio*(base[k]-at)))
	}
	return row
}

// paceRatio returns the ratio of the pace of a run after its first epoch to another one, both by the seconds of
// the first epoch and of all; of first epochs if there are no more.
func paceRatio(ownFirst, own, first, all float64) float64 {
	if own <= ownFirst || all <= first {
		return ownFirst / first
	}
	return (own - ownFirst) / (all - first)
}

// column returns the logs of all runs at a point.
func (s *curveSet) column(k int) []float64 {
	column := make([]float64, len(s.logs))
	for i, row := range s.logs {
		column[i] = row[k]
	}
	return column
}

// freedom returns the degrees of freedom of the squares at a point: of its runs, less one. A run that is much
// shorter counts in part, by how nearly it reaches the point.
func (s *curveSet) freedom(k int) float64 {
	runs := 0.0
	for _, n := range s.lengths {
		runs += min(1, 1.5*float64(n)/float64(s.points[k]))
	}
	return runs - 1
}

// countedSquares returns the part of a sum of squares at a point that counts, as the freedom counts runs.
func (s *curveSet) countedSquares(squares float64, k int) float64 {
	return squares * s.freedom(k) / max(1, float64(len(s.lengths)-1))
}

// spread returns the squares of the runs at a point.
func (s *curveSet) spread(k int) spread {
	return spread{s.countedSquares(clippedSquares(s.column(k)), k), s.freedom(k)}
}

// interpolate returns the seconds of n epochs, linear between points and from 0. n is at most the
// last point.
func interpolate(points []int, seconds []float64, n int) float64 {
	k := sort.SearchInts(points, n)
	if points[k] == n {
		return seconds[k]
	}
	low, from := 0, 0.0
	if k > 0 {
		low, from = points[k-1], seconds[k-1]
	}
	return from + (seconds[k]-from)*float64(n-low)/float64(points[k]-low)
}
