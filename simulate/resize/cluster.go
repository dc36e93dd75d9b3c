package resize

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"courier/policy/fit"
)

// Knowledge is what the policy knows about the speed of a job.
type Knowledge string

// Kinds of knowledge.
const (
	KnowsNothing   Knowledge = "nothing"   // jobs keep the guessed shape
	KnowsTruth     Knowledge = "truth"     // the true speed model
	KnowsTelemetry Knowledge = "telemetry" // a model learned from step times, CPU and link use
	KnowsSteps     Knowledge = "steps"     // a model learned from step times alone
)

// Cluster is how jobs are simulated. A zero field means the documented default.
type Cluster struct {
	Cores         int           // default: 256
	Pause         time.Duration // of a job at a change of its shape; default: 20 s
	ReportSeconds float64       // between two reports of a job; default: 10
	NoiseRatio    float64       // standard deviation of each reported number; default: 0.05
	Knowledge     Knowledge
	Policy        fit.Options
}

func (c Cluster) withDefaults() Cluster {
	c.Cores = cmp.Or(c.Cores, 256)
	c.Pause = cmp.Or(c.Pause, 20*time.Second)
	c.ReportSeconds = cmp.Or(c.ReportSeconds, 10)
	c.NoiseRatio = cmp.Or(c.NoiseRatio, 0.05)
	c.Policy.Largest = largest
	return c
}

// ResizedJob is how a job ran.
type ResizedJob struct {
	Job           *GuessedJob
	QueueSeconds  float64
	RunSeconds    float64
	Moves, Undone int
}

// CompletionSeconds returns the time from the arrival to the end.
func (j *ResizedJob) CompletionSeconds() float64 { return j.QueueSeconds + j.RunSeconds }

// Outcome is the result of a simulation.
type Outcome struct {
	Jobs []ResizedJob // in order of arrival
	// Windows counts the stable windows, and Named those whose bottleneck is the true one. In the
	// Clear ones, one part takes at least 85 % of the step.
	Windows, Named           int
	ClearWindows, ClearNamed int
	PeakCores                int // the most cores that the jobs held at a time
}

// tickSeconds is the resolution of the simulation.
const tickSeconds = 1.0

// epoch is the time of the first tick; the policy needs some instant.
var epoch = time.Unix(0, 0)

// resizeRun is a running simulation.
type resizeRun struct {
	Cluster
	random   *rand.Rand
	now      float64
	free     int
	queue    []*ResizedJob
	running  []*runningTraining
	finished []fit.FinishedJob
	outcome  Outcome
}

// runningTraining is the state of a job in the simulation.
type runningTraining struct {
	result      *ResizedJob
	shape       fit.Shape
	started     float64
	done        float64 // samples
	pausedUntil float64
	nextReport  float64
	window      []fit.StepReport
	seen        []fit.ShapeTime // of former shapes
	prior       *fit.SpeedPrior
	record      fit.ResizeRecord
	isReady     bool // the window is complete, and was not judged yet
}

// Simulate runs jobs in order of arrival until all have ended.
func Simulate(jobs []GuessedJob, c Cluster, seed uint64) *Outcome {
	r := &resizeRun{Cluster: c.withDefaults(), random: rand.New(rand.NewPCG(seed, 1))}
	r.free = r.Cores
	r.outcome.Jobs = make([]ResizedJob, len(jobs))
	next := 0
	for ended := 0; ended < len(jobs); r.now += tickSeconds {
		for next < len(jobs) && jobs[next].ArrivalSeconds <= r.now {
			r.outcome.Jobs[next].Job = &jobs[next]
			r.queue = append(r.queue, &r.outcome.Jobs[next])
			next++
		}
		ended += r.end()
		r.resize()
		r.start()
		r.outcome.PeakCores = max(r.outcome.PeakCores, r.Cores-r.free)
		for _, t := range r.running {
			r.advance(t)
		}
	}
	return &r.outcome
}

// start starts the first jobs of the queue if their guessed shape is free.
func (r *resizeRun) start() {
	for len(r.queue) > 0 && r.queue[0].Job.Guess.Cores() <= r.free {
		j := r.queue[0]
		r.queue = r.queue[1:]
		j.QueueSeconds = r.now - j.Job.ArrivalSeconds
		r.free -= j.Job.Guess.Cores()
		r.running = append(r.running, &runningTraining{
			result:     j,
			shape:      j.Job.Guess,
			started:    r.now,
			nextReport: r.now + r.ReportSeconds,
			prior:      fit.Nearest(r.finished, j.Job.Facts),
		})
	}
}

