package evidence

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
)

// The priors of the variances of time (docs/decisions/0016), as deviations of logarithms and weights
// in degrees of freedom.
const (
	ownWeight       = 2.0 // of a configuration's own squares: runs that vary more than others do
	minRunDeviation = 0.002

	priorPaceDeviation = 0.05 // of the pace from one octave of epochs to the next
)

// maxCurves is the number of runs of a configuration that count, the latest ones.
const maxCurves = 50

// MaxConfigurations is the maximum number of configurations of a subject. The most recent ones are
// kept; the time of a fit grows with the cube of their number.
const MaxConfigurations = 200

// measuredTimes are the curves of one configuration.
type measuredTimes struct {
	Configuration
	*curveSet
	curves        []runCurve // at most maxCurves
	lastAt        time.Time
	counted       int      // runs
	squaresAtEnds []spread // by point
}

// measure returns the curves of the timed runs of one subject, by configuration. Runs are sorted.
func measure(runs []Run) (all []*measuredTimes, aside []SetAside) {
	for i := 0; i < len(runs); {
		first := i
		for i < len(runs) && runs[i].Configuration == runs[first].Configuration {
			i++
		}
		m, more := measureConfiguration(runs[first:i])
		if m != nil {
			all = append(all, m)
		}
		aside = append(aside, more...)
	}
	return latest(all), aside
}

func measureConfiguration(runs []Run) (m *measuredTimes, aside []SetAside) {
	var whole, parts []runCurve
	var lastAt time.Time
	for i := range runs {
		c, reason, ok := runs[i].curve()
		if reason != "" {
			aside = append(aside, SetAside{runs[i].comparedName(), reason})
		}
		if !ok {
			continue
		}
		if lastAt = runs[i].StartedAt; c.isLater {
			parts = append(parts, c)
		} else {
			whole = append(whole, c)
		}
	}
	counted := len(whole) + len(parts)
	if counted == 0 {
		return nil, aside
	}
	if len(whole) == 0 {
		whole = parts
	}
	m = newMeasuredTimes(runs[0].Configuration, whole)
	m.counted, m.lastAt = counted, lastAt
	return m, aside
}

// newMeasuredTimes returns the times of a configuration with the given curves, oldest first.
func newMeasuredTimes(c Configuration, curves []runCurve) *measuredTimes {
	m := &measuredTimes{Configuration: c, counted: len(curves)}
	for i := range curves {
		curves[i].isRecent = len(curves)-i <= recentRuns
	}
	m.curves = curves[max(0, len(curves)-maxCurves):]
	m.curveSet = newCurveSet(m.curves)
	m.squaresAtEnds = make([]spread, len(m.points))
	for k := range m.points {
		m.squaresAtEnds[k] = m.spread(k)
	}
	return m
}

// latest keeps the configurations with the latest runs, at most MaxConfigurations.
func latest(all []*measuredTimes) []*measuredTimes {
	if len(all) <= MaxConfigurations {
		return all
	}
	slices.SortStableFunc(all, func(a, b *measuredTimes) int { return b.lastAt.Compare(a.lastAt) })
	all = slices.Clone(all[:MaxConfigurations])
	slices.SortFunc(all, func(a, b *measuredTimes) int { return a.compare(b.Configuration) })
	return all
}

// squaresAt returns the squares of a configuration at a number of epochs, or at its end.
func (m *measuredTimes) squaresAt(n int) spread {
	k, _ := slices.BinarySearch(m.points, n)
	return m.squaresAtEnds[min(k, len(m.points)-1)]
}

// The slowest of the recentRuns is kept within so many deviations, about those of a bound at 0.95, if the others
// do not explain it: the last run may be the first of many. It counts in full from a fifth more deviations on, so
// that the slowest of runs that vary as usual does not count.
const (
	recentRuns  = 5
	withinBound = 2.0
)

// slowest returns the log seconds of the slowest of the recent runs at a point.
func (m *measuredTimes) slowest(k int) float64 {
	slowest := math.Inf(-1)
	for i := range m.curves {
		if m.curves[i].isRecent {
			slowest = max(slowest, m.logs[i][k])
		}
	}
	return slowest
}

