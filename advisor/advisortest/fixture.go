package advisortest

import (
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// Model is the model of the fixture.
const Model = "digits-mlp"

// TrueSeconds returns the seconds of an epoch in the fixture.
func TrueSeconds(batch, cpus, jobs float64) float64 { return (1 + 8/batch) * jobs / cpus }

// TrueStartup is the number of seconds before the first epoch of a run.
const TrueStartup = 0.1

// TrueAccuracy returns the true accuracy of the fixture after some epochs.
func TrueAccuracy(batch, epochs float64) float64 {
	return 0.98 - 0.01*math.Log2(batch/4) - 0.3*math.Exp(-epochs/3)
}

// fixtureEpochs is the number of epochs of each run of the fixture.
const fixtureEpochs = 10

// FixtureRuns returns the runs of a full factorial design on each node, with three replications
// that differ by one percent. A node with half the speed takes twice as long.
func FixtureRuns(nodes ...schemas.Hardware) (all []Run) {
	for _, node := range nodes {
		for _, batch := range []uint32{4, 16, 64} {
			for _, cpus := range []uint32{1, 2} {
				for _, jobs := range []float64{1, 2} {
					for k := range 3 {
						all = append(all, fixtureRun(node, batch, cpus, jobs, 1+0.01*float64(k-1)))
					}
				}
			}
		}
	}
	begin := time.Unix(1_780_000_000, 0).UTC()
	for i := range all {
		all[i].StartedAt = begin.Add(time.Duration(i) * time.Hour)
	}
	return all
}

// fixtureRun returns a run whose times are multiplied by a factor.
func fixtureRun(node schemas.Hardware, batch, cpus uint32, jobs, factor float64) Run {
	slower := 1.0
	if node.Speed > 0 {
		slower = 1e9 / node.Speed
	}
	r := Run{
		Model:          Model,
		Hardware:       node,
		BatchSize:      batch,
		CPUs:           cpus,
		Load:           schemas.Load{ConcurrentJobs: jobs, Processes: jobs * float64(cpus)},
		StartupSeconds: TrueStartup * factor,
	}
	for e := range fixtureEpochs {
		r.Epochs = append(r.Epochs, Epoch{
			Seconds:  slower * factor * TrueSeconds(float64(batch), float64(cpus), jobs),
			Accuracy: TrueAccuracy(float64(batch), float64(e+1)),
		})
	}
	return r
}

// Fitting fits Regressors once.
type Fitting func() (map[string]Files, error)

// FitOnce returns a function that fits Regressors on runs when it is first called.
func FitOnce(runs func() []Run) Fitting {
	return sync.OnceValues(func() (map[string]Files, error) {
		return Fit(context.Background(), runs(), nil)
	})
}

var (
	UnknownNode   = schemas.Hardware{} // no collector and no runner has described it
	TwoProcessors = schemas.Hardware{Cores: 2}

	// Small and Large are different nodes.
	Small = schemas.Hardware{Cores: 2, CPUModel: "x", Speed: 1e9}
	Large = schemas.Hardware{Cores: 16, CPUModel: "y", Speed: 5e8}
)

var Fitted = FitOnce(func() []Run { return FixtureRuns(UnknownNode, TwoProcessors) })

func Regressors(t testing.TB) decide.Regressors {
	t.Helper()
	return Load(t, Fitted)
}

// Load loads Fitted Regressors as an advisor does.
func Load(t testing.TB, fit Fitting) decide.Regressors {
	t.Helper()
	all, err := fit()
	if err != nil {
		t.Fatal(err)
	}
	return LoadFiles(t, all)
}

func LoadFiles(t testing.TB, all map[string]Files) decide.Regressors {
	t.Helper()
	use := func(target string) *decide.Regressor {
		files := all[target]
		r, err := decide.LoadRegressor(files.Model, files.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return decide.Regressors{
		EpochTime: use(schemas.TargetEpochTime),
		Startup:   use(schemas.TargetStartup),
		Accuracy:  use(schemas.TargetAccuracy),
	}
}

// Request asks for ten epochs of the model on node-a within ten seconds.
func Request() schemas.JobRequest {
	return schemas.JobRequest{
		Model:      Model,
		CPUs:       schemas.CPUs{2},
		BatchSizes: []int{4, 16, 32, 64},
		Epochs:     10,
		SLO:        schemas.Duration(10 * time.Second),
		Nodes:      []string{"node-a"},
	}
}
