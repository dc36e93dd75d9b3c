package evidence_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/regress/evidence"
)

// strange returns runs of a few models with extreme data: single runs and epochs, constant, huge
// and tiny times, missing and impossible numbers, duplicates.
func strange(random *rand.Rand) []evidence.Run {
	var runs []evidence.Run
	pick := func(of ...float64) float64 { return of[random.IntN(len(of))] }
	for range 1 + random.IntN(30) {
		r := evidence.Run{
			ID: pickString(random, "", "a", "b", fmt.Sprint(random.IntN(40))),
			Configuration: evidence.Configuration{
				Model: pickString(random, "m", "n"), Dataset: pickString(random, "", "d"),
				NodeType:  pickString(random, "", "x", "y"),
				BatchSize: int(pick(1, 2, 16, 64, 100, 1<<20, 0, -3)), CPUs: int(pick(1, 1, 2, 64, 0)),
				NodeLoad: evidence.NodeLoad{ConcurrentJobs: pick(0, 1, 1.3, 3, -1, math.NaN()),
					ProcessesPerCore: pick(0, 0.5, 40), ForeignCPURatio: pick(0, 0.07, 1)}},
			Node:           pickString(random, "", "1", "2", "3"),
			StartedAt:      time.Unix(int64(random.IntN(1000)), 0).UTC(),
			StartupSeconds: pick(0, 0, 1e-12, 2, 1e5, -1, math.NaN()),
		}
		base := pick(1e-9, 1, 1, 1000, 1e12)
		noise := pick(0, 0.03, 3)
		for e := range random.IntN(12) {
			seconds := base * math.Exp(noise*random.NormFloat64())
			if random.IntN(10) == 0 {
				seconds = pick(0, -1, math.NaN(), math.Inf(1))
			}
			r.Epochs = append(r.Epochs, evidence.EpochRecord{Number: e + random.IntN(2), Seconds: seconds,
				Count:    random.IntN(4) - 1,
				Accuracy: pick(random.Float64(), 0, 1, 0.5, 2, math.NaN()), HasAccuracy: random.IntN(3) > 0})
		}
		runs = append(runs, r)
	}
	return runs
}

func pickString(random *rand.Rand, of ...string) string { return of[random.IntN(len(of))] }

