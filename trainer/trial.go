package trainer

import (
	"fmt"
	"math"

	"courier/regress"
	"courier/schemas"
)

// Rules of trials (docs/decisions/0011).
const (
	minJobs              = 50          // number of jobs that both predicted, or
	minSettings          = 20          // number of distinct configurations among them
	minGain              = 0.02        // share by which the loss must be lower
	coverageSlack        = 0.03        // tolerated shortfall of the bound's coverage below its level
	maxJobs              = 400         // jobs after which a challenger that is not better is rejected
	minBootstrapSettings = 5           // with fewer configurations the bootstrap resamples jobs
	lookFactor           = 2           // growth of the number of jobs between two tests
	maxJudged            = 4 * maxJobs // jobs that are counted while the verdict cannot be executed
	maxShadows           = 50_000      // runs that are compared at a time
	maxGained            = 10_000      // configurations that are counted as gained, or as lost
	medianLevel          = 0.5         // level of a prediction, and of the bound of an accuracy
)

// Trial compares the champion with a challenger on jobs that neither has learned from and no drift
// has made stale. It is deterministic: equal jobs in equal order give equal verdicts.
type Trial struct {
	champion, challenger *trialPredictor
	level                float64
	running              *lru[runKey, *shadowRun]
	losses               [2][]float64 // of champion and challenger, by job
	covered              [2]float64   // jobs within the bound
	groups               []int        // configuration of each job
	settings             map[string]int
	gained, lost         map[string]bool // configurations covered only by the challenger, or champion
	drifts               []knownDrift
	nextLookAt           int // number of jobs of the next test
	ended                bool
}

// trialPredictor is a regressor with the encoder of its rows.
type trialPredictor struct {
	predictor *regress.Predictor
	encoder   *schemas.Encoder
	row       []float64
}

// shadowRun sums the losses of both predictions of a run since it was counted last.
type shadowRun struct {
	loss, covered [2]float64
	n             float64
	setting       string
}

// newTrialPredictor returns a trialPredictor; an error if this version does not know its features.
func newTrialPredictor(p *regress.Predictor) (*trialPredictor, error) {
	encoder, err := readEncoder(p.Manifest())
	if err != nil {
		return nil, err
	}
	return &trialPredictor{p, encoder, make([]float64, len(encoder.Columns()))}, nil
}

