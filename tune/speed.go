package tune

import (
	"math"
	"slices"
)

// speedModel estimates the time of an epoch by trial and number of CPUs from measured epochs: the
// logarithm is that of the trial plus that of the number of CPUs. The difference between two numbers
// of CPUs comes from trials that ran with both, because the parameters of a trial, such as the batch
// size, may matter more.
type speedModel struct {
	pairs    map[speedKey]*epochMoments
	segments []segmentTime
	probes   map[int]int // ended probes by number of CPUs
}

type speedKey struct{ trial, cpus int }

// epochMoments are moments of the logarithm of epoch times in seconds.
type epochMoments struct {
	count, sum, squares float64
	coarse              float64 // smallest time that includes a start of the command; 0: none
}

// segmentTime is the time of a finished segment.
type segmentTime struct {
	speedKey
	seconds float64
	epochs  int
}

// add adds the epochs of an ended segment.
func (m *speedModel) add(a *activeSegment, e *Ending) {
	if m.pairs == nil {
		m.pairs, m.probes = map[speedKey]*epochMoments{}, map[int]int{}
	}
	key := speedKey{a.Trial, a.CPUs}
	if a.IsProbe && e.Outcome != OutcomeStopped {
		m.probes[a.CPUs]++
	}
	if e.Outcome == OutcomeDone && len(a.epochs) > 0 {
		m.segments = append(m.segments, segmentTime{key, e.Seconds, len(a.epochs)})
	}
	for i, epoch := range a.epochs {
		if !(epoch.Seconds > 0) {
			continue
		}
		if m.pairs[key] == nil {
			m.pairs[key] = &epochMoments{}
		}
		p := m.pairs[key]
		if i == 0 && e.HasStartInEpoch {
			if p.coarse == 0 || epoch.Seconds < p.coarse {
				p.coarse = epoch.Seconds
			}
			continue
		}
		y := math.Log(epoch.Seconds)
		p.count, p.sum, p.squares = p.count+1, p.sum+y, p.squares+y*y
	}
}

// isExact reports whether an epoch of a trial was measured with a number of CPUs, without the start
// of the command.
func (m *speedModel) isExact(key speedKey) bool {
	p := m.pairs[key]
	return p != nil && p.count > 0
}

// epochs returns the number of measured epochs.
func (m *speedModel) epochs() (n int) {
	for _, p := range m.pairs {
		n += int(p.count)
	}
	return n
}

// hasCoarse reports whether some times of epochs include the start of the command.
func (m *speedModel) hasCoarse() bool {
	for _, p := range m.pairs {
		if p.coarse > 0 {
			return true
		}
	}
	return false
}

// speeds are fitted times of epochs.
type speeds struct {
	trials       map[int]float64 // logarithm of seconds, with the first number of CPUs
	cpus         map[int]float64 // added for a number of CPUs; missing: not measured
	startMean    float64         // seconds of a segment beside its epochs
	startMost    float64
	sigma        float64 // standard deviation of the logarithm
	hasOnlyStart bool    // all times include the start of the command
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
	keys := m.exactKeys()
	if len(keys) == 0 {
		v.hasOnlyStart = true
		v.fitCoarse(m)
	} else {
		v.cpus[keys[0].cpus] = 0
		for v.connect(m, keys) {
		}
		v.fitTrials(m, keys)
	}
	v.fitSigma(m)
	v.fitStarts(m)
	return v
}

// exactKeys returns the exactly measured trials and CPUs, ordered by trial.
func (m *speedModel) exactKeys() []speedKey {
	var keys []speedKey
	for key := range m.pairs {
		if m.isExact(key) {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b speedKey) int {
		if a.trial != b.trial {
			return a.trial - b.trial
		}
		return a.cpus - b.cpus
	})
	return keys
}