// fitCurve returns the curve of configuration i of a model, with the prior of the variance of a run.
func fitCurve(all []*measuredTimes, i int, variance sharedVariance) ConfigurationTimes {
	m := all[i]
	t := ConfigurationTimes{Configuration: m.Configuration, Runs: m.counted, LastAt: m.lastAt}
	groups := make([]spread, len(all))
	var before posterior
	for k, n := range m.points {
		for o := range all {
			groups[o] = all[o].squaresAt(n)
		}
		pooled, weight := variance.ofOthers(groups, i, variance.prior)
		r := robustMeanOf(clipAround(m.column(k), maxDeviation), pooled, weight, robustTails, nil)
		d := m.freedom(k)
		v := max((weight*pooled+ownWeight*m.countedSquares(r.squares, k))/(weight+d), minRunDeviation*minRunDeviation)
		slowest := max(0, min(maxDeviation, m.slowest(k)-r.location))
		deviation := max(0, min(slowest/withinBound, 3*(slowest-withinBound*math.Sqrt(v))))
		v = max(v, deviation*deviation)
		p := posterior{r.location, v / min(r.number, 1+d), v, weight + d}
		if k > 0 && n <= maxSingleEpochs {
			t.addBetween(before, p, m.points[k-1], usualEpochs(m.curves, m.points[k-1], n))
		}
		t.addPoint(n, p)
		before = p
	}
	return t
}

// maxSingleEpochs is the number of epochs up to which a curve has a point for each one, as far as there are
// two runs.
const maxSingleEpochs = 64

// usualEpochs returns the usual seconds of the epochs between two points of the grid, or nothing if less
// than two runs have them. Runs may repeat an evaluation in every fourth epoch, or a long last one. Of two
// runs the shorter epoch counts, so that a stall in one of them is not expected again.
func usualEpochs(curves []runCurve, from, to int) (usual []float64) {
	for n := from + 1; n <= to; n++ {
		var all []float64
		for i := range curves {
			if sums := curves[i].sums; len(sums) >= to {
				all = append(all, sums[n-1]-sums[n-2])
			}
		}
		if len(all) < 2 {
			return nil
		}
		slices.Sort(all)
		usual = append(usual, all[(len(all)-1)/2])
	}
	return usual
}

// addBetween adds a point for each epoch after a point of the grid and before the next one, by the usual
// seconds of these epochs.
func (t *ConfigurationTimes) addBetween(a, b posterior, from int, usual []float64) {
	low, high := math.Exp(a.location), math.Exp(b.location)
	done, all := 0., floats.Sum(usual)
	for i := range len(usual) - 1 {
		n := from + i + 1
		p := a.towards(&b, octaves(from, n)/octaves(from, from+len(usual)))
		done += usual[i] / all
		p.location = math.Log(low + (high-low)*done)
		t.addPoint(n, p)
	}
}

// addPoint adds the log seconds of the first n epochs.
func (t *ConfigurationTimes) addPoint(n int, p posterior) {
	t.Points = append(t.Points, n)
	t.Location = append(t.Location, p.location)
	t.RunVariance = append(t.RunVariance, p.run)
	t.Degrees = append(t.Degrees, p.degrees)
	t.LocationVariance = append(t.LocationVariance, p.shared)
}

// point returns the log seconds until a point.
func (c *ConfigurationTimes) point(k int) posterior {
	return posterior{c.Location[k], c.LocationVariance[k], c.RunVariance[k], c.Degrees[k]}
}

// paceVarianceOf pools how much the pace changes from one octave of epochs to the next.
func paceVarianceOf(all []*measuredTimes) float64 {
	const weight, priorWeight, most, maxRuns = 2, 2, 1, 200
	var groups []spread
	for _, m := range all {
		for i, n := range m.lengths {
			if n < minTrendEpochs || len(groups) == maxRuns {
				continue
			}
			seconds := exponentials(m.logs[i])
			at := func(n int) float64 { return interpolate(m.points, seconds, n) }
			change := math.Log((at(n)-at(n/2))/(at(n/2)-at(n/4))) - math.Log(float64(n-n/2)/float64(n/2-n/4))
			groups = append(groups, spread{change * change, 1})
		}
	}
	return pool(groups, weight, priorPaceDeviation*priorPaceDeviation, priorWeight, most)
}

// minTrendEpochs is the length from which a curve shows a trend.
const minTrendEpochs = 8

func exponentials(logs []float64) []float64 {
	all := make([]float64, len(logs))
	for i, x := range logs {
		all[i] = math.Exp(x)
	}
	return all
}

