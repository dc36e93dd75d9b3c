package speed

import (
	"cmp"
	"math"
	"slices"
)

// ShapeTime is what a job showed in one shape. Times of resources are those in which a step keeps
// them busy; 0 means unknown.
type ShapeTime struct {
	Shape       Shape
	StepSeconds float64 // mean of the reports
	Reports     int

	ComputeCoreSeconds float64 // CPU of a worker per step
	UpdateSeconds      float64 // CPU of a server per step, divided by its cores
	TransferSeconds    float64 // use of the link
}

// NewShapeTime returns what a window of reports in one shape shows.
func NewShapeTime(window []StepReport) ShapeTime {
	m := MeanOf(window)
	return ShapeTime{
		Shape:              m.Shape,
		StepSeconds:        m.StepSeconds,
		Reports:            len(window),
		ComputeCoreSeconds: m.WorkerCPURatio * float64(m.Shape.WorkerCores) * m.StepSeconds,
		UpdateSeconds:      m.ServerCPURatio * m.StepSeconds,
		TransferSeconds:    m.LinkRatio * m.StepSeconds,
	}
}

// knees are the numbers of cores that a worker may be able to use. Which one holds is learned.
var knees = [...]float64{1, 2, 3, 4, 6, 8, 12, 16}

type kneeFit struct {
	knee         float64
	chi          float64 // sum of the squared errors, in standard deviations
	probability  float64
	coefficients Coefficients
	covariance   matrix
}

// Model prices the shapes of a job. It is learned, or of known coefficients.
type Model struct {
	facts  Facts
	shapes int       // distinct ones that it was learned from
	fits   []kneeFit // by rising knee
	front  []frontShape
}

// minResourceRatio of the step time is the error that is assumed at least for busy times.
const minResourceRatio = 0.05

// noisePrior is the number of reports that the assumed noise counts for.
const noisePrior = 4

// Learn fits the step time to the shapes of a job, the latest one last, by non-negative least
// squares. Below trustedShapes shapes, a prior from other jobs counts, if there is one. It returns
// nil if there is nothing to learn from. Plan needs the same largest shape.
func Learn(f Facts, seen []ShapeTime, prior *Prior, largest Shape) *Model {
	m := &Model{facts: f}
	distinct := map[Shape]bool{}
	for i := range seen {
		distinct[seen[i].Shape] = true
	}
	m.shapes = len(distinct)
	if m.shapes == 0 {
		return nil
	}
	if m.shapes >= trustedShapes {
		prior = nil
	}

	for _, knee := range knees {
		e := equations{facts: &m.facts, seen: seen, knee: knee}
		if fit, ok := e.fit(prior); ok {
			m.fits = append(m.fits, fit)
		}
	}
	if len(m.fits) == 0 {
		return nil
	}
	m.weigh()
	if m.shapes >= trustedShapes {
		m.front = newFront(m, largest)
	}
	return m
}

// minProbability is that of a fit which can still change a decision.
const minProbability = 1e-5

// weigh turns the errors of the fits into the probabilities of their knees, and drops the fits that
// cannot change a decision.
func (m *Model) weigh() {
	byError := func(a, b kneeFit) int { return cmp.Compare(a.chi, b.chi) }
	lowest := slices.MinFunc(m.fits, byError).chi
	for i := range m.fits {
		m.fits[i].probability *= math.Exp(-(m.fits[i].chi - lowest) / 2)
	}
	m.normalize()
	m.fits = slices.DeleteFunc(m.fits, func(f kneeFit) bool { return f.probability < minProbability })
	m.normalize()
}

// normalize makes the probabilities of the fits add up to 1.
func (m *Model) normalize() {
	sum := 0.0
	for i := range m.fits {
		sum += m.fits[i].probability
	}
	for i := range m.fits {
		m.fits[i].probability /= sum
	}
}

// Finished returns what the job has shown, for the priors of later jobs: the coefficients of the most
// probable knee, and the probability of each.
func (m *Model) Finished() FinishedJob {
	best := &m.fits[0]
	probabilities := make(map[float64]float64, len(m.fits))
	for i := range m.fits {
		f := &m.fits[i]
		probabilities[f.knee] = f.probability
		if f.probability > best.probability {
			best = f
		}
	}
	return FinishedJob{m.facts, best.coefficients, probabilities}
}

// equations are the least-squares problem of one knee.
type equations struct {
	facts *Facts
	seen  []ShapeTime
	knee  float64
}