// connect adds numbers of CPUs with which a trial ran that also ran with a known one. It returns
// whether it added one.
func (v *speeds) connect(m *speedModel, keys []speedKey) bool {
	sums, counts := map[int]float64{}, map[int]float64{}
	for _, key := range keys {
		if _, isKnown := v.cpus[key.cpus]; isKnown {
			continue
		}
		for _, other := range keys {
			effect, isKnown := v.cpus[other.cpus]
			if other.trial == key.trial && isKnown {
				a, b := m.pairs[key], m.pairs[other]
				sums[key.cpus] += a.sum/a.count - b.sum/b.count + effect
				counts[key.cpus]++
			}
		}
	}
	for cpus, sum := range sums {
		v.cpus[cpus] = sum / counts[cpus]
	}
	return len(sums) > 0
}

// fitTrials sets the times of the trials that ran with a connected number of CPUs.
func (v *speeds) fitTrials(m *speedModel, keys []speedKey) {
	counts := map[int]float64{}
	for _, key := range keys {
		if effect, isKnown := v.cpus[key.cpus]; isKnown {
			p := m.pairs[key]
			v.trials[key.trial] += p.sum - p.count*effect
			counts[key.trial] += p.count
		}
	}
	for trial, count := range counts {
		v.trials[trial] /= count
	}
}

// fitCoarse uses times that include the start of the command, with the CPUs of the first trial.
func (v *speeds) fitCoarse(m *speedModel) {
	var first *speedKey
	for key, p := range m.pairs {
		if p.coarse > 0 && (first == nil || key.trial < first.trial ||
			key.trial == first.trial && key.cpus < first.cpus) {
			first = &key
		}
	}
	if first == nil {
		return
	}
	v.cpus[first.cpus] = 0
	for key, p := range m.pairs {
		if key.cpus == first.cpus && p.coarse > 0 {
			v.trials[key.trial] = math.Log(p.coarse)
		}
	}
}

func (v *speeds) fitSigma(m *speedModel) {
	squares, degrees := priorEpochs*priorSigma*priorSigma, float64(priorEpochs)
	for _, p := range m.pairs {
		if p.count > 1 {
			squares += max(0, p.squares-p.sum*p.sum/p.count)
			degrees += p.count - 1
		}
	}
	v.sigma = math.Sqrt(squares / degrees)
}

func (v *speeds) fitStarts(m *speedModel) {
	sum, count := 0.0, 0.0
	for _, g := range m.segments {
		epoch, ok := v.epoch(g.trial, g.cpus)
		if !ok {
			continue
		}
		start := max(0, g.seconds-float64(g.epochs)*epoch)
		sum, count = sum+start, count+1
		v.startMost = max(v.startMost, start)
	}
	if count > 0 {
		v.startMean = sum / count
	}
}

// epoch returns the expected seconds of an epoch; false if the trial or the CPUs were not measured.
func (v *speeds) epoch(trial, cpus int) (seconds float64, ok bool) {
	a, hasTrial := v.trials[trial]
	effect, hasCPUs := v.cpus[cpus]
	return math.Exp(a + effect), hasTrial && hasCPUs
}

// mean returns the mean seconds of an epoch over the trials with a number of CPUs.
func (v *speeds) mean(trials []int, cpus int) (seconds float64, ok bool) {
	effect, hasCPUs := v.cpus[cpus]
	sum, count := 0.0, 0
	for _, t := range trials {
		if a, isKnown := v.trials[t]; isKnown {
			sum, count = sum+math.Exp(a+effect), count+1
		}
	}
	if !hasCPUs || count == 0 {
		return 0, false
	}
	return sum / float64(count), true
}

// margin is the ratio of the upper bound of an epoch's time, at a confidence of 0.95, to its mean.
func (v *speeds) margin() float64 { return math.Exp(boundDeviations * v.sigma) }

// bound returns an upper bound of the seconds of a segment. A trial that was not measured may be as
// slow as the slowest one. It is false before anything was measured with this number of CPUs.
func (v *speeds) bound(trial, cpus, epochs int) (seconds float64, ok bool) {
	effect, hasCPUs := v.cpus[cpus]
	if !hasCPUs || len(v.trials) == 0 {
		return 0, false
	}
	a, isKnown := v.trials[trial]
	if !isKnown {
		a = math.Inf(-1)
		for _, b := range v.trials {
			a = max(a, b)
		}
	}
	return v.startMost + float64(epochs)*math.Exp(a+effect)*v.margin(), true
}
