//go:build linux

package digits

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"courier/policy/fit"
)

// BenchmarkBottleneck starts a real distributed training in five wrong ways, asks policy/fit for the
// bottleneck of each stable window, lets it resize the training, and compares the speed with the best
// of an exhaustive search. COURIER_REAL enables it; it needs root, and takes about three minutes.
func BenchmarkBottleneck(b *testing.B) {
	if os.Getenv("COURIER_REAL") == "" {
		b.Skip("a quiet machine is needed: set COURIER_REAL")
	}
	for b.Loop() {
		e := newBottleneckExperiment(b)
		for i := range wrongStarts {
			e.play(&wrongStarts[i])
		}
		b.ReportMetric(float64(e.stable)/float64(e.windows), "stable-ratio")
		b.ReportMetric(float64(e.named)/float64(e.stable), "named-ratio")
		e.machine.remove()
	}
}

// wrongStart is a training whose shape, or whose part of the machine, is wrong.
type wrongStart struct {
	name     string
	shape    fit.Shape
	job      trainingJob
	slowSeat bool // the first worker gets slowCores
	hasOther bool // another job reads from the disk
}

// trainingJob is what a training does, whatever its shape, and its links.
type trainingJob struct {
	samples int     // of a worker in a step
	linkMB  float64 // per second and direction
}

// jobCores is the number of cores that a training may have.
const jobCores = 10

// largestShape bounds the shapes: the seats of the machine.
var largestShape = fit.Shape{Workers: 8, WorkerCores: 4, Servers: 4, ServerCores: 2}

// diskBytesPerSecond is the speed of the disk: enough for one training.
const diskBytesPerSecond = 40e6

var largeBatch = trainingJob{samples: 256, linkMB: 40}

var wrongStarts = []wrongStart{
	{
		name:  "too few cores",
		shape: fit.Shape{Workers: 1, WorkerCores: 1, Servers: 1, ServerCores: 1},
		job:   largeBatch,
	},
	{
		name:  "too many workers",
		shape: fit.Shape{Workers: 8, WorkerCores: 1, Servers: 1, ServerCores: 1},
		job:   trainingJob{samples: 32, linkMB: 15},
	},
	{
		name:  "slow link",
		shape: fit.Shape{Workers: 4, WorkerCores: 2, Servers: 1, ServerCores: 1},
		job:   trainingJob{samples: 256, linkMB: 5},
	},
	{
		name:     "slow disk",
		shape:    fit.Shape{Workers: 4, WorkerCores: 2, Servers: 1, ServerCores: 1},
		job:      largeBatch,
		hasOther: true,
	},
	{
		name:     "slow worker",
		shape:    fit.Shape{Workers: 4, WorkerCores: 2, Servers: 1, ServerCores: 1},
		job:      largeBatch,
		slowSeat: true,
	},
}

// bottleneckExperiment runs trainings on a machine.
type bottleneckExperiment struct {
	b                      *testing.B
	machine                *limitedMachine
	dir                    string
	windows, stable, named int
	best                   map[trainingJob]fit.Shape // of the exhaustive search
}

func newBottleneckExperiment(b *testing.B) *bottleneckExperiment {
	e := &bottleneckExperiment{b: b, dir: b.TempDir(), best: map[trainingJob]fit.Shape{}}
	e.machine = newLimitedMachine(b, largestShape.Workers+largestShape.Servers)
	e.machine.setDisk(diskBytesPerSecond)
	return e
}

// startWindows are the windows in which the bottleneck of a wrong start is named.
const startWindows = 3

// play measures one wrong start.
func (e *bottleneckExperiment) play(s *wrongStart) {
	t := e.newTraining(s)
	var found []fit.Bottleneck
	var speed float64
	for range startWindows {
		window := t.window()
		if speed = t.speed(window); fit.IsStable(window, policyOptions) {
			found = append(found, fit.FindBottleneck(window, t.scaling(window), policyOptions))
		}
	}
	e.windows += startWindows
	e.stable += len(found)
	truth := t.trueBottleneck(speed)
	for _, name := range found {
		if name == truth {
			e.named++
		}
	}
	e.b.Logf("%s: %q, relief shows %q, %.0f samples/s", s.name, found, truth, speed)

	t.improve()
	e.compare(t, speed)
	if untrained := math.Log(classCount); t.loss > untrained/2 {
		e.b.Errorf("%s: the loss is %.3f, and that of an untrained network %.3f", s.name, t.loss, untrained)
	}
	t.stop()
}

var policyOptions = fit.Options{Largest: largestShape}

