package evidence

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

func TestStudent_IsTheDistribution(t *testing.T) {
	for _, degrees := range []float64{1, 2, 4, 8, 35, 128} {
		s, exact := studentOf(degrees), distuv.StudentsT{Sigma: 1, Nu: degrees}
		for z := -60.0; z <= 60; z += 0.0137 {
			if got, want := s.below(z), exact.CDF(z); math.Abs(got-want) > 1e-5 {
				t.Fatalf("%g degrees: P(z <= %g) is %g, want %g", degrees, z, got, want)
			}
		}
		for _, p := range []float64{1e-6, 0.01, 0.3, 0.5, 0.9, 0.95, 0.99, 0.9999, 1 - 1e-9} {
			if got := s.below(s.quantile(p)); math.Abs(got-p) > 1e-9 {
				t.Errorf("%g degrees: below(quantile(%g)) = %g, want no change", degrees, p, got)
			}
		}
	}
}

// fixture returns a process of configurations that differ in all features.
func fixture(n int) observations {
	random := rand.New(rand.NewPCG(1, 2))
	o := observations{several: true, degrees: 4, epochs: make([]float64, n)}
	for i := range n {
		p := point{node: i % 2}
		for f := range p.x {
			p.x[f] = 4 * random.Float64()
		}
		o.points = append(o.points, p)
		o.y = append(o.y, 5-p.x[0]+0.1*random.NormFloat64())
		o.runs = append(o.runs, 0.001*(1+random.Float64()))
	}
	return o
}

// without returns all observations except one.
func (o observations) without(i int) observations {
	drop := func(of []float64) []float64 { return slices.Delete(slices.Clone(of), i, i+1) }
	o.points = slices.Delete(slices.Clone(o.points), i, i+1)
	o.y, o.runs, o.epochs = drop(o.y), drop(o.runs), drop(o.epochs)
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
		if math.Abs(o.y[i]-mean-off) > 1e-8 || math.Abs(variance+o.runs[i]-spread) > 1e-8 {
			t.Errorf("point %d: error %g, variance %g, by a fit without it %g, %g",
				i, off, spread, o.y[i]-mean, variance+o.runs[i])
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
		o.runs[3] = 0.01 / runs
		g, ok := newGaussianProcess(fixtureParameters, o)
		if !ok {
			t.Fatal("not positive definite")
		}
		mean, variance := g.predict(&o.points[3], 3, make([]float64, n))
		off := math.Abs(mean - o.y[3])
		if off >= before || variance > o.runs[3]+1e-9 {
			t.Errorf("%g runs: distance from the mean %g, want less than %g; variance %g, want at most %g",
				runs, off, before, variance, o.runs[3])
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
	got := l.logPosterior(&fixtureParameters) - fixtureParameters.logPrior(l.varies, true) - l.logRepeated()

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