func fit(t testing.TB, runs []evidence.Run) (*evidence.Regressor, *evidence.Predictor) {
	t.Helper()
	h, err := evidence.Fit(context.Background(), runs, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := evidence.Compile(h)
	if err != nil {
		t.Fatal(err)
	}
	return h, p
}

// asked returns configurations near and far from the measured ones.
func asked(random *rand.Rand, runs []evidence.Run) []evidence.Configuration {
	var all []evidence.Configuration
	for range 6 {
		c := runs[random.IntN(len(runs))].Configuration
		all = append(all, c)
		c.BatchSize = 1 + random.IntN(300)
		all = append(all, c)
		c.CPUs, c.ConcurrentJobs = 1+random.IntN(8), float64(random.IntN(4))
		all = append(all, c)
		c.NodeType = "elsewhere"
		all = append(all, c)
	}
	return all
}

func checkTime(t *testing.T, p *evidence.Predictor, c evidence.Configuration, epochs int) {
	t.Helper()
	d := p.Time(c, epochs)
	if !d.Known() {
		if d.Support != evidence.NeverRun {
			t.Fatalf("%+v: %v without a prediction", c, d.Support)
		}
		return
	}
	median := d.Median()
	if !(median > 0) || math.IsInf(median, 0) || !(d.Scale > 0) || math.IsInf(d.Scale, 0) {
		t.Fatalf("%+v: median %g, scale %g; want both positive and finite", c, median, d.Scale)
	}
	last := 0.0
	for _, f := range []float64{1e-9, 0.5, 0.9, 0.99, 1, 1.01, 1.1, 2, 10, 1e9} {
		probability := d.Probability(median * f)
		if !(probability >= last && probability <= 1) {
			t.Fatalf("%+v: probability = %g at %g times the median, want %g to 1",
				c, probability, f, last)
		}
		if f < 1 && probability > 0.5 || f > 1.001 && probability < 0.5 {
			t.Fatalf("%+v: probability = %g at %g times the median, want 0.5 at the median",
				c, probability, f)
		}
		last = probability
	}
	for _, confidence := range []float64{0.05, 0.5, 0.9, 0.95, 0.99, 0.9999} {
		bound := d.Quantile(confidence)
		if !(bound > 0) || math.IsInf(bound, 0) {
			continue
		}
		if got := d.Probability(bound); math.Abs(got-confidence) > 1e-6 {
			t.Fatalf("%+v: probability of the bound for %g = %g, want the confidence",
				c, confidence, got)
		}
	}
}

func checkAccuracy(t *testing.T, p *evidence.Predictor, c evidence.Configuration) {
	t.Helper()
	for _, epochs := range []int{1, 2, 3, 5, 10, 100, 1 << 40} {
		a := p.Accuracy(c, epochs)
		if a.Known && !(a.Mean >= 0 && a.Mean <= 1 && a.Highest <= 1) {
			t.Fatalf("%+v: accuracy after %d epochs = %+v, want one from 0 to 1", c, epochs, a)
		}
		if low, high := a.Interval(0.9); a.Known && !(0 <= low && low <= a.Mean && a.Mean <= high && high <= 1) {
			t.Fatalf("%+v: accuracy %g with the interval %g to %g", c, a.Mean, low, high)
		}
		for target := 0.0; target <= 1; target += 0.05 {
			passage := p.Passage(c, target)
			if reaches := p.Reaches(c, target, epochs); !(reaches >= 0 && reaches <= 1) ||
				passage.By(epochs) < passage.By(epochs-1) {
				t.Fatalf("%+v: P(%g after %d epochs) = %g", c, target, epochs, reaches)
			}
		}
	}
}

func TestPredictions_AreConsistentWhateverRan(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		runs := strange(random)
		h, p := fit(t, runs)
		b, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		var again evidence.Regressor
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		q, err := evidence.Compile(&again)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range asked(random, runs) {
			for _, epochs := range []int{1, 7, 1000} {
				checkTime(t, p, c, epochs)
				if got, want := q.Time(c, epochs), p.Time(c, epochs); got != want {
					t.Fatalf("%+v: %+v after JSON, want %+v", c, got, want)
				}
				got, want := q.Accuracy(c, epochs), p.Accuracy(c, epochs)
				if got.Known != want.Known || got.Mean != want.Mean {
					t.Fatalf("%+v: %+v after JSON, want %+v", c, got, want)
				}
			}
			checkAccuracy(t, p, c)
		}
	}
}

// Within the time in which some epochs probably end, more of them are no more probable, whatever ran.
func TestTime_FallsWithTheEpochs(t *testing.T) {
	const rounding = 1e-3
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 8))
		runs := elsewhere(random, 2, 3, noise{.03, .03, 0})
		for i := range 1 + random.IntN(5) {
			n := 1 + random.IntN(30)
			shape := []shapeOf{flat(n), growing(n)}[random.IntN(2)](random)
			r := noisy(random, "m", fmt.Sprint(i), shape, noise{.05 * random.Float64(), .05 * random.Float64(), 0})
			r.StartupSeconds = 20 * math.Exp(.3*random.NormFloat64())
			runs = append(runs, r)
		}
		p, c := fitted(t, runs), configurationOf("m", 32, "x")
		for few, more := 1, 2; more < 3000; few, more = more, more+1+more/8 {
			for _, level := range []float64{0.5, 0.8, 0.95} {
				limit := p.Time(c, few)
				if got := p.Time(c, more).Probability(limit.Quantile(level)); got > level+rounding {
					t.Errorf("seed %d: %d epochs end in time with probability %g, but %d with %g",
						seed, few, level, more, got)
				}
			}
		}
	}
}

func TestFit_DoesNotDependOnTheOrderOfRuns(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 6))
		runs := strange(random)
		for i := range runs {
			runs[i].ID = fmt.Sprint(i)
		}
		h, _ := fit(t, runs)
		random.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		g, _ := fit(t, runs)
		a, _ := json.Marshal(h)
		b, _ := json.Marshal(g)
		if string(a) != string(b) {
			t.Fatalf("seed %d: another order of runs gives another fit", seed)
		}
	}
}
