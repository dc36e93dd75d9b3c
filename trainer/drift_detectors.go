package trainer

import (
	"math"
	"slices"
	"strings"
	"time"
)

const (
	// driftDelta is the shift that Page-Hinkley tolerates, in standard deviations of the
	// calibration (docs/decisions/0008).
	driftDelta = 0.4
	// driftClip bounds the residual of one job, in standard deviations, so that no single job
	// raises an alarm.
	driftClip = 8
)

// PageHinkley detects a lasting shift of standardized residuals from 0, in both directions (Page
// 1954). The zero value has no residuals.
type PageHinkley struct {
	up, down excursion
}

// excursion is the sum of residuals beyond the tolerated shift since the sum was last 0. If there
// is a shift, it began there.
type excursion struct {
	sum   float64
	first int // number of the first residual of the excursion
}

func (e *excursion) add(z float64, number int) {
	if e.sum == 0 {
		e.first = number
	}
	e.sum = max(0, e.sum+z-driftDelta)
}

// Add adds the next residual, in standard deviations. number is the caller's index, which must
// increase.
func (p *PageHinkley) Add(z float64, number int) {
	z = min(max(z, -driftClip), driftClip)
	p.up.add(z, number)
	p.down.add(-z, number)
}

// Alarm returns the number of the first residual of a shift, the sum of the shift in standard
// deviations, and whether it exceeds lambda.
func (p *PageHinkley) Alarm(lambda float64) (first int, sum float64, alarm bool) {
	e := p.up
	if p.down.sum > e.sum {
		e = p.down
	}
	return e.first, e.sum, e.sum > lambda
}

const (
	adwinDelta   = 0.002 // rate of wrong cuts (Bifet, Gavaldà 2007)
	adwinBuckets = 5     // of each size, before two merge into one of twice the size
	adwinPeriod  = 8     // values between two tests
	adwinRows    = 40    // sizes: at most 2^40 values
)

// Adwin is an adaptive window over standardized residuals (Bifet, Gavaldà 2007). It grows while
// their mean is stable, and drops its older part when the means of both parts differ, so that the
// window holds current residuals only. Its memory grows with the logarithm of the window. The zero
// value is empty.
type Adwin struct {
	rows  [][]bucket // by size, each oldest first; row k holds 2^k values per bucket
	total bucket
	added int
	cut   bool // older values were dropped
}

// bucket summarizes consecutive values.
type bucket struct {
	n, mean, squares float64 // squares: sum of squared distances from the mean
	begin            time.Time
}

func (b bucket) with(c bucket) bucket {
	n, d := b.n+c.n, c.mean-b.mean
	begin := b.begin
	if b.n == 0 {
		begin = c.begin
	}
	return bucket{n, b.mean + d*c.n/n, b.squares + c.squares + d*d*b.n*c.n/n, begin}
}

// without is the inverse of with: it removes the oldest part.
func (b bucket) without(c bucket) bucket {
	n := b.n - c.n
	if n <= 0 {
		return bucket{}
	}
	mean := b.mean + (b.mean-c.mean)*c.n/n
	d := c.mean - mean
	return bucket{n, mean, max(0, b.squares-c.squares-d*d*n*c.n/b.n), b.begin}
}

// Add adds the next residual, in standard deviations, and its time. It reports whether the older
// part was dropped.
func (a *Adwin) Add(z float64, at time.Time) bool {
	b := bucket{n: 1, mean: min(max(z, -driftClip), driftClip), begin: at}
	if len(a.rows) == 0 {
		a.rows = make([][]bucket, 1, adwinRows)
	}
	a.rows[0] = append(a.rows[0], b)
	a.total = a.total.with(b)
	a.added++
	a.compress()
	dropped := false
	if a.added%adwinPeriod == 0 {
		for a.differs() {
			a.drop()
			dropped = true
		}
	}
	a.cut = a.cut || dropped
	return dropped
}

// compress merges the two oldest buckets of each size that has too many.
func (a *Adwin) compress() {
	for k := 0; k < len(a.rows) && len(a.rows[k]) > adwinBuckets; k++ {
		if k+1 == len(a.rows) {
			if k+1 == adwinRows {
				return
			}
			a.rows = append(a.rows, nil)
		}
		row := a.rows[k]
		a.rows[k+1] = append(a.rows[k+1], row[0].with(row[1]))
		a.rows[k] = append(row[:0], row[2:]...)
	}
}

