package evidence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// fixture returns a process of configurations that differ in all features.
func fixture(n int) observations {
	random := rand.New(rand.NewPCG(1, 2))
	o := observations{several: true}
	for i := range n {
		p := point{node: string(rune('a' + i%2))}
		for f := range p.x {
			p.x[f] = 4 * random.Float64()
		}
		o.points = append(o.points, p)
		o.y = append(o.y, 5-p.x[0]+0.1*random.NormFloat64())
		o.noise = append(o.noise, 0.001*(1+random.Float64()))
	}
	return o
}

// without returns all observations except one.
func (o observations) without(i int) observations {
	drop := func(of []float64) []float64 { return slices.Delete(slices.Clone(of), i, i+1) }
	o.points = slices.Delete(slices.Clone(o.points), i, i+1)
	o.y, o.noise = drop(o.y), drop(o.noise)
	return o
}

var fixtureParameters = Hyperparameters{Balance: 64, Amplitude: .25, NodeAmplitude: .12,
	Lengths: [inputs]float64{2, 3, 4, 1, 6, 5}, Effect: .025}

// The closed form of the posterior of a measured configuration is the prediction from all others, combined
// with its own observation by precision.
func TestProcess_PosteriorCombinesTheOthersWithTheOwnRuns(t *testing.T) {
	const n = 12
	o := fixture(n)
	g, ok := newGaussianProcess(fixtureParameters, o)
	if !ok {
		t.Fatal("not positive definite")
	}
	for i := range n {
		other, ok := newGaussianProcess(fixtureParameters, o.without(i))
		if !ok {
			t.Fatal("not positive definite")
		}
		mean, variance := other.predict(&o.points[i])
		want := (mean/variance + o.y[i]/o.noise[i]) / (1/variance + 1/o.noise[i])
		gotMean, gotVariance := g.posterior(i)
		if math.Abs(gotMean-want) > 1e-8 || math.Abs(gotVariance-1/(1/variance+1/o.noise[i])) > 1e-8 {
			t.Errorf("point %d: mean %g, variance %g; want %g, %g",
				i, gotMean, gotVariance, want, 1/(1/variance+1/o.noise[i]))
		}
	}
}

// A configuration that ran often is predicted by its own mean, with little variance.
func TestProcess_ManyRunsOutweighTheLaw(t *testing.T) {
	const n = 12
	o := fixture(n)
	o.y[3] += 0.5
	before := math.Inf(1)
	for _, runs := range []float64{1, 10, 1000} {
		o.noise[3] = 0.01 / runs
		g, ok := newGaussianProcess(fixtureParameters, o)
		if !ok {
			t.Fatal("not positive definite")
		}
		mean, variance := g.posterior(3)
		off := math.Abs(mean - o.y[3])
		if off >= before || variance > o.noise[3]+1e-9 {
			t.Errorf("%g runs: distance from the mean %g, want less than %g; variance %g, want at most %g",
				runs, off, before, variance, o.noise[3])
		}
		before = off
	}
	if before > 0.01 {
		t.Errorf("prediction after 1000 runs is %g from their mean, want at most 0.01", before)
	}
}

// An observation multiplies the likelihood by its probability, given those before it.
func TestProcess_LikelihoodIsThatOfItsPredictions(t *testing.T) {
	const n = 9
	all := fixture(n)
	before := all.without(n - 1)
	fewer, ok := newGaussianProcess(fixtureParameters, before)
	more, okMore := condition(fixtureParameters, all, all.kernels(&fixtureParameters))
	if !ok || !okMore {
		t.Fatal("not positive definite")
	}
	mean, variance := fewer.predict(&all.points[n-1])
	off := all.y[n-1] - mean
	variance += all.noise[n-1]
	got, want := more.logLikelihood-fewer.logLikelihood, -off*off/variance/2-math.Log(variance)/2
	if math.Abs(got-want) > 1e-8*math.Abs(want) {
		t.Errorf("log likelihood rises by %g, want %g", got, want)
	}
}
