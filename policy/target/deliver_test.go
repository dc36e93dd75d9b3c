package target_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"courier/policy/target"
)

var (
	delivered = target.Job{Accuracy: 0.9, FirstTarget: 0.8}
	exact     = target.Job{Accuracy: 0.8, FirstTarget: 0.8}
	learning  = target.Job{Accuracy: 0.5, FirstTarget: 0.8}
	unknown   = target.Job{Accuracy: math.NaN(), FirstTarget: 0.8}
	plain     = target.Job{Accuracy: 0.5}
)

func TestDeliver_GivesDeliveredJobsWhatIsLeft(t *testing.T) {
	for _, test := range []struct {
		name  string
		jobs  []target.Job
		floor float64
		want  []float64
	}{
		{"no job", nil, 0, []float64{}},
		{"one job", []target.Job{learning}, 0, []float64{1}},
		{"none is delivered", []target.Job{learning, learning}, 0, []float64{0.5, 0.5}},
		{"all are delivered", []target.Job{delivered, exact}, 0, []float64{0.5, 0.5}},
		{"one of two", []target.Job{delivered, learning}, 0, []float64{0.25, 0.75}},
		{"a target that is just reached", []target.Job{exact, learning}, 0, []float64{0.25, 0.75}},
		{"a job without a target", []target.Job{plain, learning}, 0, []float64{0.25, 0.75}},
		{"an unknown accuracy", []target.Job{delivered, unknown}, 0, []float64{0.25, 0.75}},
		{"another floor", []target.Job{delivered, learning}, 5, []float64{0.1, 0.9}},
		{"the floor is bounded", []target.Job{delivered, learning}, 100, []float64{0.0625, 0.9375}},
		{"a floor that is not a number", []target.Job{delivered, learning}, math.NaN(), []float64{0.25, 0.75}},
		{
			"one of four", []target.Job{learning, delivered, learning, learning}, 2,
			[]float64{7. / 24, 1. / 8, 7. / 24, 7. / 24},
		},
	} {
		got := target.Deliver(test.jobs, target.Options{Floor: test.floor})
		if !slices.EqualFunc(got, test.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
			t.Errorf("%s: shares %v, want %v", test.name, got, test.want)
		}
	}
}

// randomJobs returns jobs with random accuracies; some are not numbers.
func randomJobs(random *rand.Rand) []target.Job {
	jobs := make([]target.Job, 1+random.IntN(20))
	for i := range jobs {
		jobs[i] = target.Job{Accuracy: random.Float64(), FirstTarget: random.Float64()}
		if random.IntN(20) == 0 {
			jobs[i].Accuracy = []float64{math.NaN(), math.Inf(1), -1}[random.IntN(3)]
		}
	}
	return jobs
}

// The shares sum to 1 and keep the floor, no delivered job gets more than another, and the order of the
// jobs does not matter. A delivery changes some share by at least 20 % of itself.
func TestDeliver_KeepsTheRulesOnRandomJobs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		jobs := randomJobs(random)
		before := slices.Clone(jobs)
		o := target.Options{Floor: 10 * random.Float64()}
		shares := target.Deliver(jobs, o)
		beta := min(max(o.Floor, 1.1), 8)
		sum := 0.0
		for i, share := range shares {
			sum += share
			if share < 1/(beta*float64(len(jobs)))-1e-12 {
				t.Fatalf("share %g of %d jobs with beta %g", share, len(jobs), beta)
			}
			for k := range shares {
				if jobs[i].Accuracy >= jobs[i].FirstTarget && share > shares[k]+1e-12 {
					t.Fatalf("a delivered job has %g, another %g", share, shares[k])
				}
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("shares sum to %g", sum)
		}

		slices.Reverse(jobs)
		reversed := target.Deliver(jobs, o)
		slices.Reverse(reversed)
		if !reflect.DeepEqual(shares, reversed) {
			t.Fatalf("shares %v, in reverse order %v", shares, reversed)
		}
		slices.Reverse(jobs)
		for i := range jobs {
			if jobs[i].FirstTarget != before[i].FirstTarget {
				t.Fatal("the jobs were modified")
			}
		}

		i := random.IntN(len(jobs))
		if len(jobs) == 1 || jobs[i].Accuracy >= jobs[i].FirstTarget {
			continue
		}
		old := target.Deliver(jobs, target.Options{})
		jobs[i].Accuracy = 1
		isLarge := false
		for k, share := range target.Deliver(jobs, target.Options{}) {
			isLarge = isLarge || math.Abs(share-old[k]) >= 0.2*old[k]
		}
		if !isLarge {
			t.Fatalf("a delivery among %d jobs changes no share by 20 %%", len(jobs))
		}
	}
}

// BenchmarkDeliver divides a node among 1,000 jobs.
func BenchmarkDeliver(b *testing.B) {
	jobs := make([]target.Job, 1000)
	for i := range jobs {
		jobs[i] = target.Job{Accuracy: float64(i) / 1000, FirstTarget: 0.8}
	}
	for b.Loop() {
		target.Deliver(jobs, target.Options{})
	}
}
