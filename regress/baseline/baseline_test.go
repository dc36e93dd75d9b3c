package baseline_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"courier/regress/baseline"
)

type fitFunction func(train *baseline.Dataset) (baseline.Predict, error)

func forest(o baseline.ForestOptions) fitFunction {
	return func(train *baseline.Dataset) (baseline.Predict, error) {
		return baseline.Forest(context.Background(), train, o)
	}
}

var fits = map[string]fitFunction{
	"linear": baseline.Linear, "queueing law": baseline.Queueing,
	"forest": forest(baseline.ForestOptions{Trees: 20, MaxDepth: 6}),
}

// measured returns runs of two networks whose time is a function of the features.
func measured(seconds func(batch, cpu, jobs, network float64) float64) *baseline.Dataset {
	d := &baseline.Dataset{Features: []baseline.Feature{
		{Name: "batch_size"}, {Name: "cpus"}, {Name: "concurrent_jobs"},
		{Name: "network", Levels: []string{"lenet5", "simplenet"}},
	}}
	for _, batch := range []float64{64, 128, 256, 512} {
		for _, cpu := range []float64{1, 2, 4} {
			for _, jobs := range []float64{1, 2} {
				for _, network := range []float64{0, 1} {
					d.Rows = append(d.Rows, []float64{batch, cpu, jobs, network})
					d.Target = append(d.Target, seconds(batch, cpu, jobs, network))
				}
			}
		}
	}
	return d
}

func TestLinear_FitsAllInteractions(t *testing.T) {
	seconds := func(batch, cpu, jobs, network float64) float64 {
		return 3 + 0.01*batch - cpu*jobs + 0.002*batch*cpu*(1-network) + 5*network
	}
	predict, err := baseline.Linear(measured(seconds))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]float64{{64, 1, 1, 0}, {100, 3, 2, 1}, {1024, 2, 3, 0}} {
		if got, want := predict(row), seconds(row[0], row[1], row[2], row[3]); math.Abs(got-want) > 1e-4 {
			t.Errorf("predict(%g) = %g, want %g", row, got, want)
		}
	}
}

// Ten runs do not determine sixteen coefficients: the model has none for interactions.
func TestLinear_LeavesInteractionsOutOfFewRuns(t *testing.T) {
	d := measured(func(batch, cpu, jobs, network float64) float64 { return 3 + 2*cpu + 5*network })
	predict, err := baseline.Linear(d.Subset([]int{0, 5, 10, 15, 20, 25, 30, 35, 40, 47}))
	if err != nil {
		t.Fatal(err)
	}
	if got := predict([]float64{256, 8, 2, 1}); math.Abs(got-24) > 1e-4 {
		t.Errorf("predict = %g, want 24", got)
	}
}

func TestQueueing_FitsItsOwnLaw(t *testing.T) {
	seconds := func(batch, cpu, jobs, _ float64) float64 {
		rate := 60 - 0.02*batch + 3*cpu*jobs
		return 600_000 / batch * (0.045 + 1/(rate-max(1, cpu*jobs/3)/0.045))
	}
	predict, err := baseline.Queueing(measured(seconds))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range [][]float64{{64, 1, 1, 0}, {100, 3, 1, 0}, {512, 4, 2, 1}} {
		if got, want := predict(row), seconds(row[0], row[1], row[2], 0); math.Abs(got/want-1) > 1e-6 {
			t.Errorf("predict(%g) = %g, want %g", row, got, want)
		}
	}
}

func TestQueueing_NamesAMissingFeature(t *testing.T) {
	d := measured(func(_, _, _, _ float64) float64 { return 1000 })
	for says, spoil := range map[string]func(){
		"needs a feature batch_size": func() { d.Rows[3] = []float64{0, 1, 1, 0} },
		"needs a feature cpus":       func() { d.Features[1].Name = "cores" },
	} {
		spoil()
		if _, err := baseline.Queueing(d); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Queueing = %v, want %q", err, says)
		}
		d = measured(func(_, _, _, _ float64) float64 { return 1000 })
	}
}

