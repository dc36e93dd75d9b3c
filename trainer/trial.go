package trainer

import (
	"fmt"
	"math"

	"courier/regress"
	"courier/schemas"
)

// When a regressor is better than the one in use (models: champion and challenger).
const (
	leastJobs     = 50           // that both predicted, or
	leastSettings = 20           // distinct ones
	leastGain     = 0.02         // share by which the loss must be lower
	coverageSlack = 0.03         // that the bound may hold less often than it says
	mostJobs      = 400          // after which a rival that is not better never will be
	fewSettings   = 5            // below that a bootstrap over settings says nothing: jobs stand for themselves
	nextLook      = 2            // times as many jobs
	mostJudged    = 4 * mostJobs // jobs that count while a verdict cannot be carried out
	mostShadows   = 50_000       // runs that are compared at once, those that were heard of last
	mostGained    = 10_000       // settings that are counted as gained, or as lost
	middle        = 0.5          // level of a prediction, and of what an accuracy promises: it has no bound
)

// Trial compares the champion with a rival on the same jobs, which neither has
// learnt from and no drift has made stale. It is pure: the same jobs in the same order give the same verdict.
type Trial struct {
	champion, rival *entrant
	level           float64
	running         *lru[runKey, *shadow]
	losses          [2][]float64 // of the champion and of the rival, a job each
	covered         [2]float64   // jobs within the bound
	groups          []int        // setting of each job
	settings        map[string]int
	gained, lost    map[string]bool // settings that only the rival, or only the champion, promises for
	drifts          []drifted
	look            int // jobs at which it is judged next
	ended           bool
}

// entrant is a regressor with what makes rows for it.
type entrant struct {
	predictor *regress.Predictor
	encoder   *schemas.Encoder
	row       []float64
}

// shadow is what both have predicted of a run since it was counted last.
type shadow struct {
	loss, covered [2]float64
	n             float64
	setting       string
}

func judgeable(p *regress.Predictor) (*entrant, error) {
	encoder, err := readEncoder(p.Manifest())
	if err != nil {
		return nil, err
	}
	return &entrant{p, encoder, make([]float64, len(encoder.Columns()))}, nil
}

// predict returns the prediction for an example; ok is false where it knows nothing
// of it, or only guesses.
func (j *entrant) predict(x *Example) (p regress.Prediction, ok bool) {
	code, known := j.encoder.Model(x.level())
	if !known {
		return p, false
	}
	f := x.Features
	f.ModelCode, f.Node = code, j.encoder.Node(x.Hardware)
	j.encoder.Fill(j.row, &f)
	p, err := j.predictor.Predict(j.row)
	return p, err == nil && !p.Extrapolated
}

// promise returns the prediction of an example and its bound at a level; of an
// accuracy, whose promise is the middle, both are the prediction.
func (j *entrant) promise(x *Example, level float64) (value, bound float64, ok bool) {
	p, ok := j.predict(x)
	if !ok || level == middle {
		return p.Value, p.Value, ok
	}
	bound, ok = j.predictor.UpperBound(p, level)
	return p.Value, bound, ok
}

// newTrial compares two regressors of a target.
func newTrial(target string, champion, rival *regress.Predictor) (*Trial, error) {
	t := &Trial{
		level:    schemas.DefaultConfidence,
		running:  newLRU[runKey, *shadow](mostShadows),
		settings: map[string]int{},
		gained:   map[string]bool{},
		lost:     map[string]bool{},
		look:     leastSettings,
	}
	if target == schemas.TargetAccuracy {
		t.level = middle
	}
	var err error
	if t.champion, err = judgeable(champion); err != nil {
		return nil, err
	}
	t.rival, err = judgeable(rival)
	return t, err
}

// add takes an example of a run.
func (t *Trial) add(k runKey, x *Example) {
	setting := settingText(x)
	value, bound, known := t.champion.promise(x, t.level)
	rivalValue, rivalBound, too := t.rival.promise(x, t.level)
	t.compareReach(setting, known, too)
	if !known || !too {
		return
	}
	s, _ := t.running.get(k)
	if s == nil {
		s = &shadow{setting: setting}
		t.running.put(k, s)
	}
	for i, p := range [2][2]float64{{value, bound}, {rivalValue, rivalBound}} {
		s.loss[i] += (t.pinball(x.Value, p[0], middle) + t.pinball(x.Value, p[1], t.level)) / 2
		if x.Value <= p[1] {
			s.covered[i]++
		}
	}
	if s.n++; s.n >= epochsPerOutcome {
		t.count(k)
	}
}

// compareReach notes a setting that only one of the two predicts without extrapolation.
func (t *Trial) compareReach(setting string, champion, rival bool) {
	switch {
	case rival && !champion && len(t.gained) < mostGained:
		t.gained[setting] = true
	case champion && !rival && len(t.lost) < mostGained:
		t.lost[setting] = true
	}
}

// pinball is the loss of a quantile at a level, of log seconds for times.
func (t *Trial) pinball(truth, quantile, level float64) float64 {
	e := truth - quantile
	if t.level != middle {
		e = math.Log(truth / quantile)
	}
	return max(level*e, (level-1)*e)
}

