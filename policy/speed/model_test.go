package speed_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"courier/policy/speed"
	"courier/policy/speed/speedtest"
)

var (
	facts    = speedtest.Facts
	truth    = speedtest.Truth
	largest  = speedtest.Largest
	speeds   = truth.Speeds(largest)
	measured = speedtest.Measured
)

// The time of a step, added up by hand.
func TestStepSeconds_WithAndWithoutServers(t *testing.T) {
	c := speed.Coefficients{0.1, 0.03, 0.06, 1, 0.004, 0.006}
	for hasServers, test := range map[bool]struct {
		shape speed.Shape
		want  float64
	}{
		// 64 samples on 4 of 6 cores, 2 workers per server core, 2 workers per server.
		true: {speed.Shape{Workers: 4, WorkerCores: 6, Servers: 2, ServerCores: 1},
			0.1 + 0.03*64/4 + 0.06*2 + 0.4*2 + 0.016 + 0.012},
		false: {speed.Shape{Workers: 4, WorkerCores: 6}, 0.1 + 0.03*64/4 + 0.4*3/4 + 0.016},
	} {
		f := facts
		f.HasServers = hasServers
		if got := f.StepSeconds(test.shape, c, 4); math.Abs(got-test.want) > 1e-12 {
			t.Errorf("servers %t: %g s, want %g s", hasServers, got, test.want)
		}
	}
}

// Twelve exact step times determine the gain between any two shapes near them.
func TestLearn_FindsTheSpeedOfOtherShapes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	draw := func() speed.Shape {
		return speed.Shape{
			Workers: 1 + random.IntN(8), WorkerCores: 1 + random.IntN(8),
			Servers: 1 + random.IntN(4), ServerCores: 1 + random.IntN(4),
		}
	}
	var shapes []speed.Shape
	for range 12 {
		shapes = append(shapes, draw())
	}
	m := speed.Learn(facts, measured(shapes...), nil, largest)
	for range 200 {
		from, to := draw(), draw()
		want, _ := speeds.Gain(from, to)
		got, standardError := m.Gain(from, to)
		if math.Abs(got-want) > 3*standardError+0.01 || math.IsNaN(got) {
			t.Errorf("gain from %v to %v: %.3f with a standard error of %.3f, want %.3f",
				from, to, got, standardError, want)
		}
	}
}

// The more shapes a job has shown, the smaller are the errors.
func TestLearn_ErrorsShrink(t *testing.T) {
	shapes := []speed.Shape{
		{4, 4, 2, 2}, {4, 3, 2, 2}, {5, 4, 2, 1}, {3, 6, 3, 1}, {6, 2, 1, 2}, {2, 8, 4, 1},
	}
	target := speed.Shape{Workers: 6, WorkerCores: 3, Servers: 2, ServerCores: 2}
	before := math.Inf(1)
	for _, n := range []int{1, 4, 6} {
		m := speed.Learn(facts, measured(shapes[:n]...), nil, largest)
		_, standardError := m.Gain(shapes[0], target)
		if !(standardError < before) {
			t.Errorf("%d shapes: standard error %.3f, want less than %.3f", n, standardError, before)
		}
		before = standardError
	}
}

// A job without shapes of its own to compare is priced by finished jobs like it.
func TestNearest_PrefersTheSameModel(t *testing.T) {
	same, similar := facts, facts
	same.Model, same.ModelBytes = "vgg", 500e6
	similar.Model, similar.ModelBytes = "resnet", facts.ModelBytes
	asked := facts
	asked.Model = "vgg"
	server := speed.Coefficients{0.1, 0.01, 0.2, 1, 0.004, 0.006}
	worker := speed.Coefficients{0.1, 0.08, 0.001, 1, 0.004, 0.006}
	var finished []speed.FinishedJob
	for range 10 {
		finished = append(finished,
			speed.FinishedJob{Facts: same, Coefficients: server},
			speed.FinishedJob{Facts: similar, Coefficients: worker})
	}
	from := speed.Shape{Workers: 4, WorkerCores: 2, Servers: 1, ServerCores: 1}
	more := speed.Shape{Workers: 4, WorkerCores: 2, Servers: 1, ServerCores: 2}
	known := &speed.KnownModel{Facts: facts, Coefficients: server, Knee: 4}
	seen := []speed.ShapeTime{{Shape: from, StepSeconds: known.StepSeconds(from), Reports: 3}}
	byModel, _ := speed.Learn(asked, seen, speed.Nearest(finished, asked), largest).Gain(from, more)
	asked.Model = "unknown"
	bySize, _ := speed.Learn(asked, seen, speed.Nearest(finished, asked), largest).Gain(from, more)
	want, _ := known.Speeds(more).Gain(from, more)
	if math.Abs(byModel-want) > 0.1 || bySize > byModel/2 {
		t.Errorf("gain of a server core: %.3f by the same model, %.3f by size, want %.3f and less",
			byModel, bySize, want)
	}
}