// trueBottleneck relieves the training of one limit at a time, and returns the class of the limit
// without which it is fastest. A relief takes no restart.
func (t *limitedTraining) trueBottleneck(speed float64) fit.Bottleneck {
	m := t.e.machine
	truth, highest := fit.BottleneckNone, speed
	try := func(class fit.Bottleneck, relieve func()) {
		relieve()
		relieved := t.speedAfter(1)
		t.limit()
		t.skip()
		t.e.b.Logf("%s: without the limit of %s %.2f of the speed", t.start.name, class, relieved/speed)
		if relieved > highest {
			truth, highest = class, relieved
		}
	}
	try(fit.BottleneckWorkerCPU, func() { t.setCores(t.workers, 2*float64(t.shape.WorkerCores)) })
	try(fit.BottleneckServerCPU, func() { t.setCores(t.servers, 2*float64(t.shape.ServerCores)) })
	try(fit.BottleneckNetwork, func() { m.setLinks(2e6 * t.start.job.linkMB) })
	try(fit.BottleneckInput, func() { m.setDisk(100 * diskBytesPerSecond) })
	try(fit.BottleneckStraggler, func() {
		for _, p := range t.workers {
			m.setQuota(p.seat, p.seat.cores)
		}
	})
	return truth
}

// workTime is how long the training would have run in its wrong start.
const workTime = 10 * time.Minute

// Decisions of the policy about one training, and those without a move after which it ends.
const (
	mostDecisions  = 12
	quietDecisions = 2
)

// improve lets the policy resize the training. What no shape can mend, its operator mends.
func (t *limitedTraining) improve() {
	begin := time.Now()
	work := t.speed(t.lastWindow) * workTime.Seconds()
	job := fit.ResizableJob{
		ID: t.start.name, Facts: t.facts(), Requested: t.shape, Pause: time.Second,
	}
	var seen []fit.ShapeTime
	quiet := 0
	for range mostDecisions {
		window := t.window()
		if fit.IsStable(window, policyOptions) && t.remedy(window) {
			continue
		}
		shown := fit.NewShapeTime(window)
		job.Shape, job.Window, job.Scaling = t.shape, window, t.scaling(window)
		job.Model = fit.Learn(job.Facts, append(seen[:len(seen):len(seen)], shown), nil, policyOptions)
		job.Elapsed, job.DoneSamples = time.Since(begin), t.samples
		job.RemainingSamples = work - t.samples
		view := &fit.ResizeView{FreeCores: jobCores - t.shape.Cores(), Jobs: []fit.ResizableJob{job}}
		moves, records := fit.Plan(view, time.Now(), policyOptions)
		job.Record = records[job.ID]
		t.e.b.Logf("%s: %v at %.0f samples/s, %v", t.start.name, t.shape, t.speed(window), moves)
		if len(moves) == 0 {
			if quiet++; quiet == quietDecisions {
				return
			}
			continue
		}
		quiet = 0
		seen = append(seen, shown)
		stopped := time.Now()
		t.stop()
		t.run(moves[0].To)
		job.Pause = time.Since(stopped)
	}
}

// remedy carries out what the operator of the machine can do about a bottleneck, and reports whether
// there was something to do. The batch size is the owner's.
func (t *limitedTraining) remedy(window []fit.StepReport) bool {
	found := fit.FindBottleneck(window, t.scaling(window), policyOptions)
	for _, r := range found.Remedies() {
		switch {
		case r == fit.RemedyMoveWorker && t.isSlow:
			t.stop()
			t.isSlow = false
			t.run(t.shape)
		case r == fit.RemedyFewerJobs && t.other != nil:
			t.e.machine.stop(t.other)
			t.other = nil
			t.skip()
		default:
			continue
		}
		t.e.b.Logf("%s: %s: %s", t.start.name, found, r)
		return true
	}
	return false
}

// compare reports the speed of the training in its last shape, relative to the best shape of the
// search.
func (e *bottleneckExperiment) compare(t *limitedTraining, before float64) {
	job, last := t.start.job, t.shape
	if _, ok := e.best[job]; !ok {
		e.best[job] = e.search(t)
	}
	after, best := t.speedIn(last), t.speedIn(e.best[job])
	after += t.speedIn(last)
	best += t.speedIn(e.best[job])
	after, best = after/2, best/2
	e.b.Logf("%s: %.0f samples/s, then %.0f with %v, at best %.0f with %v: %.3f",
		t.start.name, before, after, last, best, e.best[job], after/best)
	name := strings.ReplaceAll(t.start.name, " ", "-")
	e.b.ReportMetric(after/best, name+"-of-best")
	e.b.ReportMetric(before/best, name+"-before")
}

// search returns the fastest shape of a training within its cores: of all numbers of servers and
// cores, with as many workers as they leave.
func (e *bottleneckExperiment) search(t *limitedTraining) fit.Shape {
	var best fit.Shape
	var highest float64
	for _, s := range searchedShapes() {
		speed := t.speedIn(s)
		e.b.Logf("%s: %v has %.0f samples/s", t.start.name, s, speed)
		if speed > highest {
			best, highest = s, speed
		}
	}
	return best
}

func searchedShapes() []fit.Shape {
	var shapes []fit.Shape
	for _, workerCores := range []int{1, 2, 4} {
		for _, servers := range []fit.Shape{
			{Servers: 1, ServerCores: 1}, {Servers: 2, ServerCores: 1}, {Servers: 2, ServerCores: 2},
			{Servers: 4, ServerCores: 1},
		} {
			s := servers
			s.WorkerCores = workerCores
			s.Workers = min(largestShape.Workers, (jobCores-servers.Cores())/workerCores)
			shapes = append(shapes, s)
		}
	}
	return shapes
}
