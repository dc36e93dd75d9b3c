package evidence

import (
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// Distribution is a Student-t distribution of the logarithm of a duration in seconds.
type Distribution struct {
	Location float64 // of the logarithm
	Scale    float64 // of the logarithm, above 0
	Degrees  float64 // of freedom; rounded down to a whole number from 1 to 128
}

// Median returns the value that is exceeded half the time.
func (d Distribution) Median() float64 { return math.Exp(d.Location) }

// Quantile returns the value that is not exceeded with probability p, in (0, 1).
func (d Distribution) Quantile(p float64) float64 {
	return math.Exp(d.Location + d.Scale*studentOf(d.Degrees).quantile(p))
}

// Probability returns the probability of a value of at most limit.
func (d Distribution) Probability(limit float64) float64 {
	if !(limit > 0) {
		return 0
	}
	return studentOf(d.Degrees).below((math.Log(limit) - d.Location) / d.Scale)
}

// logDensity of the logarithm y.
func (d Distribution) logDensity(y float64) float64 {
	degrees := studentOf(d.Degrees).degrees
	return distuv.StudentsT{Mu: d.Location, Sigma: d.Scale, Nu: degrees}.LogProb(y)
}

// Known reports whether there is a distribution.
func (d Distribution) Known() bool { return d.Scale > 0 }

// Around returns the distribution with the same relative spread around another median, for example
// the median of a forecast with changing loads.
func (d Distribution) Around(median float64) Distribution {
	d.Location = math.Log(median)
	return d
}

// student tabulates the upper half of the standard t distribution. Points are evenly spaced in
// asinh(z), which suits both middle and tail. Between points probabilities are interpolated
// linearly.
type student struct {
	degrees float64
	table   [studentPoints]float64
}

const (
	studentPoints  = 512
	maxDegrees     = 128  // degrees; above it the distribution is nearly normal
	maxTabulated   = 40.0 // the last tabulated z; beyond it the tail is a power law
	studentSteep   = 4.0  // spacing is even in asinh(studentSteep * z)
	maxProbability = 1 - 1e-12
)

var studentStep = math.Asinh(studentSteep*maxTabulated) / (studentPoints - 1)

var students [maxDegrees + 1]struct {
	once  sync.Once
	table *student
}

// studentOf returns the table for degrees of freedom, rounded down.
func studentOf(degrees float64) *student {
	n := 1
	if degrees >= maxDegrees {
		n = maxDegrees
	} else if degrees > 1 {
		n = int(degrees)
	}
	s := &students[n]
	s.once.Do(func() { s.table = newStudent(float64(n)) })
	return s.table
}

func newStudent(degrees float64) *student {
	t := distuv.StudentsT{Sigma: 1, Nu: degrees}
	s := &student{degrees: degrees}
	for i := range s.table {
		s.table[i] = t.CDF(math.Sinh(float64(i)*studentStep) / studentSteep)
	}
	s.table[0] = 0.5 // exact, so that no probability below the median exceeds one half
	return s
}

// below returns the probability of a value of at most z.
func (s *student) below(z float64) float64 {
	switch {
	case z < 0:
		return 1 - s.below(-z)
	case z >= maxTabulated:
		rest := 1 - s.table[studentPoints-1]
		return min(1-rest*math.Pow(maxTabulated/z, s.degrees), maxProbability)
	case math.IsNaN(z):
		return 0
	}
	u := studentSteep * z
	at := math.Log(u+math.Sqrt(u*u+1)) / studentStep // asinh, which is slower, to 1e-15
	i := min(int(at), studentPoints-2)
	return s.table[i] + (at-float64(i))*(s.table[i+1]-s.table[i])
}

// quantile is the inverse of below.
func (s *student) quantile(p float64) float64 {
	if p < 0.5 {
		return -s.quantile(1 - p)
	}
	p = min(p, maxProbability)
	last := s.table[studentPoints-1]
	if p >= last {
		return maxTabulated * math.Pow((1-last)/(1-p), 1/s.degrees)
	}
	i, _ := slices.BinarySearch(s.table[:], p)
	i = max(i-1, 0)
	at := float64(i)
	if step := s.table[i+1] - s.table[i]; step > 0 {
		at += (p - s.table[i]) / step
	}
	return math.Sinh(at*studentStep) / studentSteep
}