// One window of a job tells which resource to add, without other jobs and before any move. Resources
// may be busy at once: only the busiest one is worth adding to.
func TestLearn_OneWindowShowsWhatToAdd(t *testing.T) {
	from := speed.Shape{Workers: 4, WorkerCores: 1, Servers: 1, ServerCores: 1}
	server, cores := from, from
	server.Servers++
	cores.WorkerCores++
	tests := []struct {
		name                      string
		worker, server, link      float64 // busy
		atLeast, atMost           speed.Shape
		lowestRatio, highestRatio float64
	}{
		{"full link", 0.05, 0.1, 0.95, server, cores, 1.4, 1.1},
		{"full link, and half of the server", 0.05, 0.5, 1, server, cores, 1.4, 1.1},
		{"busy workers", 0.95, 0.03, 0.03, cores, server, 1.3, 1.1},
		{"busy workers, servers and links at once", 0.95, 0.6, 0.5, cores, server, 1.3, 1.1},
	}
	for _, test := range tests {
		r := speed.StepReport{
			Shape: from, StepSeconds: 1,
			WorkerCPURatio: test.worker, ServerCPURatio: test.server, LinkRatio: test.link,
		}
		seen := []speed.ShapeTime{speed.NewShapeTime([]speed.StepReport{r, r, r})}
		m := speed.Learn(facts, seen, nil, largest)
		mean, standardError := m.Gain(from, test.atLeast)
		if lowest := math.Exp(mean - 1.28*standardError); lowest < test.lowestRatio {
			t.Errorf("%s: %v has at least %.2f of the speed, want %.2f",
				test.name, test.atLeast, lowest, test.lowestRatio)
		}
		if mean, _ := m.Gain(from, test.atMost); math.Exp(mean) > test.highestRatio {
			t.Errorf("%s: %v has %.2f of the speed, want at most %.2f",
				test.name, test.atMost, math.Exp(mean), test.highestRatio)
		}
	}
}

// reportOf returns the exact telemetry of a job in a shape.
func reportOf(m *speed.KnownModel, s speed.Shape) speed.StepReport {
	c, f := &m.Coefficients, &m.Facts
	workers, servers, cores := float64(s.Workers), float64(s.Servers), float64(s.WorkerCores)
	step := m.StepSeconds(s)
	return speed.StepReport{
		Shape:          s,
		StepSeconds:    step,
		WorkerCPURatio: c[1] * f.SamplesPerWorker / cores / step,
		ServerCPURatio: c[2] * workers / (servers * float64(s.ServerCores)) / step,
		LinkRatio:      c[3] * 2 * f.ModelBytes / f.BytesPerSecond * max(workers/servers, 1) / step,
	}
}

// One window shows by its busy times that workers use all of their three cores: with a single one,
// computation and transfer would not fit into a step.
func TestLearn_BusyTimesShowTheUsableCores(t *testing.T) {
	from := speed.Shape{Workers: 5, WorkerCores: 3, Servers: 4, ServerCores: 4}
	to := speed.Shape{Workers: 7, WorkerCores: 1, Servers: 4, ServerCores: 4}
	for _, modelBytes := range []float64{5e6, 60e6, 250e6, 500e6} {
		known := &speed.KnownModel{
			Facts: facts, Coefficients: speed.Coefficients{0.05, 0.08, 0.01, 1, 0.004, 0.006}, Knee: 6,
		}
		known.Facts.ModelBytes = modelBytes
		r := reportOf(known, from)
		seen := []speed.ShapeTime{speed.NewShapeTime([]speed.StepReport{r, r, r})}
		m := speed.Learn(known.Facts, seen, nil, largest)
		got, standardError := m.Gain(from, to)
		want, _ := known.Speeds(largest).Gain(from, to)
		if math.Abs(got-want) > 0.01 || standardError > 0.04 {
			t.Errorf("model of %g MB: gain %.3f with a standard error of %.3f, want %.3f",
				modelBytes/1e6, got, standardError, want)
		}
	}
}
