// Package speed predicts how fast a distributed training runs in another shape, and finds what limits it.
//
// A shape is a number of workers and servers with their cores. The step time of a shape follows
// a law (section 3.3 of the design page resource-policies), whose coefficients Learn fits to the steps
// that a job has shown. FindBottleneck names what limits a job by its telemetry. All functions are pure.
package speed

// Shape is the size of a distributed job. A job without servers of its own has 0 of them.
type Shape struct {
	Workers     int
	WorkerCores int // of each worker
	Servers     int
	ServerCores int // of each server
}

// Cores returns the cores of all workers and servers.
func (s *Shape) Cores() int {
	return s.Workers*s.WorkerCores + s.Servers*s.ServerCores
}

// IsValid reports whether a job with or without servers can have this shape.
func (s *Shape) IsValid(hasServers bool) bool {
	if s.Workers < 1 || s.WorkerCores < 1 {
		return false
	}
	if hasServers {
		return s.Servers >= 1 && s.ServerCores >= 1
	}
	return s.Servers == 0 && s.ServerCores == 0
}

// IsWithin reports whether each number of the shape is at most that of the largest shape.
func (s *Shape) IsWithin(largest *Shape) bool {
	return s.Workers <= largest.Workers && s.WorkerCores <= largest.WorkerCores &&
		s.Servers <= largest.Servers && s.ServerCores <= largest.ServerCores
}

// Facts are the properties of a job that are known before it runs.
type Facts struct {
	HasServers       bool // they update the parameters; without them the workers do (all-reduce)
	Model            string
	SamplesPerWorker float64 // in a step
	ModelBytes       float64
	BytesPerSecond   float64 // of the link of a worker or server
}

const termCount = 6

// terms are the factors of the coefficients in the step time of a shape, in the order of
// Coefficients.
type terms [termCount]float64

// Coefficients are the coefficients of the step time in seconds (section 3.3 of the design page of
// the policies, resource-policies): fixed time, seconds of a core per sample, seconds of a core per
// update of a server, a factor of the ideal transfer time, and seconds per worker and per server.
type Coefficients [termCount]float64

// The terms.
const (
	termFixed = iota
	termCompute
	termUpdate
	termTransfer
	termPerWorker
	termPerServer
)

// termsOf returns the terms of a shape. A worker does not use more cores than the knee.
func (f *Facts) termsOf(s *Shape, knee float64) terms {
	w, p := float64(s.Workers), float64(s.Servers)
	t := terms{1, f.SamplesPerWorker / min(float64(s.WorkerCores), knee), 0, 0, w, p}
	exchange := 2 * f.ModelBytes / f.BytesPerSecond
	if !f.HasServers {
		t[termTransfer] = exchange * (w - 1) / w
		return t
	}
	t[termUpdate] = w / (p * float64(s.ServerCores))
	t[termTransfer] = exchange * max(w/p, 1)
	return t
}

// StepSeconds returns the step time of a shape for known coefficients.
func (f *Facts) StepSeconds(s Shape, c Coefficients, knee float64) float64 {
	t := f.termsOf(&s, knee)
	return dot(&t, &c)
}

// Speed returns the samples per second of a shape whose step takes this time.
func (f *Facts) Speed(s Shape, stepSeconds float64) float64 {
	return float64(s.Workers) * f.SamplesPerWorker / stepSeconds
}

func (t terms) times(factor float64) terms {
	for i := range t {
		t[i] *= factor
	}
	return t
}

func dot(t *terms, c *Coefficients) float64 {
	return t[0]*c[0] + t[1]*c[1] + t[2]*c[2] + t[3]*c[3] + t[4]*c[4] + t[5]*c[5]
}

// neighbourSteps are the changes of the four numbers of a shape to its neighbours: each number one more
// or less, and then exchanges, which raise one number by one or two and lower another by one or two.
var neighbourSteps = newNeighbourSteps()

func newNeighbourSteps() (steps [][4]int) {
	for i := range 4 {
		for _, step := range []int{1, -1} {
			var s [4]int
			s[i] = step
			steps = append(steps, s)
		}
	}
	for i := range 4 * 4 * 4 {
		if up, down := i/16, i/4%4; up != down {
			var s [4]int
			s[up], s[down] = 1+i%2, -1-i/2%2
			steps = append(steps, s)
		}
	}
	return steps
}

// singleSteps is the number of steps before the exchanges.
const singleSteps = 8

// Neighbours returns the valid shapes near a shape: each number one more or less, and exchanges,
// which raise one number by one or two, lower another by one or two, and need no more cores. At equal
// cores, single steps alone could not move.
func (s Shape) Neighbours(hasServers bool, largest Shape) []Shape {
	var found []Shape
	for i, d := range neighbourSteps {
		n := Shape{s.Workers + d[0], s.WorkerCores + d[1], s.Servers + d[2], s.ServerCores + d[3]}
		isExchange := i >= singleSteps
		if n.IsValid(hasServers) && n.IsWithin(&largest) && !(isExchange && n.Cores() > s.Cores()) {
			found = append(found, n)
		}
	}
	return found
}