// count makes a job of what a run has shown: when it ends, and now and then if it
// is long.
func (t *Trial) count(k runKey) {
	s, _ := t.running.get(k)
	if s == nil {
		return
	}
	t.running.remove(k)
	if len(t.groups) >= mostJudged {
		t.look = min(t.look, len(t.groups))
		return
	}
	if _, met := t.settings[s.setting]; !met {
		t.settings[s.setting] = len(t.settings)
	}
	t.groups = append(t.groups, t.settings[s.setting])
	for i := range 2 {
		t.losses[i] = append(t.losses[i], s.loss[i]/s.n)
		t.covered[i] += s.covered[i] / s.n
	}
}

// settingText is the setting of an example: what its owner and the cluster fix.
func settingText(x *Example) string {
	f := x.Features
	return fmt.Sprint(x.level(), x.Hardware.Rounded(), f.BatchSize, f.CPUs,
		math.Round(f.Load.ConcurrentJobs))
}

// judgement returns how the rival stands.
func (t *Trial) judgement() schemas.Judgement {
	n := len(t.groups)
	j := schemas.Judgement{
		JudgedLevel:    t.level,
		JudgedJobs:     uint32(n),
		JudgedSettings: uint32(len(t.settings)),
		GainedSettings: uint32(len(t.gained)),
		LostSettings:   uint32(len(t.lost)),
	}
	if n == 0 {
		return j
	}
	groups := t.groups
	if len(t.settings) < fewSettings {
		groups = nil
	}
	difference, err := regress.Paired(t.losses[1], t.losses[0], groups, 1)
	if err != nil {
		return j // not reached: the slices are as long
	}
	var means [2]float64
	for i, losses := range t.losses {
		for _, l := range losses {
			means[i] += l / float64(n)
		}
	}
	held, rivals := t.covered[1]/float64(n), t.covered[0]/float64(n)
	j.Loss, j.RivalLoss, j.LossDifferenceLow, j.LossDifferenceHigh = &means[1], &means[0], known(
		difference.Low,
	), known(
		difference.High,
	)
	j.CoverageRatio, j.RivalCoverageRatio = &held, &rivals
	return j
}

// known turns NaN, which JSON cannot hold, into absence.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// ruling is what a trial comes to.
type ruling int

const (
	undecided ruling = iota
	better
	noBetter
)

// String is "better", "no_better" or "undecided".
func (r ruling) String() string { return [...]string{"undecided", "better", "no_better"}[r] }

// rule judges the rival, each time when there are twice as many jobs (who looks
// often finds luck: one equal rival in nine wins like this, and of those that are
// 2 % worse one in sixty). The reason says what decided.
func (t *Trial) rule() (r ruling, j schemas.Judgement, reason string) {
	n := len(t.groups)
	if t.ended || n < t.look || n < leastJobs && len(t.settings) < leastSettings {
		return undecided, j, ""
	}
	t.look = nextLook * n
	j = t.judgement()
	r, reason = judge(&j)
	t.ended = r != undecided
	return r, j, reason
}

// judge applies the rule to the figures of a comparison.
func judge(j *schemas.Judgement) (ruling, string) {
	if j.Loss == nil || j.LossDifferenceHigh == nil || j.LossDifferenceLow == nil {
		return undecided, "nothing to compare yet"
	}
	figures := fmt.Sprintf("on %d jobs of %d settings its loss is %.4g, that of the one in use %.4g (difference %.3g to %.3g), its bound holds for %.3f of them, that of the other for %.3f",
		j.JudgedJobs, j.JudgedSettings, *j.Loss, *j.RivalLoss, *j.LossDifferenceLow, *j.LossDifferenceHigh, *j.CoverageRatio, *j.RivalCoverageRatio)
	lower := *j.Loss <= (1-leastGain)**j.RivalLoss && *j.LossDifferenceHigh < 0
	holds := j.JudgedLevel == middle || *j.CoverageRatio >= min(j.JudgedLevel-coverageSlack,
		*j.RivalCoverageRatio)
	switch {
	case lower && holds && j.LostSettings == 0:
		return better, "better: " + figures
	case *j.LossDifferenceLow > 0:
		return noBetter, "worse: " + figures
	case lower && holds && j.JudgedJobs >= mostJobs:
		return noBetter, fmt.Sprintf("it cannot promise for %d settings that the one in use can: %s",
			j.LostSettings, figures)
	case j.JudgedJobs >= mostJobs:
		return noBetter, "no better: " + figures
	}
	return undecided, "not clear yet: " + figures
}

// grows counts the settings of the examples that only the rival, or only the
// champion, predicts without guessing.
func grows(t *Trial, examples []Example) schemas.Judgement {
	for i := range examples {
		x := examples[i]
		_, known := t.champion.predict(&x)
		_, too := t.rival.predict(&x)
		t.compareReach(settingText(&x), known, too)
	}
	return schemas.Judgement{
		GainedSettings: uint32(len(t.gained)),
		LostSettings:   uint32(len(t.lost)),
	}
}