// advance runs a job for a tick.
func (r *resizeRun) advance(t *runningTraining) {
	if r.now < t.pausedUntil {
		return
	}
	t.done += t.result.Job.speed(t.shape) * tickSeconds
	if r.now+tickSeconds < t.nextReport || r.Knowledge == KnowsNothing {
		return
	}
	t.nextReport += r.ReportSeconds
	t.window = append(t.window, t.result.Job.report(t.shape, r.NoiseRatio, r.random))
	t.isReady = len(t.window)%reportsPerWindow == 0
}

// reportsPerWindow is the number of reports between two judgements of a job.
const reportsPerWindow = 3

// end removes the jobs that have ended, and returns their number.
func (r *resizeRun) end() int {
	before := len(r.running)
	r.running = slices.DeleteFunc(r.running, func(t *runningTraining) bool {
		over := t.done - t.result.Job.Samples()
		if over < 0 {
			return false
		}
		t.result.RunSeconds = r.now - t.started - over/t.result.Job.speed(t.shape)
		r.free += t.shape.Cores()
		if m := r.learn(t); m != nil {
			r.finished = append(r.finished, m.Finished())
		}
		return true
	})
	return before - len(r.running)
}

// learn returns the model of a job that learns; nil before its first window.
func (r *resizeRun) learn(t *runningTraining) *fit.SpeedModel {
	if r.Knowledge != KnowsTelemetry && r.Knowledge != KnowsSteps {
		return nil
	}
	seen := slices.Clone(t.seen)
	if len(t.window) >= reportsPerWindow {
		seen = append(seen, r.shapeTime(t))
	}
	return fit.Learn(t.result.Job.Facts, seen, t.prior, r.Policy)
}

func (r *resizeRun) shapeTime(t *runningTraining) fit.ShapeTime {
	s := fit.NewShapeTime(t.window)
	if r.Knowledge == KnowsSteps {
		s.ComputeCoreSeconds, s.UpdateSeconds, s.TransferSeconds = 0, 0, 0
	}
	return s
}

// resize asks the policy about the jobs whose windows are complete, and carries out its moves.
func (r *resizeRun) resize() {
	v := &fit.ResizeView{FreeCores: r.free, QueuedJobs: len(r.queue)}
	ready := map[string]*runningTraining{}
	for _, t := range r.running {
		if t.isReady {
			t.isReady = false
			ready[t.result.Job.ID] = t
			v.Jobs = append(v.Jobs, r.view(t))
		}
	}
	if len(v.Jobs) == 0 {
		return
	}
	for i := range v.Jobs {
		r.compareBottleneck(&v.Jobs[i], ready[v.Jobs[i].ID])
	}
	moves, records := fit.Plan(v, r.time(), r.Policy)
	for id, record := range records {
		ready[id].record = record
	}
	for _, m := range moves {
		r.move(ready[m.Job], m)
	}
}

func (r *resizeRun) move(t *runningTraining, m fit.Resizing) {
	t.seen = append(t.seen, r.shapeTime(t))
	r.free -= m.To.Cores() - t.shape.Cores()
	t.shape, t.window = m.To, nil
	t.pausedUntil = r.now + r.Pause.Seconds()
	t.nextReport = t.pausedUntil + r.ReportSeconds
	t.result.Moves++
	if m.Rule == fit.RuleUndo {
		t.result.Undone++
	}
}

// view returns what the policy sees of a job.
func (r *resizeRun) view(t *runningTraining) fit.ResizableJob {
	job := t.result.Job
	v := fit.ResizableJob{
		ID:               job.ID,
		Facts:            job.Facts,
		Requested:        job.Guess,
		Shape:            t.shape,
		Window:           t.window,
		Model:            job.Speeds,
		Elapsed:          time.Duration((r.now - t.started) * float64(time.Second)),
		DoneSamples:      t.done,
		RemainingSamples: job.Samples() - t.done,
		Pause:            r.Pause,
		Record:           t.record,
	}
	if r.Knowledge != KnowsTruth {
		v.Model = r.learn(t)
	}
	if v.Model != nil {
		v.Scaling = fit.ScalingOf(v.Facts, v.Model, t.window)
	}
	return v
}

func (r *resizeRun) time() time.Time {
	return epoch.Add(time.Duration(r.now * float64(time.Second)))
}
