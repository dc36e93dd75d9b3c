package evidence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
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

// The closed form of leave-one-out errors equals the prediction of a process without the point.
func TestProcess_LeaveOneOutIsAFitWithoutThePoint(t *testing.T) {
	const n = 12
	o := fixture(n)
	g, ok := newGaussianProcess(fixtureParameters, o)
	if !ok {
		t.Fatal("not positive definite")
	}
	var inverse mat.SymDense
	if err := g.factors.InverseTo(&inverse); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		other, ok := newGaussianProcess(fixtureParameters, o.without(i))
		if !ok {
			t.Fatal("not positive definite")
		}
		other.inflation = 1
		mean, variance := other.predict(&o.points[i], -1)
		off, spread := g.weights.AtVec(i)/inverse.At(i, i), 1/inverse.At(i, i)
		if math.Abs(o.y[i]-mean-off) > 1e-8 || math.Abs(variance+o.noise[i]-spread) > 1e-8 {
			t.Errorf("point %d: error %g, variance %g, by a fit without it %g, %g",
				i, off, spread, o.y[i]-mean, variance+o.noise[i])
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
		mean, variance := g.predict(&o.points[3], 3)
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
	fewer, ok := condition(fixtureParameters, before, before.kernels(&fixtureParameters))
	more, okMore := condition(fixtureParameters, all, all.kernels(&fixtureParameters))
	if !ok || !okMore {
		t.Fatal("not positive definite")
	}
	mean, variance := fewer.predict(&all.points[n-1], -1)
	off := all.y[n-1] - mean
	variance += all.noise[n-1]
	got, want := more.logLikelihood-fewer.logLikelihood, -off*off/variance/2-math.Log(variance)/2
	if math.Abs(got-want) > 1e-8*math.Abs(want) {
		t.Errorf("log likelihood rises by %g, want %g", got, want)
	}
}
