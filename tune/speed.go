package tune

import (
	"math"
	"slices"
)

// speedModel estimates the time of an epoch by trial and number of CPUs from measured epochs: the
// logarithm is that of the trial plus that of the number of CPUs. The difference between two numbers
// of CPUs comes from the first trial, which runs with all of them, because the parameters of a trial,
// such as the batch size, may matter more.
type speedModel struct {
	epochs         []epochTimes
	segments       []segmentTime
	probes         map[int]int // ended probes by number of CPUs
	startsInEpochs bool        // some times of epochs include the start of the command
}

type speedKey struct{ trial, cpus int }

// epochTimes are moments of the logarithm of epoch times in seconds. Times that include the start of
// the command are left out.
type epochTimes struct {
	speedKey
	count, sum, squares float64
}

// segmentTime is the time of a finished segment.
type segmentTime struct {
	speedKey
	seconds float64
	epochs  int
}

// add adds the epochs of an ended segment.
func (m *speedModel) add(a *activeSegment, e *Ending) {
	key := speedKey{a.Trial, a.CPUs}
	if a.IsProbe && e.Outcome != OutcomeStopped {
		if m.probes == nil {
			m.probes = map[int]int{}
		}
		m.probes[a.CPUs]++
	}
	if e.Outcome == OutcomeDone && len(a.epochs) > 0 {
		m.segments = append(m.segments, segmentTime{key, e.Seconds, len(a.epochs)})
	}
	for i, epoch := range a.epochs {
		if i == 0 && e.HasStartInEpoch {
			m.startsInEpochs = true
			continue
		}
		if !(epoch.Seconds > 0) {
			continue
		}
		k := slices.IndexFunc(m.epochs, func(p epochTimes) bool { return p.speedKey == key })
		if k < 0 {
			k = len(m.epochs)
			m.epochs = append(m.epochs, epochTimes{speedKey: key})
		}
		p, y := &m.epochs[k], math.Log(epoch.Seconds)
		p.count, p.sum, p.squares = p.count+1, p.sum+y, p.squares+y*y
	}
}

// speeds are fitted times of epochs.
type speeds struct {
	trials    map[int]float64 // logarithm of the time relative to the first trial
	cpus      map[int]float64 // logarithm of the seconds of the first trial; missing: not measured
	startMean float64         // seconds of a segment beside its epochs
	startMost float64
	sigma     float64 // standard deviation of the logarithm
}

// The spread of epoch times before there are many: 10 %, worth four epochs.
const (
	priorSigma  = 0.1
	priorEpochs = 4
)

// boundDeviations is the quantile of 0.95 of a normal distribution.
const boundDeviations = 1.645

// fit returns the speeds; they have no trials if nothing was measured.
func (m *speedModel) fit() *speeds {
	v := &speeds{trials: map[int]float64{}, cpus: map[int]float64{}}
	if len(m.segments) == 0 {
		return v
	}
	for _, p := range m.epochs {
		if p.trial == m.segments[0].trial {
			v.cpus[p.cpus] = p.sum / p.count
		}
	}
	counts := map[int]float64{}
	squares, degrees := priorEpochs*priorSigma*priorSigma, float64(priorEpochs)
	for _, p := range m.epochs {
		if effect, isKnown := v.cpus[p.cpus]; isKnown {
			v.trials[p.trial] += p.sum - p.count*effect
			counts[p.trial] += p.count
		}
		squares += max(0, p.squares-p.sum*p.sum/p.count)
		degrees += p.count - 1
	}
	for trial, count := range counts {
		v.trials[trial] /= count
	}
	v.sigma = math.Sqrt(squares / degrees)

	sum, count := 0.0, 0.0
	for _, g := range m.segments {
		if epoch, ok := v.mean([]int{g.trial}, g.cpus); ok {
			start := max(0, g.seconds-float64(g.epochs)*epoch)
			sum, count = sum+start, count+1
			v.startMean, v.startMost = sum/count, max(v.startMost, start)
		}
	}
	return v
}

// mean returns the mean seconds of an epoch over the measured ones of some trials; false if there is
// none, or the number of CPUs was not measured.
func (v *speeds) mean(trials []int, cpus int) (seconds float64, ok bool) {
	effect, hasCPUs := v.cpus[cpus]
	sum, count := 0.0, 0
	for _, t := range trials {
		if a, isKnown := v.trials[t]; isKnown {
			sum, count = sum+math.Exp(a+effect), count+1
		}
	}
	return sum / float64(max(1, count)), hasCPUs && count > 0
}

// margin is the ratio of the upper bound of an epoch's time, at a confidence of 0.95, to its mean.
func (v *speeds) margin() float64 { return math.Exp(boundDeviations * v.sigma) }

// bound returns an upper bound of the seconds of a segment. A trial that was not measured may be as
// slow as the slowest one. It is false before anything was measured with this number of CPUs.
func (v *speeds) bound(trial, cpus, epochs int) (seconds float64, ok bool) {
	effect, hasCPUs := v.cpus[cpus]
	a, isKnown := v.trials[trial]
	if !isKnown {
		a = math.Inf(-1)
		for _, b := range v.trials {
			a = max(a, b)
		}
	}
	return v.startMost + float64(epochs)*math.Exp(a+effect)*v.margin(), hasCPUs
}
