package elastic

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"

	"courier/policy"
	"courier/regress/evidence"
)

// knownCurve returns what a policy knows about the rates of an option.
func (w *world) knownCurve(j *simulatedJob, o *gpuOption) policy.Curve {
	if w.Predicted {
		return w.runs.curve(j, o)
	}
	return o.curve
}

const (
	epochIterations = 1000
	// scaling is the exponent of the assumed rate, by number of GPUs, of a model that never ran. It is
	// the mean of the rising parts of the curves in throughputs_A100 (0.39). A job of it is assumed to
	// need half of its window with priorGPUs.
	scaling, priorGPUs = 0.4, 8
)

// learnedRuns are the epochs measured so far, from which Courier's regressors predict rates. GPUs take
// the place of the CPUs of a configuration. A regressor is fitted again when a configuration is measured
// for the first time: true rates do not vary.
type learnedRuns struct {
	runs      map[evidence.Configuration]evidence.Run
	predictor *evidence.Predictor // nil: fit again
	curves    map[curveKey]policy.Curve
}

type curveKey struct {
	model     string
	batchSize int
}

func (j *simulatedJob) configuration(o *gpuOption, gpus int) evidence.Configuration {
	return evidence.Configuration{Model: j.Model, BatchSize: o.batchSize, CPUs: gpus}
}

// add adds the measured rate of a running job.
func (l *learnedRuns) add(j *simulatedJob) {
	c := j.configuration(&j.options[j.chosen], j.gpus)
	if _, isKnown := l.runs[c]; isKnown {
		return
	}
	if l.runs == nil {
		l.runs = map[evidence.Configuration]evidence.Run{}
	}
	l.runs[c] = evidence.Run{Configuration: c, MeanSeconds: epochIterations / j.rate(), EpochCount: 1}
	l.predictor = nil
}

// fit fits all models; the number of runs is that of the configurations.
func (l *learnedRuns) fit() {
	runs := slices.SortedFunc(maps.Values(l.runs), func(a, b evidence.Run) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.BatchSize, b.BatchSize),
			cmp.Compare(a.CPUs, b.CPUs))
	})
	l.curves = map[curveKey]policy.Curve{}
	regressor, err := evidence.Fit(context.Background(), runs, evidence.Options{})
	if err == nil {
		l.predictor, err = evidence.Compile(regressor)
	}
	if err != nil {
		l.predictor = &evidence.Predictor{} // predicts nothing
	}
}

// curve predicts the rates of an option. Those of a model that never ran are assumed.
func (l *learnedRuns) curve(j *simulatedJob, o *gpuOption) policy.Curve {
	if l.predictor == nil {
		l.fit()
	}
	key := curveKey{j.Model, o.batchSize}
	if learned, ok := l.curves[key]; ok {
		return learned
	}
	learned, assumed := slices.Clone(o.curve), slices.Clone(o.curve)
	window, isKnown := max(1, (j.Deadline-j.Submitted).Seconds()), true
	for i, p := range o.curve {
		assumed[i].Rate = 2 * o.iterations / window * math.Pow(float64(p.Units)/priorGPUs, scaling)
		c := j.configuration(o, p.Units)
		run, isMeasured := l.runs[c]
		seconds := run.MeanSeconds
		if !isMeasured {
			t := l.predictor.Time(c, 1)
			seconds, isKnown = t.Median(), isKnown && t.Scale > 0
		}
		learned[i].Rate = epochIterations / seconds
	}
	if !isKnown {
		return assumed
	}
	l.curves[key] = learned
	return learned
}
