package elastic

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"courier/policy"
)

// origin is the time of a view at which the clock of the trace is 0.
var origin = time.Unix(0, 0).UTC()

// world is the state of a run.
type world struct {
	Options
	pauses policy.Pause
	jobs   []*simulatedJob // of the trace, in order of submission

	next       int // index of the next job to submit
	recent     []policy.Job
	queue      []*simulatedJob // submitted, neither admitted nor refused
	active     []*simulatedJob // admitted, unfinished
	moments    int
	lastMoment time.Duration
	review     time.Duration // 0: none

	heldSeconds, pauseSeconds float64 // GPUs times seconds; pauses are a part of the held time
}

// Stretch is a time in which a job holds one number of GPUs.
type Stretch struct {
	Job        string
	Start, End time.Duration
	GPUs       int
	BatchSize  int
}

// sortSchedule orders stretches by start, then by job.
func sortSchedule(schedule []Stretch) {
	slices.SortFunc(schedule, func(a, b Stretch) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Job, b.Job))
	})
}

// simulatedJob is the state of a job of the trace.
type simulatedJob struct {
	TraceJob
	options  []gpuOption // own batch size first
	chosen   int         // index of the admitted option
	left     float64     // iterations left at the chosen batch size
	admitted bool
	isDone   bool // all iterations are done
	isKept   bool // and were before the deadline

	gpus        int
	since       time.Duration // start of the stretch
	updated     time.Duration // time of left
	pausedUntil time.Duration
	stretches   []Stretch
}

// gpuOption is a batch size with the true rates.
type gpuOption struct {
	batchSize  int
	iterations float64
	curve      policy.Curve
}

// advance brings the progress of a job to a time.
func (w *world) advance(j *simulatedJob, now time.Duration) {
	from := max(j.updated, j.pausedUntil)
	if j.gpus > 0 && now > from {
		before := max(0, j.left)
		j.left -= j.rate() * (now - from).Seconds()
		need := j.options[j.chosen].iterations
		if isDone := j.left <= 1e-9*need+1e-6; isDone && !j.isDone { // sums of iterations have errors
			j.isDone = true
			j.isKept = from.Seconds()+before/j.rate() <= j.Deadline.Seconds()+1e-6
		}
	}
	w.pauseSeconds += float64(j.gpus) * (min(from, now) - j.updated).Seconds()
	j.updated = now
}

func (j *simulatedJob) rate() float64 { return j.options[j.chosen].curve.Rate(j.gpus) }

// end returns when a running job ends if nothing changes, rounded up to a millisecond.
func (j *simulatedJob) end() time.Duration {
	from := max(j.updated, j.pausedUntil)
	seconds := max(0, j.left) / j.rate()
	if seconds > maxTraceSeconds {
		return math.MaxInt64
	}
	at := from + time.Duration(seconds*float64(time.Second))
	return at.Truncate(time.Millisecond) + time.Millisecond
}

// play runs the trace to its end.
func (w *world) play(ctx context.Context, decide func(*policy.View) []policy.Move) error {
	for now := w.nextEvent(); now < math.MaxInt64; now = w.nextEvent() {
		if err := ctx.Err(); err != nil {
			return err
		}
		w.finish(now)
		w.submit(now)

		w.apply(now, decide(w.view(now)))
	}
	return nil
}

// nextEvent returns the time of the next submission, end or review; the largest time after the last one.
func (w *world) nextEvent() time.Duration {
	at := time.Duration(math.MaxInt64)
	if w.next < len(w.jobs) {
		at = w.jobs[w.next].Submitted
	}
	for _, j := range w.active {
		if j.gpus > 0 {
			at = min(at, j.end())
		}
	}
	if w.review > 0 && (len(w.active) > 0 || len(w.queue) > 0) {
		at = min(at, w.review)
	}
	return at
}

// finish ends the jobs whose last iteration is done.
func (w *world) finish(now time.Duration) {
	left := w.active[:0]
	for _, j := range w.active {
		if j.gpus == 0 || j.end() > now {
			left = append(left, j)
			continue
		}
		w.advance(j, now)
		w.stop(j, now)
	}
	w.active = left
}

