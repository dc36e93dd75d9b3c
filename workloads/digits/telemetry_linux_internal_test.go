//go:build linux

package digits

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"courier/policy/fit"
)

// limitedTraining is a training on the machine.
type limitedTraining struct {
	e          *bottleneckExperiment
	start      *wrongStart
	data       string          // file of mini-batches
	checkpoint string          // file
	isSlow     bool            // one worker is
	other      *clusterProcess // the job that reads from the same disk, if there is one
	shape      fit.Shape
	workers    []*clusterProcess
	servers    []*clusterProcess
	steps      chan stepLine
	last       counterSample
	busy       []float64 // seconds of each worker since the last sample
	busySteps  []float64
	lastWindow []fit.StepReport
	samples    float64 // trained in reports
	loss       float64 // of a mini-batch of the first worker
}

// counterSample are the counters at an instant.
type counterSample struct {
	at                    time.Time
	seats                 []seatCounters // of workers, then of servers
	ioStalled, memStalled float64
	ioWaited, ticks       float64
}

// newTraining starts a training in its wrong way.
func (e *bottleneckExperiment) newTraining(s *wrongStart) *limitedTraining {
	name := strings.ReplaceAll(s.name, " ", "-")
	t := &limitedTraining{
		e: e, start: s,
		data:       filepath.Join(e.dir, name+".batches"),
		checkpoint: filepath.Join(e.dir, name+".checkpoint"),
	}
	e.machine.must(writeBatches(t.data, s.job.samples))
	e.machine.must(writeCheckpoint(t.checkpoint))
	t.isSlow = s.slowSeat
	if s.hasOther {
		t.other = e.machine.start(nil, &clusterRole{Kind: readerKind, Samples: s.job.samples, Data: t.data})
		e.machine.awaitReady(t.other)
		e.machine.release(t.other)
	}
	t.run(s.shape)
	return t
}

func (t *limitedTraining) facts() fit.Facts {
	return fit.Facts{
		Architecture:     fit.ParameterServer,
		SamplesPerWorker: float64(t.start.job.samples),
		ModelBytes:       4 * float64(newClusterNetwork().parameters()),
		BytesPerSecond:   t.start.job.linkMB * 1e6,
	}
}

// run starts the training in a shape, from its checkpoint.
func (t *limitedTraining) run(shape fit.Shape) {
	m := t.e.machine
	t.shape, t.workers, t.servers = shape, nil, nil
	role := clusterRole{
		Workers: shape.Workers, Samples: t.start.job.samples, Data: t.data, Checkpoint: t.checkpoint,
	}
	seats := m.seats[largestShape.Workers:]
	for i := range shape.Servers {
		role.Servers = append(role.Servers, seats[i].address+":7000")
	}
	for i := range shape.Servers {
		role.Kind, role.Index = serverKind, i
		t.servers = append(t.servers, m.start(seats[i], &role))
	}
	for _, p := range t.servers {
		m.awaitReady(p)
	}
	for i := range shape.Workers {
		role.Kind, role.Index = workerKind, i
		t.workers = append(t.workers, m.start(m.seats[i], &role))
	}
	for _, p := range t.workers {
		m.awaitReady(p)
	}
	t.limit()
	t.steps = make(chan stepLine, 1000)
	for _, p := range t.servers {
		m.release(p)
	}
	for _, p := range t.workers {
		m.release(p)
		go t.follow(p, t.steps)
	}
	t.skip()
}

// stop ends the training, but no other job. Servers end last: they have the parameters.
func (t *limitedTraining) stop() {
	t.e.machine.stop(t.workers...)
	t.e.machine.stop(t.servers...)
}

// limit sets the limits of the machine as the start has them.
func (t *limitedTraining) limit() {
	m := t.e.machine
	m.setDisk(diskBytesPerSecond)
	m.setLinks(1e6 * t.start.job.linkMB)
	t.setCores(t.workers, float64(t.shape.WorkerCores))
	t.setCores(t.servers, float64(t.shape.ServerCores))
}

// setCores limits processes to cores. A slow worker does not get more than slowCores, whatever it is
// granted.
func (t *limitedTraining) setCores(processes []*clusterProcess, cores float64) {
	for _, p := range processes {
		p.seat.cores = cores
		if t.isSlow && p == t.workers[0] {
			t.e.machine.setQuota(p.seat, min(cores, slowCores))
			continue
		}
		t.e.machine.setQuota(p.seat, cores)
	}
}

const slowCores = 1

// skip drops the first steps after a change, and begins a report.
func (t *limitedTraining) skip() {
	for range firstSteps * t.shape.Workers {
		t.next()
	}
	t.sample()
}

// speed returns the samples per second of a window.
func (t *limitedTraining) speed(window []fit.StepReport) float64 {
	seconds := 0.0
	for i := range window {
		seconds += window[i].StepSeconds / float64(len(window))
	}
	facts := t.facts()
	return facts.Speed(t.shape, seconds)
}