func TestForest_FitsAStep(t *testing.T) {
	d := measured(func(batch, cpu, _, network float64) float64 {
		if batch <= 128 && network == 1 {
			return 100
		}
		return 10 * cpu
	})
	for _, log := range []bool{false, true} {
		predict, err := baseline.Forest(context.Background(), d, baseline.ForestOptions{
			Trees: 200, MaxDepth: 8, Seed: 1, Log: log,
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range d.Rows {
			if got := predict(row); math.Abs(got/d.Target[i]-1) > 0.25 {
				t.Errorf("log %v: predict(%g) = %g, want about %g", log, row, got, d.Target[i])
			}
		}
	}
}

// A forest averages the targets, so no prediction is outside their range.
func TestForest_StaysWithinTheTargets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	d := measured(func(_, _, _, _ float64) float64 { return 5 + random.Float64() })
	predict, err := baseline.Forest(context.Background(), d, baseline.ForestOptions{Trees: 5, MaxDepth: 20})
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		row := []float64{1e4 * random.NormFloat64(), 10 * random.NormFloat64(), random.NormFloat64(), 1}
		if y := predict(row); y < slices.Min(d.Target) || y > slices.Max(d.Target) {
			t.Fatalf("predict(%g) = %g, want %g to %g", row, y, slices.Min(d.Target), slices.Max(d.Target))
		}
	}
}

func TestForest_IsReproducibleAndEndsWithItsContext(t *testing.T) {
	d := measured(func(batch, cpu, _, _ float64) float64 { return batch / cpu })
	first, _ := forest(baseline.ForestOptions{Trees: 30, MaxDepth: 3, Seed: 7})(d)
	second, _ := forest(baseline.ForestOptions{Trees: 30, MaxDepth: 3, Seed: 7})(d)
	other, _ := forest(baseline.ForestOptions{Trees: 30, MaxDepth: 3, Seed: 8})(d)
	differs := false
	for _, row := range d.Rows {
		if first(row) != second(row) {
			t.Errorf("predict(%g) = %g and %g with one seed", row, first(row), second(row))
		}
		differs = differs || first(row) != other(row)
	}
	if !differs {
		t.Error("the seed has no effect")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := baseline.Forest(ctx, d, baseline.ForestOptions{Trees: 3, MaxDepth: 3})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Forest = %v, want context.Canceled", err)
	}
}

func TestFits_RefuseInvalidExamples(t *testing.T) {
	for says, spoil := range map[string]func(d *baseline.Dataset){
		"0 rows":                 func(d *baseline.Dataset) { d.Rows, d.Target = nil, nil },
		"48 rows and 1 targets":  func(d *baseline.Dataset) { d.Target = d.Target[:1] },
		"target of example 3":    func(d *baseline.Dataset) { d.Target[3] = math.NaN() },
		"cpus of example 3":      func(d *baseline.Dataset) { d.Rows[3] = []float64{64, math.Inf(1), 1, 0} },
		"network of example 3":   func(d *baseline.Dataset) { d.Rows[3] = []float64{64, 1, 1, 2} },
		"example 3 has 3 values": func(d *baseline.Dataset) { d.Rows[3] = d.Rows[3][:3] },
	} {
		for name, fit := range fits {
			d := measured(func(batch, _, _, _ float64) float64 { return batch })
			spoil(d)
			if _, err := fit(d); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want an error with %q", name, err, says)
			}
		}
	}
	d := measured(func(batch, _, _, _ float64) float64 { return batch - 64 })
	if _, err := forest(baseline.ForestOptions{Trees: 1, MaxDepth: 1, Log: true})(d); err == nil {
		t.Error("the logarithm of 0 is no error")
	}
	if _, err := forest(baseline.ForestOptions{Trees: 1})(d); err == nil {
		t.Error("a depth of 0 is no error")
	}
}

// recovered reads the usable runs of the paper's study, 77 of 72 configurations. The test is
// skipped where the data is absent.
func recovered(t *testing.T) *baseline.Dataset {
	t.Helper()
	const path = "../../../shared/data/courier-paper/measured_runs.csv"
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the recovered runs are absent: %s", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	networks := []string{"lenet5", "simplenet"}
	d := &baseline.Dataset{Features: []baseline.Feature{
		{Name: "batch_size"}, {Name: "cpus"}, {Name: "concurrent_jobs"}, {Name: "processes"},
		{Name: "network", Levels: networks},
	}}
	for _, row := range rows[1:] {
		cell := func(name string) string { return row[slices.Index(rows[0], name)] }
		if cell("campaign") != "fullfact" || cell("time_suspect") != "0" || cell("time_s") == "" {
			continue
		}
		var own []float64
		for _, name := range []string{"batch", "cpu", "njobs", "processes"} {
			x, err := strconv.ParseFloat(cell(name), 64)
			if err != nil {
				t.Fatal(err)
			}
			own = append(own, x)
		}
		seconds, err := strconv.ParseFloat(cell("time_s"), 64)
		if err != nil {
			t.Fatal(err)
		}
		d.Rows = append(d.Rows, append(own, float64(slices.Index(networks, cell("network")))))
		d.Target = append(d.Target, seconds)
	}
	return d
}

