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

// trueSeconds returns the seconds of an epoch in the fixture.
func trueSeconds(batch, cpus, jobs float64) float64 { return (1 + 8/batch) * jobs / cpus }

const trueStartup = 0.1

// trueAccuracy returns the true accuracy of the fixture after some epochs.
func trueAccuracy(batch, epochs float64) float64 {
	return 0.98 - 0.01*math.Log2(batch/4) - 0.3*math.Exp(-epochs/3)
}

// dataset returns examples of a target over a full factorial design on each node, with three
// replications that differ by one percent. Without nodes the examples have no hardware.
func dataset(target string, nodes ...schemas.Hardware) *regress.Dataset {
	if len(nodes) == 0 {
		nodes = []schemas.Hardware{{}}
	}
	encoder := schemas.NewEncoder(target, []string{model}, nodes)
	d := &regress.Dataset{TargetName: target}
	for _, c := range encoder.Columns() {
		d.Features = append(d.Features, regress.Feature{
			Name:       c.String(),
			Continuous: c.Continuous(),
			Alone:      c.DescribesNode(),
			Levels:     encoder.Levels(c),
		})
		d.Columns = append(d.Columns, nil)
	}
	group := 0
	for _, h := range nodes {
		group = fillOn(d, encoder, target, h, group)
	}
	return d
}

// fillOn adds the examples of a node. Their groups are numbered from group.
func fillOn(
	d *regress.Dataset, encoder *schemas.Encoder, target string, h schemas.Hardware, group int,
) int {
	row := make([]float64, len(d.Columns))
	node, slower := encoder.Node(h), 1.0
	if h.Speed > 0 {
		slower = 1e9 / h.Speed
	}
	for _, batch := range []uint32{4, 16, 64} {
		for _, cpus := range []uint32{1, 2} {
			for _, jobs := range []float64{1, 2} {
				for epochs := uint32(1); epochs <= 10; epochs++ {
					for k := range 3 {
						f := schemas.Features{
							BatchSize:  batch,
							CPUs:       cpus,
							EpochsDone: epochs,
							Node:       node,
							Load: schemas.Load{
								ConcurrentJobs: jobs,
								Processes:      jobs * float64(cpus),
							},
						}
						encoder.Fill(row, &f)
						for i := range row {
							d.Columns[i] = append(d.Columns[i], row[i])
						}
						value := slower * trueSeconds(float64(batch), float64(cpus), jobs) * (1 +
							0.01*float64(
								k-1,
							))
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
	return group
}

// fitted fits the regressors of the fixture once.
var fitted = sync.OnceValues(func() (map[string]*regress.Regressor, error) { return fit() })

// small and large are different nodes; the regressors were fitted on both.
var (
	small, large = schemas.Hardware{Cores: 2, CPUModel: "x", Speed: 1e9}, schemas.Hardware{
		Cores:    16,
		CPUModel: "y",
		Speed:    5e8,
	}

	fittedOnOne = sync.OnceValues(func() (map[string]*regress.Regressor, error) {
		return fit(small)
	})
	fittedOnBoth = sync.OnceValues(func() (map[string]*regress.Regressor, error) {
		return fit(small, large)
	})
)

func fit(nodes ...schemas.Hardware) (map[string]*regress.Regressor, error) {
	all := map[string]*regress.Regressor{}
	for _, target := range schemas.Targets() {
		d := dataset(target, nodes...)
		r, err := regress.FitForest(testContext, d, regress.ForestOptions{
			Trees:     50,
			MaxDepth:  8,
			Criterion: regress.Absolute,
			Seed:      1,
		})
		if target != schemas.TargetAccuracy {
			r, err = regress.FitLaw(testContext, d, regress.LawOptions{
				Transform: regress.Log,
				Seed:      1,
			})
		}
		if err != nil {
			return nil, err
		}
		all[target] = r
	}
	return all, nil
}

func regressors(t testing.TB) advisor.Regressors {
	t.Helper()
	return compileFitted(t, fitted)
}

// compileFitted compiles fitted regressors.
func compileFitted(t testing.TB, fitted func() (map[string]*regress.Regressor, error)) advisor.Regressors {
	t.Helper()
	all, err := fitted()
	if err != nil {
		t.Fatal(err)
	}
	use := func(target string) *advisor.LoadedRegressor {
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
	return advisor.Regressors{
		EpochTime: use(schemas.TargetEpochTime),
		Startup:   use(schemas.TargetStartup),
		Accuracy:  use(schemas.TargetAccuracy),
	}
}