// speedAfter returns the speed of some reports after the first steps.
func (t *limitedTraining) speedAfter(reports int) float64 {
	t.skip()
	var window []fit.StepReport
	for range reports {
		window = append(window, t.report())
	}
	return t.speed(window)
}

// speedIn returns the speed of the training in a shape.
func (t *limitedTraining) speedIn(shape fit.Shape) float64 {
	t.stop()
	t.run(shape)
	return t.speedAfter(1)
}

// scaling returns what a model learned from one window predicts.
func (t *limitedTraining) scaling(window []fit.StepReport) fit.Scaling {
	seen := []fit.ShapeTime{fit.NewShapeTime(window)}
	return fit.ScalingOf(t.facts(), fit.Learn(t.facts(), seen, nil, policyOptions), window)
}

// firstSteps are not measured: connections and caches are cold.
const firstSteps = 2

// follow sends the lines of a worker.
func (t *limitedTraining) follow(p *clusterProcess, to chan<- stepLine) {
	for p.lines.Scan() {
		var line stepLine
		if json.Unmarshal(p.lines.Bytes(), &line) == nil {
			to <- line
		}
	}
}

// next returns the next line of any worker.
func (t *limitedTraining) next() stepLine {
	select {
	case line := <-t.steps:
		return line
	case <-time.After(30 * time.Second):
		t.e.b.Fatalf("%s: no step for 30 s", t.start.name)
		return stepLine{}
	}
}

// reportsPerWindow is the number of reports that the policy needs.
const reportsPerWindow = 3

// window returns the next reports.
func (t *limitedTraining) window() []fit.StepReport {
	var window []fit.StepReport
	for range reportsPerWindow {
		window = append(window, t.report())
	}
	t.lastWindow = window
	return window
}

// A report covers at least this time, and this number of steps.
const (
	reportTime  = 600 * time.Millisecond
	reportSteps = 4
)

// report returns the telemetry of the next steps.
func (t *limitedTraining) report() fit.StepReport {
	before := t.last
	steps := 0
	for {
		line := t.next()
		t.busy[line.Worker] += line.BusySeconds
		t.busySteps[line.Worker]++
		if line.Worker != 0 {
			continue
		}
		t.loss = line.Loss
		if steps++; steps >= reportSteps && time.Since(before.at) >= reportTime {
			break
		}
	}
	t.samples += float64(steps * t.shape.Workers * t.start.job.samples)
	stepSeconds := time.Since(before.at).Seconds() / float64(steps)
	straggler := t.stragglerRatio(stepSeconds)
	t.sample()
	after := &t.last
	seconds := after.at.Sub(before.at).Seconds()
	r := fit.StepReport{
		Shape:               t.shape,
		StepSeconds:         stepSeconds,
		StragglerRatio:      straggler,
		IOPressureRatio:     (after.ioStalled - before.ioStalled) / seconds,
		MemoryPressureRatio: (after.memStalled - before.memStalled) / seconds,
		IOWaitRatio:         (after.ioWaited - before.ioWaited) / (after.ticks - before.ticks),
	}
	t.addUse(&r, &before, seconds)
	return r
}

// addUse sets the use of CPU and links since an earlier sample.
func (t *limitedTraining) addUse(r *fit.StepReport, before *counterSample, seconds float64) {
	link := t.start.job.linkMB * 1e6
	for i, p := range t.processes() {
		now, then := t.last.seats[i], before.seats[i]
		used := (now.cpuSeconds - then.cpuSeconds) / seconds / coreRatio / p.seat.cores
		if i < len(t.workers) {
			r.WorkerCPURatio += used / float64(len(t.workers))
		} else {
			r.ServerCPURatio += used / float64(len(t.servers))
		}
		// A worker sends or receives: where both directions are busy at once, the link is full.
		r.LinkRatio = max(r.LinkRatio, min(1, (now.linkBytes-then.linkBytes)/seconds/link))
	}
}

// processes returns workers, then servers.
func (t *limitedTraining) processes() []*clusterProcess {
	return slices.Concat(t.workers, t.servers)
}

// stragglerRatio returns the largest step time of a worker, divided by their median, for a step that
// took some time with all waits. A worker's own step is its reading and computing, and the exchange,
// which is the same for all, without the wait for the slowest worker.
func (t *limitedTraining) stragglerRatio(stepSeconds float64) float64 {
	var means []float64
	for i, seconds := range t.busy {
		means = append(means, seconds/math.Max(1, t.busySteps[i]))
	}
	slices.Sort(means)
	n := len(means)
	median := (means[(n-1)/2] + means[n/2]) / 2
	return stepSeconds / (stepSeconds - (means[n-1] - median))
}

// sample begins a report.
func (t *limitedTraining) sample() {
	m := t.e.machine
	c := counterSample{at: time.Now(), ioStalled: m.stallSeconds("io"), memStalled: m.stallSeconds("memory")}
	c.ioWaited, c.ticks = m.ioWait()
	for _, p := range t.processes() {
		c.seats = append(c.seats, m.counters(p))
	}
	t.last = c
	t.busy, t.busySteps = make([]float64, len(t.workers)), make([]float64, len(t.workers))
}
