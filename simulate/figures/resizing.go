package figures

import (
	"math/rand/v2"
	"slices"
	"time"

	"courier/policy"
	"courier/policy/fit"
	"courier/policy/speed"
)

// knowledge is what the policy knows about the speed of a job.
type knowledge string

// The kinds of knowledge. Without any, jobs keep the guessed shape.
const (
	knowsNothing knowledge = "nothing"
	knowsTruth   knowledge = "true model"
	learns       knowledge = "model learned from steps, CPU and link"
)

// The simulated cluster (section 3.6 of the design page resource-policies). Trainings start in the shapes
// that users guessed, from a first-in-first-out queue.
const (
	clusterCores = 256
	movePause    = 20 * time.Second // of a job at a change of its shape
	reportEvery  = 10.0             // seconds between two reports of a job
	reportNoise  = 0.05             // standard deviation of each reported number
	// reportsPerWindow is the number of reports between two judgements of a job.
	reportsPerWindow = 3
	tickSeconds      = 1.0 // resolution of the simulation
)

// resizeOutcome is the result of a simulation.
type resizeOutcome struct {
	jobs      []resizedJob // in order of arrival
	peakCores int          // the most cores that the jobs held at a time
}

// resizedJob is a job and how it runs.
type resizedJob struct {
	*guessedJob
	queueSeconds, runSeconds float64

	training    policy.Training // as of the last decision; Seen has the former shapes
	started     float64
	pausedUntil float64
	nextReport  float64
	prior       *speed.Prior
	isReady     bool // the window is complete, and was not judged yet
}

type resizeRun struct {
	knowledge knowledge
	random    *rand.Rand
	now       float64
	free      int
	queue     []*resizedJob
	running   []*resizedJob
	finished  []speed.FinishedJob
	outcome   resizeOutcome
}

// simulateResizing runs jobs in order of arrival until all have ended.
func simulateResizing(jobs []guessedJob, k knowledge, seed uint64) *resizeOutcome {
	r := &resizeRun{knowledge: k, free: clusterCores, random: rand.New(rand.NewPCG(seed, 1))}
	r.outcome.jobs = make([]resizedJob, len(jobs))
	next := 0
	for ended := 0; ended < len(jobs); r.now += tickSeconds {
		for ; next < len(jobs) && jobs[next].arrivalSeconds <= r.now; next++ {
			r.outcome.jobs[next].guessedJob = &jobs[next]
			r.queue = append(r.queue, &r.outcome.jobs[next])
		}
		ended += r.end()
		r.plan()
		r.start()
		r.outcome.peakCores = max(r.outcome.peakCores, clusterCores-r.free)
		for _, j := range r.running {
			r.advance(j)
		}
	}
	return &r.outcome
}

// start starts the first jobs of the queue if their guessed shape is free.
func (r *resizeRun) start() {
	for len(r.queue) > 0 && r.queue[0].guess.Cores() <= r.free {
		j := r.queue[0]
		r.queue = r.queue[1:]
		r.free -= j.guess.Cores()
		r.running = append(r.running, j)
		j.queueSeconds = r.now - j.arrivalSeconds
		j.started, j.nextReport = r.now, r.now+reportEvery
		j.prior = speed.Nearest(r.finished, j.truth.Facts)
		j.training = policy.Training{
			Facts:     j.truth.Facts,
			Requested: j.guess,
			Shape:     j.guess,
			Model:     j.speeds,
			Pause:     movePause,
		}
	}
}

// advance runs a job for a tick.
func (r *resizeRun) advance(j *resizedJob) {
	if r.now < j.pausedUntil {
		return
	}
	t := &j.training
	t.DoneSamples += j.speed(t.Shape) * tickSeconds
	if r.now+tickSeconds < j.nextReport || r.knowledge == knowsNothing {
		return
	}
	j.nextReport += reportEvery
	t.Window = append(t.Window, j.report(t.Shape, r.random))
	j.isReady = len(t.Window)%reportsPerWindow == 0
}

// end removes the jobs that have ended, and returns their number.
func (r *resizeRun) end() int {
	before := len(r.running)
	r.running = slices.DeleteFunc(r.running, func(j *resizedJob) bool {
		over := j.training.DoneSamples - j.samples()
		if over < 0 {
			return false
		}
		j.runSeconds = r.now - j.started - over/j.speed(j.training.Shape)
		r.free += j.training.Shape.Cores()
		if r.knowledge == learns {
			if m := j.learn(); m != nil {
				r.finished = append(r.finished, m.Finished())
			}
		}
		return true
	})
	return before - len(r.running)
}

// learn returns the model of a job by its reports; nil before its first window.
func (j *resizedJob) learn() *speed.Model {
	seen := slices.Clone(j.training.Seen)
	if len(j.training.Window) >= reportsPerWindow {
		seen = append(seen, speed.NewShapeTime(j.training.Window))
	}
	return speed.Learn(j.truth.Facts, seen, j.prior, largest)
}

// resizing is the policy.
var resizing = fit.New(largest)

// plan asks the policy about the jobs whose windows are complete, and carries out its moves.
func (r *resizeRun) plan() {
	if !slices.ContainsFunc(r.running, func(j *resizedJob) bool { return j.isReady }) {
		return
	}
	v := &policy.View{Now: timeAt(r.now), Units: clusterCores}
	ready := map[string]*resizedJob{}
	for _, j := range r.running {
		known := policy.Job{ID: j.id, Units: j.training.Shape.Cores()}
		if j.isReady {
			j.isReady = false
			t := &j.training
			t.Elapsed = time.Duration((r.now - j.started) * float64(time.Second))
			t.RemainingSamples = j.samples() - t.DoneSamples
			if r.knowledge == learns {
				t.Model = j.learn()
			}
			ready[j.id], known.Training = j, t
		}
		v.Jobs = append(v.Jobs, known)
	}
	for _, j := range r.queue {
		v.Queue = append(v.Queue, policy.Job{ID: j.id})
	}
	moves := resizing.Plan(v)
	for id, record := range resizing.Remember(v, moves) {
		ready[id].training.Record = record
	}
	for _, m := range moves {
		r.move(ready[m.Job], m.Shape)
	}
}

// timeAt converts seconds to a time; the policies need some instant.
func timeAt(seconds float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func (r *resizeRun) move(j *resizedJob, to speed.Shape) {
	t := &j.training
	t.Seen = append(t.Seen, speed.NewShapeTime(t.Window))
	r.free -= to.Cores() - t.Shape.Cores()
	t.Shape, t.Window = to, nil
	j.pausedUntil = r.now + movePause.Seconds()
	j.nextReport = j.pausedUntil + reportEvery
}