// compiledCurve is the curve of a configuration in seconds.
type compiledCurve struct {
	*ConfigurationTimes
	seconds []float64 // at Points
	// rate is the pace of the last half in seconds per epoch, and trend the log ratio of it to the
	// pace of the quarter before.
	rate, trend float64
	usual       *compiledCurve // of the model, if it is longer, at a ratio of its pace
	ratio       float64
}

func newCompiledCurve(t *ConfigurationTimes, paceVariance float64) *compiledCurve {
	c := &compiledCurve{ConfigurationTimes: t, seconds: exponentials(t.Location)}
	last := len(c.seconds) - 1
	end := t.Points[last]
	if end == 1 {
		c.rate = c.seconds[0]
		return c
	}
	half := max(1, end/2)
	at := func(n int) float64 { return interpolate(t.Points, c.seconds, n) }
	c.rate = (c.seconds[last] - at(half)) / float64(end-half)
	if end >= minTrendEpochs {
		quarter := end / 4
		before := (at(half) - at(quarter)) / float64(half-quarter)
		noise := t.RunVariance[last]/(2*float64(max(t.Runs, 1))) + 1e-5
		share := max(paceVariance, 1e-6)
		const lowest, highest = -0.5, 1
		c.trend = max(lowest, min(highest, math.Log(c.rate/before)*share/(share+noise)))
	}
	return c
}

// longest returns the epochs of the longest run.
func (c *compiledCurve) longest() int { return c.Points[len(c.Points)-1] }

// total returns the median seconds of n epochs. Beyond the longest run it continues as longer runs of the model
// do. Beyond them the pace of the last half continues with its trend, which is damped by half per octave.
func (c *compiledCurve) total(n int) float64 {
	longest := c.longest()
	switch {
	case n <= 0:
		return 0
	case n <= longest:
		return interpolate(c.Points, c.seconds, n)
	case c.usual != nil:
		return c.seconds[len(c.seconds)-1] + c.ratio*(c.usual.total(n)-c.usual.total(longest))
	}
	const first = 1.5
	octaves := math.Log2(float64(n) / float64(longest))
	more := float64(n-longest) * c.rate * math.Exp(c.trend*first*(1-math.Exp2(-octaves)))
	return c.seconds[len(c.seconds)-1] + more
}

// follow continues the curve as a longer one does.
func (c *compiledCurve) follow(usual *compiledCurve) {
	last := len(c.seconds) - 1
	c.usual = usual
	c.ratio = paceRatio(c.seconds[0], c.seconds[last], usual.seconds[0], usual.total(c.longest()))
}

// pace returns the log seconds per epoch after the first, of as many epochs as the longest runs of the model.
func (c *compiledCurve) pace() float64 {
	end := c.longest()
	if c.usual != nil {
		end = c.usual.longest()
	}
	if end == 1 {
		return c.Location[0]
	}
	return math.Log((c.total(end) - c.seconds[0]) / float64(end-1))
}

// at returns the log seconds of n epochs. Their uncertainty is interpolated in the log of the epochs, and
// grows beyond the longest run.
func (c *compiledCurve) at(n int, paceVariance float64) posterior {
	last := len(c.Points) - 1
	longest, total := c.Points[last], c.total(n)
	k, found := slices.BinarySearch(c.Points, min(n, longest))
	s := c.point(k)
	if !found && k > 0 {
		before := c.point(k - 1)
		s = before.towards(&s, octaves(c.Points[k-1], n)/octaves(c.Points[k-1], c.Points[k]))
	}
	s.location = math.Log(total)
	if n <= longest {
		return s
	}
	share := (total - c.seconds[last]) / total
	s.addUnmeasured(share, longest, n, paceVariance)
	return s
}

// addUnmeasured adds the uncertainty of n epochs if a share of their time is beyond the longest run.
func (s *posterior) addUnmeasured(share float64, longest, n int, paceVariance float64) {
	x := octaves(longest, n)
	more := share * share * paceVariance * (x + x*x) / 2
	if longest == 1 { // how the first epoch differs from the others is unknown
		const first = 0.5
		more += share * share * first * first
	}
	if s.run += more; more >= (s.run+s.shared)/2 {
		s.degrees = min(s.degrees, 4)
	}
}

// octaves returns how often a number of epochs doubles.
func octaves(from, to int) float64 { return math.Log2(float64(to) / float64(from)) }
