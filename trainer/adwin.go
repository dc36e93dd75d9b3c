package trainer

import (
	"math"
	"time"
)

const (
	adwinDelta   = 0.002 // Bifet, Gavalda 2007: share of wrong cuts
	adwinBuckets = 5     // of each size, before two of them become one of twice the size
	adwinPeriod  = 8     // values between two looks
	adwinRows    = 40    // sizes: 2^40 values are more than will come
)

// Adwin is an adaptive window over standardised residuals: it grows while their
// mean stays, and drops its older part once that differs (Bifet, Gavalda 2007).
// What is inside is how much of the past is still true. Its memory grows with
// the logarithm of the window. The zero value is empty.
type Adwin struct {
	rows  [][]bucket // by size, each oldest first; row k holds 2^k values per bucket
	total bucket
	added int
	cut   bool // something was dropped
}

// bucket sums up values in a row.
type bucket struct {
	n, mean, squares float64 // squares: of the distances from the mean
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

// without is the inverse of with: what is left when the oldest part goes.
func (b bucket) without(c bucket) bucket {
	n := b.n - c.n
	if n <= 0 {
		return bucket{}
	}
	mean := b.mean + (b.mean-c.mean)*c.n/n
	d := c.mean - mean
	return bucket{n, mean, max(0, b.squares-c.squares-d*d*n*c.n/b.n), b.begin}
}

// Add takes the next residual, in standard deviations, and its time, and reports
// whether the older part was dropped.
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

// compress joins the two oldest buckets of a size that has too many.
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

// differs reports whether some older part of the window has another mean than
// the rest: by more than the bound of section 2 of the paper, whose values lie
// between 0 and 1 and ours between -driftClip and driftClip.
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

// drop forgets the oldest bucket.
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

// Window returns how many residuals are still true, the time of the oldest of
// them, and whether older ones were dropped.
func (a *Adwin) Window() (count int, since time.Time, cut bool) {
	return int(a.total.n), a.total.begin, a.cut
}
