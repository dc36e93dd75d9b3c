package resize

import (
	"math/rand/v2"
	"slices"
	"time"

	"courier/policy"
	"courier/policy/fit"
	"courier/policy/speed"
)

// Knowledge is what the policy knows about the speed of a job.
type Knowledge string

// Kinds of knowledge.
const (
	KnowsNothing   Knowledge = "nothing" // jobs keep the guessed shape
	KnowsTruth     Knowledge = "true model"
	KnowsTelemetry Knowledge = "model learned from steps, CPU and link"
)

// The simulated cluster (section 3.6 of the design page resource-policies).
const (
	clusterCores = 256
	movePause    = 20 * time.Second // of a job at a change of its shape
	reportEvery  = 10.0             // seconds between two reports of a job
	reportNoise  = 0.05             // standard deviation of each reported number
	// reportsPerWindow is the number of reports between two judgements of a job.
	reportsPerWindow = 3
	tickSeconds      = 1.0 // resolution of the simulation
)

// ResizedJob is how a job ran.
type ResizedJob struct {
	Job          *GuessedJob
	QueueSeconds float64
	RunSeconds   float64
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

// epoch is the time of the first tick; the policy needs some instant.
var epoch = time.Unix(0, 0)

type resizeRun struct {
	knowledge Knowledge
	random    *rand.Rand
	now       float64
	free      int
	queue     []*ResizedJob
	running   []*runningTraining
	finished  []speed.FinishedJob
	outcome   Outcome
}

type runningTraining struct {
	policy.Training // as of the last decision; Seen has the former shapes
	result          *ResizedJob
	started         float64
	pausedUntil     float64
	nextReport      float64
	prior           *speed.Prior
	isReady         bool // the window is complete, and was not judged yet
}

// Simulate runs jobs in order of arrival until all have ended.
func Simulate(jobs []GuessedJob, k Knowledge, seed uint64) *Outcome {
	r := &resizeRun{knowledge: k, free: clusterCores, random: rand.New(rand.NewPCG(seed, 1))}
	r.outcome.Jobs = make([]ResizedJob, len(jobs))
	next := 0
	for ended := 0; ended < len(jobs); r.now += tickSeconds {
		for next < len(jobs) && jobs[next].ArrivalSeconds <= r.now {
			r.outcome.Jobs[next].Job = &jobs[next]
			r.queue = append(r.queue, &r.outcome.Jobs[next])
			next++
		}
		ended += r.end()
		r.plan()
		r.start()
		r.outcome.PeakCores = max(r.outcome.PeakCores, clusterCores-r.free)
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
			Training: policy.Training{
				Facts:     j.Job.Truth.Facts,
				Requested: j.Job.Guess,
				Shape:     j.Job.Guess,
				Model:     j.Job.Speeds,
				Pause:     movePause,
			},
			result:     j,
			started:    r.now,
			nextReport: r.now + reportEvery,
			prior:      speed.Nearest(r.finished, j.Job.Truth.Facts),
		})
	}
}

// advance runs a job for a tick.
func (r *resizeRun) advance(t *runningTraining) {
	if r.now < t.pausedUntil {
		return
	}
	t.DoneSamples += t.result.Job.speed(t.Shape) * tickSeconds
	if r.now+tickSeconds < t.nextReport || r.knowledge == KnowsNothing {
		return
	}
	t.nextReport += reportEvery
	t.Window = append(t.Window, t.result.Job.report(t.Shape, reportNoise, r.random))
	t.isReady = len(t.Window)%reportsPerWindow == 0
}

// end removes the jobs that have ended, and returns their number.
func (r *resizeRun) end() int {
	before := len(r.running)
	r.running = slices.DeleteFunc(r.running, func(t *runningTraining) bool {
		over := t.DoneSamples - t.result.Job.Samples()
		if over < 0 {
			return false
		}
		t.result.RunSeconds = r.now - t.started - over/t.result.Job.speed(t.Shape)
		r.free += t.Shape.Cores()
		if m := r.learn(t); m != nil {
			r.finished = append(r.finished, m.Finished())
		}
		return true
	})
	return before - len(r.running)
}

// learn returns the model of a job that learns; nil before its first window.
func (r *resizeRun) learn(t *runningTraining) *speed.Model {
	if r.knowledge != KnowsTelemetry {
		return nil
	}
	seen := slices.Clone(t.Seen)
	if len(t.Window) >= reportsPerWindow {
		seen = append(seen, speed.NewShapeTime(t.Window))
	}
	return speed.Learn(t.result.Job.Truth.Facts, seen, t.prior, largest)
}

// plan asks the policy about the jobs whose windows are complete, and carries out its moves.
func (r *resizeRun) plan() {
	if !slices.ContainsFunc(r.running, func(t *runningTraining) bool { return t.isReady }) {
		return
	}
	v := &policy.View{Now: epoch.Add(duration(r.now)), Units: clusterCores}
	ready := map[string]*runningTraining{}
	for _, t := range r.running {
		j := policy.Job{ID: t.result.Job.ID, Units: t.Shape.Cores()}
		if t.isReady {
			t.isReady = false
			ready[j.ID], j.Training = t, r.view(t)
			r.compareBottleneck(j.Training, t.result.Job)
		}
		v.Jobs = append(v.Jobs, j)
	}
	for _, j := range r.queue {
		v.Queue = append(v.Queue, policy.Job{ID: j.Job.ID})
	}
	moves := resizing.Plan(v)
	for id, record := range resizing.Remember(v, moves) {
		ready[id].Record = record
	}
	for _, m := range moves {
		r.move(ready[m.Job], m.Shape)
	}
}

// resizing is the policy.
var resizing = fit.New(largest)

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func (r *resizeRun) move(t *runningTraining, to speed.Shape) {
	t.Seen = append(t.Seen, speed.NewShapeTime(t.Window))
	r.free -= to.Cores() - t.Shape.Cores()
	t.Shape, t.Window = to, nil
	t.pausedUntil = r.now + movePause.Seconds()
	t.nextReport = t.pausedUntil + reportEvery
}

// view returns what the policy knows about a job.
func (r *resizeRun) view(t *runningTraining) *policy.Training {
	t.Elapsed = duration(r.now - t.started)
	t.RemainingSamples = t.result.Job.Samples() - t.DoneSamples
	if r.knowledge != KnowsTruth {
		t.Model = r.learn(t)
	}
	return &t.Training
}

// compareBottleneck counts whether the bottleneck of a window is the true one.
func (r *resizeRun) compareBottleneck(v *policy.Training, job *GuessedJob) {
	if !speed.IsStable(v.Window) {
		return
	}
	var scaling speed.Scaling
	if v.Model != nil {
		scaling = speed.ScalingOf(v.Facts, v.Model, v.Window)
	}
	isClear := 0
	if job.isClear(v.Shape) {
		isClear = 1
	}
	r.outcome.Windows++
	r.outcome.ClearWindows += isClear
	if speed.FindBottleneck(v.Window, scaling) == job.trueBottleneck(v.Shape) {
		r.outcome.Named++
		r.outcome.ClearNamed += isClear
	}
}
