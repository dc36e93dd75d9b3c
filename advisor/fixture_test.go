package advisor_test

import (
	"math"
	"sync"
	"testing"

	"courier/advisor"
	"courier/regress"
	"courier/schemas"
)

const model = "digits-mlp"

// Truth of the fixture: seconds of an epoch, and accuracy after some epochs.
func trueSeconds(batch, cpus, jobs float64) float64 { return (1 + 8/batch) * jobs / cpus }

const trueStartup = 0.1

func trueAccuracy(batch, epochs float64) float64 {
	return 0.98 - 0.01*math.Log2(batch/4) - 0.3*math.Exp(-epochs/3)
}

// dataset makes examples of a target over a full factorial, three replications
// of each setting that differ by one percent.
func dataset(target string) *regress.Dataset {
	columns := schemas.ColumnsOf(target)
	d := &regress.Dataset{TargetName: target}
	for _, c := range columns {
		f := regress.Feature{Name: c.String(), Continuous: c.Continuous()}
		if c == schemas.ColumnModel {
			f.Levels = []string{model}
		}
		d.Features, d.Columns = append(d.Features, f), append(d.Columns, nil)
	}
	row := make([]float64, len(columns))
	group := 0
	for _, batch := range []uint32{4, 16, 64} {
		for _, cpus := range []uint32{1, 2} {
			for _, jobs := range []float64{1, 2} {
				for epochs := uint32(1); epochs <= 10; epochs++ {
					for k := range 3 {
						f := schemas.Features{BatchSize: batch, CPUs: cpus, EpochsDone: epochs, Load: schemas.Load{ConcurrentJobs: jobs, Processes: jobs * float64(cpus)}}
						f.Fill(row, columns)
						for i := range columns {
							d.Columns[i] = append(d.Columns[i], row[i])
						}
						value := trueSeconds(float64(batch), float64(cpus), jobs) * (1 + 0.01*float64(k-1))
						if target == schemas.TargetStartup {
							value = trueStartup * (1 + 0.01*float64(k-1))
						}
						if target == schemas.TargetAccuracy {
							value = trueAccuracy(float64(batch), float64(epochs))
						}
						d.Target, d.Group = append(d.Target, value), append(d.Group, group)
					}
				}
				group++
			}
		}
	}
	return d
}

// fitted are the regressors of the fixture, fitted once.
var fitted = sync.OnceValues(func() (map[string]*regress.Regressor, error) {
	all := map[string]*regress.Regressor{}
	for _, target := range schemas.Targets() {
		r, err := regress.FitForest(testContext, dataset(target), regress.ForestOptions{Trees: 50, MaxDepth: 8, Criterion: regress.Absolute, Seed: 1})
		if target != schemas.TargetAccuracy {
			r, err = regress.FitLaw(testContext, dataset(target), regress.LawOptions{Transform: regress.Log, Seed: 1})
		}
		if err != nil {
			return nil, err
		}
		all[target] = r
	}
	return all, nil
})

func regressors(t testing.TB) advisor.Regressors {
	t.Helper()
	all, err := fitted()
	if err != nil {
		t.Fatal(err)
	}
	use := func(target string) *advisor.Regressor {
		p, err := regress.Compile(all[target])
		if err != nil {
			t.Fatal(err)
		}
		r, err := advisor.NewRegressor(p, "digest-of-"+target)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	return advisor.Regressors{EpochTime: use(schemas.TargetEpochTime), Startup: use(schemas.TargetStartup), Accuracy: use(schemas.TargetAccuracy)}
}
