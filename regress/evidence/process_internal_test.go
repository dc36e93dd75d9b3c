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
		p := point{node: i % 2}
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

var fixtureParameters = Hyperparameters{Offset: 6, Amplitude: .25, NodeAmplitude: .12,
	Lengths: [inputs]float64{2, 3, 4, 1, 6}, Effect: .025}

// The closed form of leave-one-out errors equals the prediction of a process without the point.
func TestProcess_LeaveOneOutIsAFitWithoutThePoint(t *testing.T) {
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
		other.inflation = 1
		mean, variance := other.predict(&o.points[i], -1, make([]float64, n))
		off, spread := g.weights[i]/g.inverse[i*n+i], 1/g.inverse[i*n+i]
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
		mean, variance := g.predict(&o.points[3], 3, make([]float64, n))
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

func TestLikelihood_IsThatOfTheProcess(t *testing.T) {
	o := fixture(9)
	l := newLikelihood(o)
	got := l.logPosterior(&fixtureParameters) - fixtureParameters.logPrior(l.varies, true)

	g, _ := newGaussianProcess(fixtureParameters, o)
	inverse := mat.NewDense(9, 9, slices.Clone(g.inverse))
	r := make([]float64, 9)
	for i := range r {
		r[i] = o.y[i] - g.prior(&g.laws[i])
	}
	want := math.Log(mat.Det(inverse))/2 - dot(r, g.weights)/2
	if math.Abs(got-want) > 1e-6*math.Abs(want) {
		t.Errorf("log likelihood is %g, want %g", got, want)
	}
}
