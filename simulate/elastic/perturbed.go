package elastic

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"courier/policy"
)

// observedAfter is the time without pauses after which the rate of a job at its number of GPUs
// counts as measured.
const observedAfter = time.Minute

// perturbedKnowledge shows rates with a log-normal error, which is independent for each job, batch
// size and number of GPUs. A rate at which the job ran is exact from then on; it says nothing about
// the errors of the others.
type perturbedKnowledge struct {
	seed  uint64
	sigma float64
}

func (k *perturbedKnowledge) job(j *simulatedJob) policy.ElasticJob {
	v := j.view()
	first := j.firstOption()
	for i := range v.Options {
		v.Options[i].Curve = k.curve(j, first+i)
	}
	return v
}

func (*perturbedKnowledge) measured(*simulatedJob) {}

// curve returns the known rates of an option.
func (k *perturbedKnowledge) curve(j *simulatedJob, option int) policy.Curve {
	o := &j.options[option]
	curve := make(policy.Curve, len(o.curve))
	for i, p := range o.curve {
		curve[i] = p
		if !j.admitted || !j.isMeasured[p.Units] {
			curve[i].Rate *= math.Exp(k.error(j.ID, o.batchSize, p.Units))
			curve[i].Error = k.sigma
		}
	}
	return curve
}

// error returns the logarithm of known rate / true rate.
func (k *perturbedKnowledge) error(id string, batchSize, gpus int) float64 {
	h := fnv.New64a()
	h.Write([]byte(id + "/" + strconv.Itoa(batchSize) + "/" + strconv.Itoa(gpus)))
	return k.sigma * rand.New(rand.NewPCG(k.seed, h.Sum64())).NormFloat64()
}

// measure notes the rate of a running job once it has made progress for long enough.
func (j *simulatedJob) measure(now time.Duration) bool {
	from := max(j.since, j.pausedUntil)
	if j.gpus == 0 || now-from < observedAfter || j.isMeasured[j.gpus] {
		return false
	}
	if j.isMeasured == nil {
		j.isMeasured = map[int]bool{}
	}
	j.isMeasured[j.gpus] = true
	j.measured = j.gpus
	return true
}