func (w *world) submit(now time.Duration) {
	for ; w.next < len(w.jobs) && w.jobs[w.next].Submitted <= now; w.next++ {
		j := w.jobs[w.next]
		w.queue = append(w.queue, j)
		w.recent = append(w.recent, j.view())
	}
	if extra := len(w.recent) - policy.RecentJobs; extra > 0 {
		w.recent = slices.Delete(w.recent, 0, extra)
	}
}

// view returns what a policy may know: nothing about jobs that are not submitted.
func (w *world) view(now time.Duration) *policy.View {
	v := &policy.View{
		Now:        origin.Add(now),
		Units:      w.GPUs,
		Slot:       w.Slot,
		Moments:    w.moments,
		LastMoment: origin.Add(w.lastMoment),
		Pause:      w.pauses,
		Recent:     w.recent,
	}
	for _, j := range w.active {
		w.advance(j, now)
	}
	for _, j := range w.active {
		v.Jobs = append(v.Jobs, j.view())
	}
	for _, j := range w.queue {
		v.Queue = append(v.Queue, j.view())
	}
	return v
}

// view returns what a policy knows about the job. An admitted job has one option.
func (j *simulatedJob) view() policy.Job {
	v := policy.Job{
		ID:          j.ID,
		Submitted:   origin.Add(j.Submitted),
		Deadline:    origin.Add(j.Deadline),
		Units:       j.gpus,
		PausedUntil: origin.Add(j.pausedUntil),
	}
	if j.admitted {
		v.Options = []policy.Option{{Work: max(0, j.left), Curve: j.options[j.chosen].curve}}
		return v
	}
	for i := range j.options {
		o := &j.options[i]
		v.Options = append(v.Options, policy.Option{Work: o.iterations, Curve: o.curve})
	}
	return v
}

// apply carries out moves.
func (w *world) apply(now time.Duration, moves []policy.Move) {
	w.review = 0
	changed := map[string]int{}
	isMoment := false
	for _, m := range moves {
		switch m.Kind {
		case policy.Resize:
			changed[m.Job] = m.Units
			isMoment = isMoment || m.Units > 0
		case policy.Review:
			w.review = max(m.At.Sub(origin).Truncate(time.Microsecond), now+time.Microsecond)
		default:
			w.settle(m)
		}
	}
	for _, j := range w.active {
		if gpus, ok := changed[j.ID]; ok {
			w.stop(j, now)
			j.gpus, j.since, j.updated, j.pausedUntil = gpus, now, now, 0
		}
	}
	if isMoment {
		w.pause(now, changed)
	}
}

// settle admits or refuses a queued job.
func (w *world) settle(m policy.Move) {
	i := slices.IndexFunc(w.queue, func(j *simulatedJob) bool { return j.ID == m.Job })
	j := w.queue[i]
	w.queue = slices.Delete(w.queue, i, i+1)
	if m.Kind == policy.Admit {
		j.admitted, j.chosen = true, m.Option
		j.left = j.options[m.Option].iterations
		w.active = append(w.active, j)
	}
}

// pause makes this time a moment.
func (w *world) pause(now time.Duration, changed map[string]int) {
	isRestart := w.pauses.Restarts(w.moments)
	for _, j := range w.active {
		_, isChanged := changed[j.ID]
		isPaused := w.pauses.Charge != policy.ChargeChanged || isChanged
		if j.gpus > 0 && isPaused {
			j.pausedUntil = now + duration(w.pauses.Seconds(j.gpus, isChanged, isRestart))
		}
	}
	w.moments++
	w.lastMoment = now
}

// stop ends the current stretch of a job.
func (w *world) stop(j *simulatedJob, now time.Duration) {
	if j.gpus > 0 && now > j.since {
		w.heldSeconds += float64(j.gpus) * (now - j.since).Seconds()
		j.stretches = append(j.stretches, Stretch{
			Job:       j.ID,
			Start:     j.since,
			End:       now,
			GPUs:      j.gpus,
			BatchSize: j.options[j.chosen].batchSize,
		})
	}
	j.gpus = 0
}
