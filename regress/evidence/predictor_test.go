package evidence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"courier/regress/evidence"
)

// runsOf returns runs of one configuration with the given seconds per epoch.
func runsOf(c evidence.Configuration, seconds ...float64) []evidence.Run {
	var runs []evidence.Run
	for i, s := range seconds {
		runs = append(runs, evidence.Run{ID: fmt.Sprint(c, i), Configuration: c,
			Epochs: []evidence.EpochRecord{{Number: 1, Seconds: s}, {Number: 2, Seconds: s}}})
	}
	return runs
}

func TestTime_SupportIsTheModelsOwn(t *testing.T) {
	var runs []evidence.Run
	for _, b := range []int{16, 32, 128, 2048} {
		runs = append(runs, runsOf(configurationOf("a", b, "x"), 1000/float64(b), 1020/float64(b))...)
	}
	runs = append(runs, runsOf(configurationOf("b", 64, "x"), 1)...)
	runs = append(runs, runsOf(configurationOf("b", 64, "y"), 1)...)
	_, p := fit(t, runs)
	for _, test := range []struct {
		model string
		batch int
		cpus  int
		node  string
		want  evidence.Support
	}{
		{"a", 32, 1, "x", evidence.Measured},
		{"a", 64, 1, "x", evidence.Interpolated},
		{"a", 100, 1, "x", evidence.Interpolated},
		{"a", 512, 1, "x", evidence.Extrapolated},  // four octaves between 128 and 2048
		{"a", 8, 1, "x", evidence.Extrapolated},    // below all
		{"a", 4096, 1, "x", evidence.Extrapolated}, // above all
		{"a", 32, 2, "x", evidence.Extrapolated},   // never ran with two CPUs
		{"a", 64, 1, "y", evidence.NeverRun},       // only b ran there
		{"b", 32, 1, "x", evidence.Extrapolated},   // only a ran with 32
		{"c", 64, 1, "x", evidence.NeverRun},
	} {
		c := configurationOf(test.model, test.batch, test.node)
		c.CPUs = test.cpus
		got := p.Time(c, 3)
		if got.Support != test.want || got.Known() == (test.want == evidence.NeverRun) {
			t.Errorf("%+v: %v, median %g, want %v", test, got.Support, got.Median(), test.want)
		}
		promisable := test.want == evidence.Measured || test.want == evidence.Interpolated
		if got.Support.Promisable() != promisable {
			t.Errorf("%+v: Promisable = %v, want %v", test, !promisable, promisable)
		}
	}
	counts := p.Time(configurationOf("a", 32, "x"), 3).Counts
	if want := (evidence.RunCounts{Configuration: 2, NodeType: 8, Model: 8}); counts != want {
		t.Errorf("counts are %+v, want %+v", counts, want)
	}
}

// Datasets are separate subjects.
func TestTime_AnotherDatasetIsNoEvidence(t *testing.T) {
	c := configurationOf("a", 32, "x")
	c.Dataset = "small"
	_, p := fit(t, runsOf(c, 1, 1))
	c.Dataset = "large"
	if got := p.Time(c, 1); got.Known() {
		t.Errorf("prediction for another dataset = %+v, want an unknown one", got)
	}
}

func TestTime_IsTheMeanOfManyRuns(t *testing.T) {
	c := configurationOf("a", 32, "x")
	var seconds []float64
	for i := range 40 {
		seconds = append(seconds, 100*math.Exp(0.02*math.Sin(float64(i))))
	}
	_, p := fit(t, runsOf(c, seconds...))
	got := p.Time(c, 2)
	if off := got.Median()/200 - 1; math.Abs(off) > 0.005 {
		t.Errorf("median is %g, want about 200", got.Median())
	}
	if bound := got.Quantile(0.95) / got.Median(); bound > 1.06 {
		t.Errorf("bound after 40 similar runs = %g times the median, want at most 1.06", bound)
	}
}

// growingRun returns a run whose epochs take 2, 3, 4, ... times the seconds.
func growingRun(id string, c evidence.Configuration, epochs int, seconds float64) evidence.Run {
	r := evidence.Run{ID: id, Configuration: c}
	for n := 1; n <= epochs; n++ {
		r.Epochs = append(r.Epochs, evidence.EpochRecord{Number: n, Seconds: (1 + float64(n)) * seconds})
	}
	return r
}