// predict returns the prediction for an example; ok is false if its model is unknown or the
// prediction is an extrapolation.
func (j *trialPredictor) predict(x *Example) (p regress.Prediction, ok bool) {
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

// predictBound returns the prediction for an example and its upper bound at a level. Accuracies
// have no bound; both values are then the prediction.
func (j *trialPredictor) predictBound(x *Example, level float64) (value, bound float64, ok bool) {
	p, ok := j.predict(x)
	if !ok || level == medianLevel {
		return p.Value, p.Value, ok
	}
	bound, ok = j.predictor.UpperBound(p, level)
	return p.Value, bound, ok
}

// newTrial compares two regressors of a target.
func newTrial(target string, champion, challenger *regress.Predictor) (*Trial, error) {
	t := &Trial{
		level:      schemas.DefaultConfidence,
		running:    newLRU[runKey, *shadowRun](maxShadows),
		settings:   map[string]int{},
		gained:     map[string]bool{},
		lost:       map[string]bool{},
		nextLookAt: minSettings,
	}
	if target == schemas.TargetAccuracy {
		t.level = medianLevel
	}
	var err error
	if t.champion, err = newTrialPredictor(champion); err != nil {
		return nil, err
	}
	t.challenger, err = newTrialPredictor(challenger)
	return t, err
}

// add adds an example of a run.
func (t *Trial) add(k runKey, x *Example) {
	setting := settingText(x)
	value, bound, known := t.champion.predictBound(x, t.level)
	otherValue, otherBound, alsoKnown := t.challenger.predictBound(x, t.level)
	t.compareReach(setting, known, alsoKnown)
	if !known || !alsoKnown {
		return
	}
	s, _ := t.running.get(k)
	if s == nil {
		s = &shadowRun{setting: setting}
		t.running.put(k, s)
	}
	for i, p := range [2][2]float64{{value, bound}, {otherValue, otherBound}} {
		s.loss[i] += (t.pinball(x.Value, p[0], medianLevel) + t.pinball(x.Value, p[1], t.level)) / 2
		if x.Value <= p[1] {
			s.covered[i]++
		}
	}
	if s.n++; s.n >= epochsPerOutcome {
		t.count(k)
	}
}

// compareReach counts a configuration that only one of the two predicts without extrapolation.
func (t *Trial) compareReach(setting string, champion, challenger bool) {
	switch {
	case challenger && !champion && len(t.gained) < maxGained:
		t.gained[setting] = true
	case champion && !challenger && len(t.lost) < maxGained:
		t.lost[setting] = true
	}
}

// pinball returns the loss of a quantile at a level; for times, of the logarithm.
func (t *Trial) pinball(truth, quantile, level float64) float64 {
	e := truth - quantile
	if t.level != medianLevel {
		e = math.Log(truth / quantile)
	}
	return max(level*e, (level-1)*e)
}

// count turns the losses of a run into one job: at its end, and every epochsPerOutcome epochs of a
// long run.
func (t *Trial) count(k runKey) {
	s, _ := t.running.get(k)
	if s == nil {
		return
	}
	t.running.remove(k)
	if len(t.groups) >= maxJudged {
		t.nextLookAt = min(t.nextLookAt, len(t.groups))
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

// settingText identifies the configuration of an example, including its number of co-located jobs.
func settingText(x *Example) string {
	f := x.Features
	return fmt.Sprint(x.level(), x.Hardware.Rounded(), f.BatchSize, f.CPUs,
		math.Round(f.Load.ConcurrentJobs))
}

// judgement returns the current comparison.
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
	if len(t.settings) < minBootstrapSettings {
		groups = nil
	}
	difference, err := regress.Paired(t.losses[1], t.losses[0], groups, 1)
	if err != nil {
		return j // unreachable: the slices have equal lengths
	}
	var means [2]float64
	for i, losses := range t.losses {
		for _, l := range losses {
			means[i] += l / float64(n)
		}
	}
	coverage, championCoverage := t.covered[1]/float64(n), t.covered[0]/float64(n)
	j.Loss, j.RivalLoss = &means[1], &means[0]
	j.LossDifferenceLow = finiteOrNil(difference.Low)
	j.LossDifferenceHigh = finiteOrNil(difference.High)
	j.CoverageRatio, j.RivalCoverageRatio = &coverage, &championCoverage
	return j
}

// finiteOrNil returns nil for NaN and infinity, which JSON cannot represent.
func finiteOrNil(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// verdict is the result of a trial.
type verdict int

const (
	undecided verdict = iota
	better
	noBetter
)

// String is "better", "no_better" or "undecided".
func (r verdict) String() string { return [...]string{"undecided", "better", "no_better"}[r] }

// verdict tests the challenger each time the number of jobs has doubled; frequent tests would find
// differences by chance. With this rule one of nine equal challengers is promoted, and one of sixty
// that are 2 % worse. The reason describes the comparison.
func (t *Trial) verdict() (r verdict, j schemas.Judgement, reason string) {
	n := len(t.groups)
	if t.ended || n < t.nextLookAt || n < minJobs && len(t.settings) < minSettings {
		return undecided, j, ""
	}
	t.nextLookAt = lookFactor * n
	j = t.judgement()
	r, reason = judge(&j)
	t.ended = r != undecided
	return r, j, reason
}

// judge applies the rules to a comparison.
func judge(j *schemas.Judgement) (verdict, string) {
	if j.Loss == nil || j.LossDifferenceHigh == nil || j.LossDifferenceLow == nil {
		return undecided, "no jobs to compare"
	}
	figures := fmt.Sprintf("on %d jobs of %d configurations: loss %.4g, champion's loss %.4g "+
		"(difference %.3g to %.3g), coverage %.3f, champion's coverage %.3f",
		j.JudgedJobs, j.JudgedSettings, *j.Loss, *j.RivalLoss,
		*j.LossDifferenceLow, *j.LossDifferenceHigh, *j.CoverageRatio, *j.RivalCoverageRatio)
	lower := *j.Loss <= (1-minGain)**j.RivalLoss && *j.LossDifferenceHigh < 0
	covers := j.JudgedLevel == medianLevel || *j.CoverageRatio >= min(j.JudgedLevel-coverageSlack,
		*j.RivalCoverageRatio)
	switch {
	case lower && covers && j.LostSettings == 0:
		return better, "better: " + figures
	case *j.LossDifferenceLow > 0:
		return noBetter, "worse: " + figures
	case lower && covers && j.JudgedJobs >= maxJobs:
		return noBetter, fmt.Sprintf("it does not cover %d configurations that the champion covers: %s",
			j.LostSettings, figures)
	case j.JudgedJobs >= maxJobs:
		return noBetter, "no better: " + figures
	}
	return undecided, "undecided: " + figures
}

// compareCoverage counts the configurations of examples that only the challenger, or only the champion,
// predicts without extrapolation.
func compareCoverage(t *Trial, examples []Example) schemas.Judgement {
	for i := range examples {
		x := examples[i]
		_, known := t.champion.predict(&x)
		_, alsoKnown := t.challenger.predict(&x)
		t.compareReach(settingText(&x), known, alsoKnown)
	}
	return schemas.Judgement{
		GainedSettings: uint32(len(t.gained)),
		LostSettings:   uint32(len(t.lost)),
	}
}
