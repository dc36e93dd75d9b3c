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

const (
	epochIterations = 1000
	// scaling is the exponent of the assumed rate, by number of GPUs, of a model that never ran. It is
	// the mean of the rising parts of the curves in throughputs_A100 (0.39). A job of it is assumed to
	// need half of its window with priorGPUs.
	scaling, priorGPUs = 0.4, 8
)

// learnedKnowledge shows rates that Courier's regressors predict from the epochs measured so far.
// GPUs take the place of the CPUs of a configuration. A regressor is fitted again when a
// configuration is measured for the first time: true rates do not vary.
type learnedKnowledge struct {
	runs      map[evidence.Configuration]evidence.Run
	predictor *evidence.Predictor // nil: fit again
	curves    map[curveKey]policy.Curve
}

type curveKey struct {
	model     string
	batchSize int
}

func newLearnedKnowledge() *learnedKnowledge {
	return &learnedKnowledge{runs: map[evidence.Configuration]evidence.Run{}}
}

func (k *learnedKnowledge) job(j *simulatedJob) policy.ElasticJob {
	v := j.view()
	first := j.firstOption()
	for i := range v.Options {
		o := &j.options[first+i]
		v.Options[i].Curve = k.curve(j, o)
	}
	return v
}

// measured adds the measured rate of a running job.
func (k *learnedKnowledge) measured(j *simulatedJob) {
	c := k.configuration(j, &j.options[j.chosen], j.gpus)
	if _, isKnown := k.runs[c]; isKnown {
		return
	}
	k.runs[c] = evidence.Run{
		Configuration: c,
		MeanSeconds:   epochIterations / j.rate(),
		EpochCount:    1,
	}
	k.predictor = nil
}

func (*learnedKnowledge) configuration(j *simulatedJob, o *gpuOption, gpus int) evidence.Configuration {
	return evidence.Configuration{Model: j.Model, BatchSize: o.batchSize, CPUs: gpus}
}

// fit fits all models; the number of runs is that of the configurations.
func (k *learnedKnowledge) fit() {
	runs := slices.SortedFunc(maps.Values(k.runs), func(a, b evidence.Run) int {
		return cmp.Or(cmp.Compare(a.Model, b.Model), cmp.Compare(a.BatchSize, b.BatchSize),
			cmp.Compare(a.CPUs, b.CPUs))
	})
	k.curves = map[curveKey]policy.Curve{}
	regressor, err := evidence.Fit(context.Background(), runs, evidence.Options{})
	if err == nil {
		k.predictor, err = evidence.Compile(regressor)
	}
	if err != nil {
		k.predictor = &evidence.Predictor{} // predicts nothing
	}
}

// curve predicts the rates of an option.
func (k *learnedKnowledge) curve(j *simulatedJob, o *gpuOption) policy.Curve {
	if k.predictor == nil {
		k.fit()
	}
	key := curveKey{j.Model, o.batchSize}
	if learned, ok := k.curves[key]; ok {
		return learned
	}
	var learned policy.Curve
	for _, p := range o.curve {
		c := k.configuration(j, o, p.Units)
		if run, isMeasured := k.runs[c]; isMeasured {
			p.Rate = epochIterations / run.MeanSeconds
		} else {
			t := k.predictor.Time(c, 1)
			if t.Scale <= 0 {
				return k.unknown(j, o)
			}
			p.Rate = epochIterations / t.Median()
		}
		learned = append(learned, p)
	}
	k.curves[key] = learned
	return learned
}

// unknown returns the assumed rates of a model that never ran.
func (k *learnedKnowledge) unknown(j *simulatedJob, o *gpuOption) policy.Curve {
	var assumed policy.Curve
	window := max(1, (j.Deadline - j.Submitted).Seconds())
	for _, p := range o.curve {
		p.Rate = 2 * o.iterations / window * math.Pow(float64(p.Units)/priorGPUs, scaling)
		assumed = append(assumed, p)
	}
	return assumed
}
