package advisor_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"courier/advisor"
	"courier/advisor/advisortest"
	"courier/schemas"
)

const model = "digits-mlp"

// trueSeconds returns the seconds of an epoch in the fixture.
func trueSeconds(batch, cpus, jobs float64) float64 { return (1 + 8/batch) * jobs / cpus }

const trueStartup = 0.1

// trueAccuracy returns the true accuracy of the fixture after some epochs.
func trueAccuracy(batch, epochs float64) float64 {
	return 0.98 - 0.01*math.Log2(batch/4) - 0.3*math.Exp(-epochs/3)
}

// fixtureEpochs is the number of epochs of each run of the fixture.
const fixtureEpochs = 10

// fixtureRuns returns the runs of a full factorial design on each node, with three replications
// that differ by one percent. A node with half the speed takes twice as long.
func fixtureRuns(nodes ...schemas.Hardware) (all []advisortest.Run) {
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
func fixtureRun(node schemas.Hardware, batch, cpus uint32, jobs, factor float64) advisortest.Run {
	slower := 1.0
	if node.Speed > 0 {
		slower = 1e9 / node.Speed
	}
	r := advisortest.Run{
		Model:          model,
		Hardware:       node,
		BatchSize:      batch,
		CPUs:           cpus,
		Load:           schemas.Load{ConcurrentJobs: jobs, Processes: jobs * float64(cpus)},
		StartupSeconds: trueStartup * factor,
	}
	for e := range fixtureEpochs {
		r.Epochs = append(r.Epochs, advisortest.Epoch{
			Seconds:  slower * factor * trueSeconds(float64(batch), float64(cpus), jobs),
			Accuracy: trueAccuracy(float64(batch), float64(e+1)),
		})
	}
	return r
}

// fitting fits regressors once.
type fitting func() (map[string]advisortest.Files, error)

// fitOnce returns a function that fits regressors on runs when it is first called.
func fitOnce(runs func() []advisortest.Run) fitting {
	return sync.OnceValues(func() (map[string]advisortest.Files, error) {
		return advisortest.Fit(testContext, runs())
	})
}

// fitOn returns a function that fits the regressors of the fixture on nodes.
func fitOn(nodes ...schemas.Hardware) fitting {
	return fitOnce(func() []advisortest.Run { return fixtureRuns(nodes...) })
}

var (
	unknownNode   = schemas.Hardware{} // no collector and no runner has described it
	twoProcessors = schemas.Hardware{Cores: 2}

	// small and large are different nodes.
	small = schemas.Hardware{Cores: 2, CPUModel: "x", Speed: 1e9}
	large = schemas.Hardware{Cores: 16, CPUModel: "y", Speed: 5e8}
)

var (
	fitted       = fitOn(unknownNode, twoProcessors)
	fittedOnOne  = fitOn(small)
	fittedOnBoth = fitOn(small, large)
)

func regressors(t testing.TB) advisor.Regressors {
	t.Helper()
	return load(t, fitted)
}

// load loads fitted regressors as an advisor does.
func load(t testing.TB, fit fitting) advisor.Regressors {
	t.Helper()
	all, err := fit()
	if err != nil {
		t.Fatal(err)
	}
	return loadFiles(t, all)
}

func loadFiles(t testing.TB, all map[string]advisortest.Files) advisor.Regressors {
	t.Helper()
	use := func(target string) *advisor.LoadedRegressor {
		files := all[target]
		r, err := advisor.LoadRegressor(files.Model, files.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return advisor.Regressors{
		EpochTime: use(schemas.TargetEpochTime),
		Startup:   use(schemas.TargetStartup),
		Accuracy:  use(schemas.TargetAccuracy),
	}
}
