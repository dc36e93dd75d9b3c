package fit_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"courier/policy/speed"
)

// withBatches returns a job by the true model that may change its batch size.
func withBatches(s speed.Shape, batches ...speed.Batch) training {
	known := *truth
	known.Facts.Batches = batches
	j := job("a", s)
	j.Facts, j.Model = known.Facts, known.Speeds(largest)
	return j
}

// compact is the fastest shape with its cores, so that only a batch size can speed it up.
var compact, _ = speeds.Fastest(12)

func TestPlan_PaysForALargerBatch(t *testing.T) {
	tests := map[string]struct {
		batches []speed.Batch
		memory  float64 // ratio
		want    int     // samples
	}{
		"a free one":              {[]speed.Batch{{Samples: 128, WorkRatio: 1}}, 0, 128},
		"a cheap one":             {[]speed.Batch{{Samples: 128, WorkRatio: 1.05}}, 0, 128},
		"one that costs the gain": {[]speed.Batch{{Samples: 128, WorkRatio: 2}}, 0, 0},
		"the better of two": {[]speed.Batch{
			{Samples: 128, WorkRatio: 1.05},
			{Samples: 256, WorkRatio: 3},
		}, 0, 128},
		"one with enough memory":        {[]speed.Batch{{Samples: 128, WorkRatio: 1}}, 0.4, 128},
		"one with too little memory":    {[]speed.Batch{{Samples: 128, WorkRatio: 1}}, 0.5, 0},
		"a smaller one that saves work": {[]speed.Batch{{Samples: 32, WorkRatio: 0.4}}, 0.8, 32},
		"an invalid one": {[]speed.Batch{
			{Samples: 128, WorkRatio: 0},
			{Samples: -64, WorkRatio: 1},
			{Samples: 192, WorkRatio: math.NaN()},
		}, 0, 0},
	}
	for name, test := range tests {
		j := withBatches(compact, test.batches...)
		for i := range j.Window {
			j.Window[i].MemoryRatio = test.memory
		}
		v := &clusterView{Jobs: []training{j}}
		moves, _ := planAt(v, now, largest)
		got := 0
		if len(moves) > 0 {
			got = moves[0].To.Samples
		}
		if got != test.want {
			t.Errorf("%s: moves %+v, want %d samples", name, moves, test.want)
		}
	}
}

// A batch size changes without a pause: a job that ends soon still gains from it.
func TestPlan_ChangesOnlyTheBatchOfAJobThatEndsSoon(t *testing.T) {
	j := withBatches(wasteful, speed.Batch{Samples: 128, WorkRatio: 1})
	j.RemainingSamples /= 100
	v := &clusterView{FreeCores: 100, Jobs: []training{j}}
	want := wasteful
	want.Samples = 128
	if moves, _ := planAt(v, now, largest); len(moves) != 1 || moves[0].To != want {
		t.Errorf("moves %+v, want one to %+v", moves, want)
	}
}

// A trusted model chooses the batch size and the other numbers together.
func TestFastest_IsThatOfAllBatches(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 1))
	changed := 0
	for range 20 {
		known := *randomTruth(random)
		known.Facts.Batches = randomBatches(random)
		cores := 2 + random.IntN(60)
		got, _ := known.Speeds(largest).Fastest(cores)
		highest := known.Facts.Speed(got, known.StepSeconds(got))
		for _, b := range append(slices.Clone(known.Facts.Batches), speed.Batch{Samples: 64, WorkRatio: 1}) {
			one := known
			one.Facts.Batches = nil
			one.Facts.SamplesPerWorker = float64(b.Samples)
			s, _ := one.Speeds(largest).Fastest(cores)
			rate := one.Facts.Speed(s, one.StepSeconds(s)) / b.WorkRatio
			if rate > highest*(1+1e-6) {
				t.Errorf("%+v with %+v is faster than %+v", s, b, got)
			}
		}
		if got.Samples != 0 {
			changed++
		}
	}
	moreThan(t, 5, changed)
}

// Batch sizes that cost more than they can gain leave the plan as it is without them.
func TestPlan_IgnoresBatchesThatCostTooMuch(t *testing.T) {
	moved := 0
	eachRandomView(200, func(v *clusterView) {
		want, _ := planAt(v, now, largest)
		for i := range v.Jobs {
			v.Jobs[i].Facts.Batches = []speed.Batch{{Samples: 16, WorkRatio: 1e3}, {Samples: 256, WorkRatio: 1e3}}
		}
		got, _ := planAt(v, now, largest)
		if !slices.Equal(got, want) {
			t.Errorf("moves %+v, want %+v", got, want)
		}
		moved += len(got)
	})
	moreThan(t, 100, moved)
}

// A learned model that has seen one batch size predicts another one: only the computation grows with
// it.
func TestLearn_PredictsAnotherBatch(t *testing.T) {
	known := *truth
	known.Facts.Batches = []speed.Batch{{Samples: 128, WorkRatio: 1.2}}
	shapes := []speed.Shape{
		{Workers: 4, WorkerCores: 4, Servers: 2, ServerCores: 2},
		{Workers: 4, WorkerCores: 3, Servers: 2, ServerCores: 2},
		{Workers: 5, WorkerCores: 4, Servers: 2, ServerCores: 1},
		{Workers: 3, WorkerCores: 6, Servers: 3, ServerCores: 1},
		{Workers: 6, WorkerCores: 2, Servers: 1, ServerCores: 2},
	}
	to := shapes[0]
	to.Samples = 128
	want := math.Log(known.Facts.Speed(to, known.StepSeconds(to)) /
		known.Facts.Speed(shapes[0], known.StepSeconds(shapes[0])))
	before := math.Inf(1)
	for _, seen := range [][]speed.Shape{shapes, append(shapes, to)} {
		m := speed.Learn(known.Facts, measured(seen...), nil, largest)
		got, standardError := m.Gain(shapes[0], to)
		if math.Abs(got-want) > standardError || !(standardError < before) {
			t.Errorf("gain %.3f with a standard error of %.3f, want %.3f and less than %.3f",
				got, standardError, want, before)
		}
		before = standardError
	}
}

// randomBatches returns batch sizes whose price follows a random gradient noise scale (McCandlish et
// al., An Empirical Model of Large-Batch Training, 2018, equation 2.11).
func randomBatches(random *rand.Rand) (batches []speed.Batch) {
	scale := 32 * math.Pow(64, random.Float64())
	for _, b := range []int{16, 32, 128, 256} {
		batches = append(batches, speed.Batch{Samples: b, WorkRatio: (1 + float64(b)/scale) / (1 + 64/scale)})
	}
	return batches
}