// fit returns the coefficients; false if the equations are singular.
func (e *equations) fit(prior *Prior) (fit kneeFit, ok bool) {
	fit = kneeFit{knee: e.knee, probability: prior.probability(e.knee)}
	assumed := NoiseRatio * NoiseRatio
	variance := assumed
	observed := e.observations()
	for range 2 { // the second time with the noise that the first one left
		normal, rhs := normal(observed, variance)
		mean, deviation := prior.spread(e.facts, &e.seen[0])
		for i := range mean {
			information := 1 / (deviation[i] * deviation[i])
			normal[i][i] += information
			rhs[i] += information * mean[i]
		}
		if fit.coefficients, ok = normal.nonNegative(rhs); !ok {
			return fit, false
		}
		if fit.covariance, ok = normal.inverse(); !ok {
			return fit, false
		}
		fit.chi = 0
		for i := range mean {
			distance := (fit.coefficients[i] - mean[i]) / deviation[i]
			fit.chi += distance * distance
		}
		squares, count := residuals(observed, &fit.coefficients), float64(len(observed))
		// The noise is unknown: the likelihood is that of Student's t.
		fit.chi += (noisePrior + count) * math.Log1p(squares/(noisePrior*assumed))
		variance = (noisePrior*assumed + squares) / (noisePrior + count)
	}
	return fit, true
}

// observation is something that a job showed in a shape: the sum of the terms multiplied by their
// coefficients.
type observation struct {
	terms   terms
	seconds float64
	// scale is a standard deviation in seconds, divided by the relative noise of a step time.
	scale  float64
	weight float64 // number of reports, less for shapes before the latest
}

// observations returns the step time and the busy times of each shape.
func (e *equations) observations() []observation {
	telemetry := NoiseRatio / telemetryNoiseRatio
	weight := e.weights()
	all := make([]observation, 0, 4*len(e.seen))
	for i := range e.seen {
		s := e.seen[i].alone()
		t := e.facts.termsOf(&s.Shape, e.knee)
		all = append(all, observation{t, s.StepSeconds, s.StepSeconds, weight[i]})

		busy := [termCount]float64{
			termCompute:  s.ComputeCoreSeconds / min(float64(s.Shape.WorkerCores), e.knee),
			termUpdate:   s.UpdateSeconds,
			termTransfer: s.TransferSeconds,
		}
		for term, seconds := range busy {
			if seconds > 0 && t[term] > 0 {
				scale := max(seconds, minResourceRatio*s.StepSeconds) / telemetry
				var only terms
				only[term] = t[term]
				all = append(all, observation{only, seconds, scale, weight[i]})
			}
		}
	}
	return all
}

// normal returns the normal equations of observations.
func normal(all []observation, variance float64) (normal matrix, rhs [termCount]float64) {
	for i := range all {
		o := &all[i]
		normal.addRow(&rhs, o.terms, o.seconds, o.weight/(variance*o.scale*o.scale))
	}
	return normal, rhs
}

// residuals returns the weighted sum of the squared relative errors of observations.
func residuals(all []observation, c *Coefficients) (squares float64) {
	for i := range all {
		o := &all[i]
		r := (dot(&o.terms, c) - o.seconds) / o.scale
		squares += o.weight * r * r
	}
	return squares
}

// alone returns a copy whose resources are busy only while no other is. Resources that are busy at
// once, in real trainings, add less to a step than they are busy: the busiest one counts in full, and
// the others share what it leaves of the step. A smaller excess than the error of the telemetry shows
// nothing.
func (s *ShapeTime) alone() ShapeTime {
	compute := s.ComputeCoreSeconds / float64(s.Shape.WorkerCores)
	longest := max(compute, s.UpdateSeconds, s.TransferSeconds)
	sum := compute + s.UpdateSeconds + s.TransferSeconds
	if sum <= (1+telemetryNoiseRatio)*s.StepSeconds {
		return *s
	}
	left := max(s.StepSeconds-longest, 1e-6*s.StepSeconds) // not 0, which means unknown
	part := min(1, left/max(sum-longest, left))

	alone := *s
	if compute < longest {
		alone.ComputeCoreSeconds *= part
	}
	if s.UpdateSeconds < longest {
		alone.UpdateSeconds *= part
	}
	if s.TransferSeconds < longest {
		alone.TransferSeconds *= part
	}
	return alone
}

// weights returns the number of reports of each shape, less for those before the latest.
func (e *equations) weights() []float64 {
	all := make([]float64, len(e.seen))
	weight := 1.0
	for i := len(e.seen) - 1; i >= 0; i-- {
		all[i] = weight * float64(max(1, e.seen[i].Reports))
		weight *= decay
	}
	return all
}

// KnownModel has the exact coefficients of a job.
type KnownModel struct {
	Facts        Facts
	Coefficients Coefficients
	Knee         float64 // cores that a worker can use
}

// StepSeconds returns the step time of a shape.
func (m *KnownModel) StepSeconds(s Shape) float64 {
	return m.Facts.StepSeconds(s, m.Coefficients, m.Knee)
}

// Speeds returns a speed model without errors, for shapes up to the largest.
func (m *KnownModel) Speeds(largest Shape) *Model {
	known := &Model{
		facts:  m.Facts,
		shapes: math.MaxInt,
		fits:   []kneeFit{{knee: m.Knee, probability: 1, coefficients: m.Coefficients}},
	}
	known.front = newFront(known, largest)
	return known
}