// differs reports whether an older part of the window has another mean than the rest, by more than
// the bound in section 2 of the paper. The values of the paper lie between 0 and 1, these between
// -driftClip and driftClip.
func (a *Adwin) differs() bool {
	if a.total.n < 2*adwinPeriod {
		return false
	}
	level := math.Log(2 * math.Log(a.total.n) / adwinDelta)
	variance := a.total.squares / a.total.n
	var old bucket
	for k := len(a.rows) - 1; k >= 0; k-- {
		for _, b := range a.rows[k] {
			old = old.with(b)
			rest := a.total.n - old.n
			if rest < adwinPeriod || old.n < adwinPeriod {
				continue
			}
			m := 1/old.n + 1/rest
			mean := a.total.mean + (a.total.mean-old.mean)*old.n/rest
			if math.Abs(old.mean-mean) > math.Sqrt(2*m*variance*level)+2./3*m*level*2*driftClip {
				return true
			}
		}
	}
	return false
}

// drop removes the oldest bucket.
func (a *Adwin) drop() {
	for k := len(a.rows) - 1; k >= 0; k-- {
		if len(a.rows[k]) == 0 {
			continue
		}
		a.total = a.total.without(a.rows[k][0])
		a.rows[k] = append(a.rows[k][:0], a.rows[k][1:]...)
		break
	}
	for len(a.rows) > 1 && len(a.rows[len(a.rows)-1]) == 0 {
		a.rows = a.rows[:len(a.rows)-1]
	}
	a.total.begin = a.oldest()
}

func (a *Adwin) oldest() time.Time {
	for k := len(a.rows) - 1; k >= 0; k-- {
		if len(a.rows[k]) > 0 {
			return a.rows[k][0].begin
		}
	}
	return time.Time{}
}

// Window returns the number of residuals in the window, the time of the oldest, and whether older
// ones were dropped.
func (a *Adwin) Window() (count int, since time.Time, cut bool) {
	return int(a.total.n), a.total.begin, a.cut
}

const (
	noiseJobs    = 31 // differences in memory
	minNoiseJobs = 20 // differences below which the factor is 1
	noiseLimit   = 2  // times the calibrated deviation that a difference may reach by chance

	// normalMedian is the median of |x| of a standard normal x.
	normalMedian = 0.6744897501960817
)

// noiseMeter detects that consecutive jobs of one model on the same nodes differ by more than the
// calibration expects, for example because the calibration ran on an idle machine. Otherwise that
// noise would raise repeated alarms, and each alarm causes a fit. A lasting shift affects one
// of the successive differences, so it hardly changes their median (von Neumann 1941, with the
// median instead of the mean).
type noiseMeter struct {
	last  *lru[noiseKey, float64]
	steps []float64 // ring of |differences| / sqrt(2), in calibrated standard deviations
	next  int
	above int // differences above noiseLimit
}

type noiseKey struct{ model, nodes string }

func (r *noiseMeter) add(o *JobResidual, z float64) {
	k := noiseKey{model: o.Model}
	if len(o.Nodes) == 1 {
		k.nodes = o.Nodes[0]
	} else {
		k.nodes = strings.Join(o.Nodes, ",")
	}
	before, known := r.last.get(k)
	r.last.put(k, z)
	if !known {
		return
	}
	step := math.Abs(z-before) / math.Sqrt2
	if len(r.steps) < noiseJobs {
		r.steps = append(r.steps, step)
	} else {
		if r.steps[r.next] > noiseLimit*normalMedian {
			r.above--
		}
		r.steps[r.next] = step
		r.next = (r.next + 1) % noiseJobs
	}
	if step > noiseLimit*normalMedian {
		r.above++
	}
}

// factor returns the ratio of the observed deviation to the calibrated one; 1 unless it is clearly
// larger.
func (r *noiseMeter) factor() float64 {
	if len(r.steps) < minNoiseJobs || 2*r.above <= len(r.steps) {
		return 1
	}
	steps := slices.Clone(r.steps)
	slices.Sort(steps)
	return steps[len(steps)/2] / normalMedian
}
