package decide_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/schemas"
)

// The model of the noisy fixture ran four times with each of these batch sizes, on one CPU, for
// forty epochs, on nodes of one type.
const evidenceModel = "shufflenet"

var (
	evidenceBatches = []int{32, 64, 128, 256, 512}
	evidenceNode    = schemas.Hardware{Cores: 16, CPUModel: "V100"}
	evidenceBegin   = time.Unix(1_790_000_000, 0).UTC()
)

const evidenceEpochs = 40

// lawSeconds is the mean time of an epoch in the fixture.
func lawSeconds(batch int) float64 { return 4 + 2048/float64(batch) }

// curveAccuracy is the accuracy after some epochs, in steps of 0.05. Each doubling of the batch
// size lowers the maximum of 0.75 by 0.05.
func curveAccuracy(batch, epoch, late int) float64 {
	top := 0.75 - 0.05*math.Log2(float64(batch)/32)
	a := top * (1 - math.Exp(-float64(max(0, epoch-late))/8))
	return math.Max(0.05, math.Floor(20*a+0.5)/20)
}

// evidenceRuns returns the runs of the fixture, each changed by change unless it is nil.
func evidenceRuns(change func(n int, r *advisortest.Run)) []advisortest.Run {
	random := rand.New(rand.NewPCG(4, 2))
	var runs []advisortest.Run
	for _, batch := range evidenceBatches {
		for k := range 4 {
			own := math.Exp(0.02 * random.NormFloat64())
			r := advisortest.Run{
				Model:          evidenceModel,
				Hardware:       evidenceNode,
				BatchSize:      uint32(batch),
				CPUs:           1,
				Load:           schemas.Load{ConcurrentJobs: 1, Processes: 1},
				StartedAt:      evidenceBegin.Add(time.Duration(len(runs)) * time.Hour),
				StartupSeconds: 3 * math.Exp(0.1*random.NormFloat64()),
			}
			for e := 1; e <= evidenceEpochs; e++ {
				r.Epochs = append(r.Epochs, advisortest.Epoch{
					Seconds:  lawSeconds(batch) * own * math.Exp(0.03*random.NormFloat64()),
					Accuracy: curveAccuracy(batch, e, k%2),
				})
			}
			if change != nil {
				change(len(runs), &r)
			}
			runs = append(runs, r)
		}
	}
	return runs
}

var fittedByEvidence = advisortest.FitOnce(func() []advisortest.Run { return evidenceRuns(nil) })

// evidenceQuestion asks for twenty epochs of the fixture's model, alone on its node.
func evidenceQuestion(change func(*schemas.JobRequest)) *decide.Question {
	q := schemas.JobRequest{
		Model: evidenceModel, CPUs: schemas.CPUs{1}, BatchSizes: []int{32, 64, 128, 256}, Epochs: 20,
		SLO: schemas.Duration(20 * time.Minute), Nodes: []string{"node-a"},
	}
	if change != nil {
		change(&q)
	}
	return &decide.Question{
		Request: q.WithDefaults(), Nodes: []string{"node-a"}, Hardware: []schemas.Hardware{evidenceNode},
		StopsAtTarget: q.TargetAccuracy > 0 && q.Epochs == 0,
	}
}

// evidenceRegressors loads the regressors of the fixture.
func evidenceRegressors(t testing.TB) decide.Regressors {
	t.Helper()
	return advisortest.Load(t, fittedByEvidence)
}
