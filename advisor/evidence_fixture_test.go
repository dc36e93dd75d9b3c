package advisor_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/advisor"
	"courier/regress"
	"courier/regress/evidence"
	"courier/schemas"
)

// The model of the evidence fixture ran four times with each of these batch sizes, on one CPU,
// for forty epochs, on nodes of one type.
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
func evidenceRuns(change func(n int, r *evidence.Run)) []evidence.Run {
	random := rand.New(rand.NewPCG(4, 2))
	var runs []evidence.Run
	for _, batch := range evidenceBatches {
		for k := range 4 {
			own := math.Exp(0.02 * random.NormFloat64())
			r := evidence.Run{
				ID: fmt.Sprint(batch, "-", k),
				Configuration: evidence.Configuration{
					Model: evidenceModel, NodeType: evidenceNode.NodeType(), BatchSize: batch, CPUs: 1,
					NodeLoad: evidence.NodeLoad{ConcurrentJobs: 1, ProcessesPerCore: 1. / 16},
				},
				StartedAt:      evidenceBegin.Add(time.Duration(len(runs)) * time.Hour),
				StartupSeconds: 3 * math.Exp(0.1*random.NormFloat64()),
			}
			for e := 1; e <= evidenceEpochs; e++ {
				r.Epochs = append(r.Epochs, evidence.EpochRecord{
					Number: e, Seconds: lawSeconds(batch) * own * math.Exp(0.03*random.NormFloat64()),
					Accuracy: curveAccuracy(batch, e, k%2), HasAccuracy: true,
				})
			}
			if change != nil {
				change(len(runs), &r)
			}
			r.EndedAt = r.StartedAt.Add(time.Hour)
			runs = append(runs, r)
		}
	}
	return runs
}

// evidenceRegressors fits regressors on runs as the trainer does. Their files hold only one
// example, because an advisor does not use the predictions of the files.
func evidenceRegressors(t testing.TB, runs []evidence.Run, states ...*evidence.ServedHierarchy) advisor.Regressors {
	t.Helper()
	use := func(target string, runs []evidence.Run) *advisor.LoadedRegressor {
		var state *evidence.ServedHierarchy
		for _, s := range states {
			if target == schemas.TargetEpochTime {
				state = s
			}
		}
		if state == nil {
			var err error
			if state, err = (*evidence.ServedHierarchy)(nil).Update(testContext, runs, evidence.Options{}); err != nil {
				t.Fatal(err)
			}
		}
		return evidenceRegressor(t, target, state)
	}
	banded := make([]evidence.Run, len(runs))
	for i, r := range runs {
		r.Configuration = r.Banded()
		banded[i] = r
	}
	accuracies := make([]evidence.Run, len(runs))
	for i, r := range runs {
		r.Configuration = evidence.Configuration{
			Model: r.Model, Dataset: r.Dataset, BatchSize: r.BatchSize, CPUs: 1,
		}
		accuracies[i] = r
	}
	startups := make([]evidence.Run, len(runs))
	for i, r := range runs {
		r.NodeLoad, r.Epochs = evidence.NodeLoad{}, nil
		startups[i] = r
	}
	return advisor.Regressors{
		EpochTime: use(schemas.TargetEpochTime, banded),
		Startup:   use(schemas.TargetStartup, startups),
		Accuracy:  use(schemas.TargetAccuracy, accuracies),
	}
}

// evidenceRegressor returns a regressor with the state and columns of foreign load.
func evidenceRegressor(
	t testing.TB, target string, state *evidence.ServedHierarchy, foreign ...schemas.ForeignColumn,
) *advisor.LoadedRegressor {
	t.Helper()
	var levels []string
	for i := range state.Subjects {
		s := &state.Subjects[i]
		levels = append(levels, schemas.ModelLevel(s.Model, s.Dataset))
	}
	encoder := schemas.NewEncoder(target, levels, []schemas.Hardware{evidenceNode}, foreign...)
	d := &regress.Dataset{TargetName: target, Target: []float64{1}, Group: []int{0}}
	row := make([]float64, len(encoder.Columns()))
	encoder.Fill(row, &schemas.Features{BatchSize: 32, CPUs: 1, EpochsDone: 1})
	for i, c := range encoder.Columns() {
		d.Features = append(d.Features, regress.Feature{
			Name: c.String(), Continuous: c.Continuous(), Alone: c.DescribesNode(), Levels: encoder.Levels(c),
		})
		d.Columns = append(d.Columns, row[i:i+1])
	}
	transform := regress.Log
	if target == schemas.TargetAccuracy {
		transform = regress.None
	}
	r, err := regress.FitForest(testContext, d, regress.ForestOptions{
		Trees: 1, MaxDepth: 1, Criterion: regress.Squared, Transform: transform, Folds: -1,
		MinExamples: 1, MinSettings: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range foreign {
		f := &r.Manifest.Features[slices.Index(encoder.Columns(), c.Column)]
		f.Typical, f.Min, f.Max = c.Typical, 0, c.Max
	}
	r.Manifest.Family = regress.FamilyHierarchy
	if r.Manifest.Hierarchy, err = json.Marshal(state); err != nil {
		t.Fatal(err)
	}
	p, err := regress.Compile(r)
	if err != nil {
		t.Fatal(err)
	}
	used, err := advisor.NewRegressor(p, "digest-of-"+target)
	if err != nil {
		t.Fatal(err)
	}
	return used
}

// evidenceQuestion asks for twenty epochs of the fixture's model, alone on its node.
func evidenceQuestion(change func(*schemas.JobRequest)) *advisor.Question {
	q := schemas.JobRequest{
		Model: evidenceModel, CPUs: schemas.CPUs{1}, BatchSizes: []int{32, 64, 128, 256}, Epochs: 20,
		SLO: schemas.Duration(20 * time.Minute), Nodes: []string{"node-a"},
	}
	if change != nil {
		change(&q)
	}
	return &advisor.Question{
		Request: q.WithDefaults(), Nodes: []string{"node-a"}, Hardware: []schemas.Hardware{evidenceNode},
	}
}