// A configuration whose runs are all short, such as a load under which a job runs for the first time, continues
// as longer runs of the model do. A node on which a job runs for the first time is no slower or faster for that.
func TestTime_AShortRunContinuesAsLongerOnes(t *testing.T) {
	long, short := configurationOf("a", 32, "x"), configurationOf("a", 64, "x")
	var runs []evidence.Run
	for _, id := range []string{"1", "2", "3"} {
		runs = append(runs, growingRun(id, long, 12, 1))
		runs[len(runs)-1].Node = "first"
	}
	for _, epochs := range []int{1, 2, 4, 11} {
		half, other := growingRun("half", short, epochs, 0.5), growingRun("other", long, epochs, 1)
		other.Node = "other"
		_, p := fit(t, append(slices.Clone(runs), half, other))
		for c, want := range map[evidence.Configuration]float64{short: 45, long: 90} {
			if got := p.Time(c, 12).Median(); math.Abs(got/want-1) > 0.01 {
				t.Errorf("beside runs of %d epochs, 12 with batch size %d take %.1f s, want %g", epochs, c.BatchSize,
					got, want)
			}
		}
		if got := p.NodeType("other", "x"); got != "x" {
			t.Errorf("after %d epochs, a second node has the type %q, want that of the first", epochs, got)
		}
	}
}

// Start-up is learned from the first run of a model on a node type, wide at first.
func TestTime_StartupIsLearnedFromTheFirstRun(t *testing.T) {
	c := configurationOf("a", 32, "x")
	runs := runsOf(c, 0.1, 0.1, 0.1, 0.1)
	_, p := fit(t, runs)
	if got := p.Time(c, 8); p.Startup(c).Known() || math.Abs(got.Median()-0.8) > 0.01 {
		t.Fatalf("start-up %+v of %g s, want none of 0.8 s", p.Startup(c), got.Median())
	}
	width := func(n int) float64 {
		for i := range n {
			runs[i].StartupSeconds = 3
		}
		_, p := fit(t, runs)
		got, startup := p.Time(c, 8), p.Startup(c).Median()
		if math.Abs(startup-3) > 1e-9 || math.Abs(got.Median()-3.8) > 0.05 {
			t.Fatalf("%d runs: start-up %g s, total %g s, want 3 and 3.8 s", n, startup, got.Median())
		}
		return got.Quantile(0.95) / got.Median()
	}
	first, fourth := width(1), width(4)
	if first < 1.4 || first > 1.6 || fourth >= first {
		t.Errorf("bound / median = %g after one start-up and %g after four, want 1.4 to 1.6, then less",
			first, fourth)
	}
	elsewhere := configurationOf("a", 32, "y")
	_, p = fit(t, append(runs, runsOf(elsewhere, 0.1)...))
	if got := p.Startup(elsewhere).Median(); math.Abs(got-3) > 1e-9 {
		t.Errorf("start-up on another node type is %g s, want that of the model, 3 s", got)
	}
}

// synthetic returns runs of n configurations of one model.
func synthetic(n int) []evidence.Run {
	random := rand.New(rand.NewPCG(1, 1))
	var runs []evidence.Run
	for i := range n {
		c := configurationOf("a", 8<<(i%8), "x")
		c.CPUs = 1 << (i / 8 % 5)
		c.ConcurrentJobs = float64(1 + i/40)
		seconds := 1000/float64(c.BatchSize) + 5/math.Sqrt(float64(c.CPUs)) + c.ConcurrentJobs
		for k := range 2 {
			r := curveOf(fmt.Sprint(i, k), c.BatchSize, 12, 1)
			r.Configuration = c
			for e, s := range draw(random, seconds, 12) {
				r.Epochs[e].Seconds = s
			}
			runs = append(runs, r)
		}
	}
	return runs
}

// Predictions do not depend on the number of requested loads, nor on concurrent requests.
func TestTime_AnswersDoNotDependOnWhatWasAskedBefore(t *testing.T) {
	h, asked := fit(t, synthetic(20))
	c := synthetic(1)[0].Configuration
	c.BatchSize = 50
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 400 {
				of := c
				of.ConcurrentJobs = 2 + float64((i+100*worker)%400)/4
				asked.Time(of, 3)
			}
		})
	}
	group.Wait()
	for i := range 400 {
		fresh, err := evidence.Compile(h)
		if err != nil {
			t.Fatal(err)
		}
		c.ConcurrentJobs = 2 + float64(i)/4
		if got, want := asked.Time(c, 3), fresh.Time(c, 3); got != want {
			t.Fatalf("%g jobs: %+v, by a fresh predictor %+v", c.ConcurrentJobs, got, want)
		}
	}
}

func TestCompile_RefusesAnotherFormat(t *testing.T) {
	h, _ := fit(t, runsOf(configurationOf("a", 32, "x"), 1, 1.1))
	h.Format = 1
	if _, err := evidence.Compile(h); err == nil {
		t.Error("a regressor of format 1 is compiled")
	}
}
