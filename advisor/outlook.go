package advisor

import (
	"math"
	"sort"

	"courier/regress/evidence"
)

// outlook is the distribution of the time that a job takes from now on: its
// median, times what was seen to come out otherwise. Two tables of log residuals
// hold that: the regressor's, of epochs that it had not seen, and the record's,
// of whole jobs. The record's count fully, the regressor's fill up what is
// missing to a window.
type outlook struct {
	seconds float64   // the median: that of the forecast
	table   []float64 // log residuals of the regressor, sorted
	narrow  float64   // by how much the job's own epochs narrow them; 1: not at all
	void    bool      // beyond the examples: nothing can be promised
	record  *Record
	shift   float64 // of the residuals, for its kind of job
	uncertainty
}

// share returns the share of residuals of at most x; 0 where there are none.
func (o *outlook) share(x float64) float64 {
	x -= o.shift
	if o.scale > 0 {
		return evidence.Distribution{Scale: o.scale, Degrees: o.degrees}.Probability(math.Exp(x))
	}
	own, n := o.record.rank(x)
	all := float64(own)
	fill := o.fill(n)
	if fill > 0 {
		all += fill * float64(rankIn(o.table, x)) / float64(len(o.table))
	}
	return all / (float64(n) + fill + 1)
}

// fill is how many residuals the regressor's table stands for beside n own ones.
func (o *outlook) fill(n int) float64 { return float64(min(len(o.table), recordWindow-n)) }

// rankIn is how many entries of a sorted table are at most x.
func rankIn(table []float64, x float64) int {
	return sort.Search(len(table), func(i int) bool { return table[i] > x })
}

// probability returns how likely the job ends within some seconds; ok is false
// where nothing can be promised.
func (o *outlook) probability(within, confidence float64) (p float64, ok bool) {
	if within > 0 {
		p = o.record.calibrated(o.share(math.Log(within/o.seconds)/o.narrow), confidence)
	}
	if within < o.seconds { // whatever the record says: it is less than the prediction
		p = min(p, 0.5)
	}
	return p, !o.void && (o.scale > 0 || len(o.table) > 0)
}

// bound returns the seconds that the job stays within with a confidence; ok is
// false where that cannot be promised. It is the probability read the other way:
// the smallest residual of either table that reaches the level.
func (o *outlook) bound(confidence float64) (float64, bool) {
	if o.void {
		return 0, false
	}
	level := 1 - o.record.failing(confidence)
	if o.scale > 0 {
		d := evidence.Distribution{Location: o.shift, Scale: o.scale, Degrees: o.degrees}
		return o.seconds * max(1, d.Quantile(level)), true
	}
	least := math.Inf(1)
	for _, table := range [...][]float64{o.record.table(), o.table} {
		i := o.first(table, level)
		if i < len(table) {
			least = min(least, table[i])
		}
	}
	if math.IsInf(least, 1) {
		return 0, false
	}
	return o.seconds * math.Exp((o.shift+least)*o.narrow), true
}

// first is the first entry of a table whose share reaches a level. Where the
// regressor's is the only table, an entry's share is its rank.
func (o *outlook) first(table []float64, level float64) int {
	if len(table) > 0 && len(o.record.table()) == 0 {
		fill := o.fill(0)
		return max(0, int(math.Ceil(level*(fill+1)/fill*float64(len(table))-1e-9))-1)
	}
	return sort.Search(len(table), func(i int) bool { return o.share(o.shift+table[i]) >= level })
}