// The baselines on the recovered runs of the study, with five folds of whole configurations: medians
// of 20 shuffles. scikit-learn's forest of absolute errors has a mean squared error of 1836 to 2058.
func TestFits_OnTheRecoveredRuns(t *testing.T) {
	d := recovered(t)
	groups, seen := make([]int, len(d.Rows)), map[string]int{}
	for i, row := range d.Rows {
		key := fmt.Sprint(row)
		if _, known := seen[key]; !known {
			seen[key] = len(seen)
		}
		groups[i] = seen[key]
	}
	for _, c := range []struct {
		name           string
		fit            fitFunction
		largestMSE     float64
		smallestMedian float64 // R2
	}{
		{"linear", baseline.Linear, 16000, 0.58},
		{"queueing law", baseline.Queueing, 6100, 0.83},
		{"forest", forest(baseline.ForestOptions{Trees: 100, MaxDepth: 6, Log: true}), 2200, 0.94},
	} {
		var mse, r2 []float64
		for shuffle := range uint64(20) {
			deal := rand.New(rand.NewPCG(shuffle, 1)).Perm(len(seen))
			predicted := make([]float64, len(d.Rows))
			for fold := range 5 {
				var train, test []int
				for i, g := range groups {
					if deal[g]%5 == fold {
						test = append(test, i)
					} else {
						train = append(train, i)
					}
				}
				predict, err := c.fit(d.Subset(train))
				if err != nil {
					t.Fatal(err)
				}
				for _, i := range test {
					predicted[i] = predict(d.Rows[i])
				}
			}
			s := baseline.Score(d.Target, predicted, groups, 1)
			if s.Examples != 77 || s.Configurations != 72 {
				t.Fatalf("%d runs of %d configurations, want 77 of 72", s.Examples, s.Configurations)
			}
			mse, r2 = append(mse, s.MSE.Value), append(r2, s.R2.Value)
		}
		slices.Sort(mse)
		slices.Sort(r2)
		medianMSE, medianR2 := (mse[9]+mse[10])/2, (r2[9]+r2[10])/2
		t.Logf("%s: MSE %.0f, R2 %.3f", c.name, medianMSE, medianR2)
		if medianMSE > c.largestMSE || medianR2 < c.smallestMedian {
			t.Errorf("%s: MSE %.0f, R2 %.3f, want at most %.0f and at least %.2f", c.name,
				medianMSE, medianR2, c.largestMSE, c.smallestMedian)
		}
	}
}

func TestScore(t *testing.T) {
	truth, predicted := []float64{10, 20, 40, 10}, []float64{11, 18, 40, 13}
	s := baseline.Score(truth, predicted, []int{0, 1, 2, 0}, 1)
	for name, c := range map[string]struct{ got, want float64 }{
		"MSE":  {s.MSE.Value, 14. / 4},
		"R2":   {s.R2.Value, 1 - 3.5/150},
		"MAPE": {s.MAPE.Value, (0.1 + 0.1 + 0.3) / 4},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%s = %g, want %g", name, c.got, c.want)
		}
	}
	if s.Examples != 4 || s.Configurations != 3 || !(s.MAPE.Low < s.MAPE.Value && s.MAPE.Value < s.MAPE.High) {
		t.Errorf("scores = %+v, want 4 examples, 3 configurations and an interval", s)
	}
	s = baseline.Score([]float64{0, 0}, []float64{1, 2}, nil, 1)
	if !math.IsNaN(s.MAPE.Value) || !math.IsNaN(s.R2.Value) {
		t.Errorf("scores of constant zeros = %+v, want no MAPE and no R2", s)
	}
}

func TestEstimate_WritesNullForUnknownFigures(t *testing.T) {
	want := baseline.Estimate{Value: 2, Low: math.NaN(), High: 3}
	b, err := json.Marshal(want)
	if err != nil || string(b) != `{"value":2,"low":null,"high":3}` {
		t.Errorf("Marshal = %s, %v", b, err)
	}
}
