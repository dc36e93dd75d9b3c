package elastic

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"courier/policy"
)

// origin is the time of a view at which the clock of the trace is 0.
var origin = time.Unix(0, 0).UTC()

// gpusPerNode is the size of a node. Placement does not matter: numbers of GPUs that are powers of
// two always fit when their sum fits.
const gpusPerNode = 8

// GPUCluster describes the simulated cluster.
type GPUCluster struct {
	GPUs int
	Slot time.Duration // minimum time between two moments
	// Pause is derived from the size of the cluster and the slot if its Charge alone is set.
	Pause policy.Pause
}

// NewCluster returns a cluster with the pauses that the authors of ElasticFlow measured: 2 s and at
// restarts 27 s more below 256 GPUs, otherwise 7 s and 47 s more.
func NewCluster(gpus int, slot time.Duration, charge policy.Charge) GPUCluster {
	pause := policy.Pause{
		Base:         2 * time.Second,
		PerDoubling:  2 * time.Second,
		Restart:      27 * time.Second,
		RestartEvery: int(slot.Seconds()),
		Charge:       charge,
	}
	if gpus >= 256 {
		pause.Base, pause.Restart = 7*time.Second, 47*time.Second
	}
	return GPUCluster{gpus, slot, pause}
}

// Validate returns an error that names the first invalid field.
func (c *GPUCluster) Validate() error {
	if c.GPUs < 1 || c.GPUs > 1<<20 {
		return fmt.Errorf("--gpus is %d, want 1 to %d", c.GPUs, 1<<20)
	}
	if c.Slot < 0 {
		return fmt.Errorf("--slot is %s, want 0 or more", c.Slot)
	}
	return nil
}

func (c *GPUCluster) nodes() []policy.NodeView {
	var nodes []policy.NodeView
	for left := c.GPUs; left > 0; left -= gpusPerNode {
		name := fmt.Sprintf("node-%03d", len(nodes))
		nodes = append(nodes, policy.NodeView{Name: name, Units: min(left, gpusPerNode)})
	}
	return nodes
}

// world is the state of a run.
type world struct {
	cluster GPUCluster
	nodes   []policy.NodeView
	rates   Throughputs
	known   knowledge
	jobs    []*simulatedJob // of the trace, in order of submission

	next       int // index of the next job to submit
	recent     []policy.ElasticJob
	queue      []*simulatedJob // submitted, neither admitted nor refused
	active     []*simulatedJob // admitted, unfinished
	moments    int
	lastMoment time.Duration
	review     time.Duration // 0: none
}

// simulatedJob is the state of a job of the trace.
type simulatedJob struct {
	TraceJob
	options   []gpuOption // own batch size first
	chosen    int         // index of the admitted option
	left      float64     // iterations left at the chosen batch size
	isDecided bool
	admitted  bool

	gpus        int
	since       time.Duration // start of the stretch
	updated     time.Duration // time of left
	pausedUntil time.Duration
	finished    time.Duration // 0: unfinished
	stretches   []Stretch

	isMeasured map[int]bool // numbers of GPUs at which the rate was measured
	measured   int          // the last of them; 0: none
}

// gpuOption is a batch size with the true rates.
type gpuOption struct {
	batchSize  int
	iterations float64
	curve      policy.Curve
}

// advance brings the progress of a job to a time.
func (j *simulatedJob) advance(now time.Duration) {
	if from := max(j.updated, j.pausedUntil); j.gpus > 0 && now > from {
		j.left -= j.rate() * (now - from).Seconds()
	}
	j.updated = now
}

func (j *simulatedJob) rate() float64 {
	return j.options[j.chosen].curve.Rate(j.gpus)
}

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
func (w *world) play(ctx context.Context, decide func(*policy.ClusterView, time.Time) policy.MoveDecision,
	progress func(submitted int)) error {
	for {
		now, ok := w.nextEvent()
		if !ok {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		w.finish(now)
		w.submit(now)
		progress(w.next)

		view := w.view(now)
		decision := decide(view, origin.Add(now))
		if err := policy.Check(view, origin.Add(now), decision); err != nil {
			return fmt.Errorf("at %s: %w", now, err)
		}
		w.apply(now, decision)
	}
}

// nextEvent returns the time of the next submission, end or review, and false after the last one.
func (w *world) nextEvent() (time.Duration, bool) {
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
	return at, at < math.MaxInt64
}

// finish ends the jobs whose last iteration is done.
func (w *world) finish(now time.Duration) {
	left := w.active[:0]
	for _, j := range w.active {
		if j.gpus == 0 || j.end() > now {
			left = append(left, j)
			continue
		}
		j.advance(now)
		if j.measure(now) {
			w.known.measured(j)
		}
		j.stop(now)
		j.finished = now
	}
	w.active = left
}

func (w *world) submit(now time.Duration) {
	for ; w.next < len(w.jobs) && w.jobs[w.next].Submitted <= now; w.next++ {
		j := w.jobs[w.next]
		w.queue = append(w.queue, j)
		w.recent = append(w.recent, w.known.job(j))
	}
	if extra := len(w.recent) - policy.RecentJobs; extra > 0 {
		w.recent = slices.Delete(w.recent, 0, extra)
	}
}

// view returns what a policy may know: nothing about jobs that are not submitted.
func (w *world) view(now time.Duration) *policy.ClusterView {
	v := &policy.ClusterView{
		Nodes:      w.nodes,
		Slot:       w.cluster.Slot,
		Moments:    w.moments,
		LastMoment: origin.Add(w.lastMoment),
		Pause:      w.cluster.Pause,
		Recent:     w.recent,
		Jobs:       make([]policy.ElasticJob, 0, len(w.active)),
		Queue:      make([]policy.ElasticJob, 0, len(w.queue)),
	}
	for _, j := range w.active {
		j.advance(now)
		if j.measure(now) {
			w.known.measured(j)
		}
	}
	for _, j := range w.active {
		v.Jobs = append(v.Jobs, w.known.job(j))
	}
	for _, j := range w.queue {
		v.Queue = append(v.Queue, w.known.job(j))
	}
	return v
}

// apply carries out a checked decision.
func (w *world) apply(now time.Duration, d policy.MoveDecision) {
	changed := map[string]int{}
	isMoment := false
	for _, m := range d.Moves {
		switch m.Kind {
		case policy.Resize:
			changed[m.Job] = m.Units
			isMoment = isMoment || m.Units > 0
		default:
			w.settle(m)
		}
	}
	for _, j := range w.active {
		if gpus, ok := changed[j.ID]; ok {
			j.stop(now)
			j.start(now, gpus)
		}
	}
	if isMoment {
		w.pause(now, changed)
	}

	w.review = 0
	if !d.ReviewAt.IsZero() {
		w.review = d.ReviewAt.Sub(origin).Truncate(time.Microsecond)
		w.review = max(w.review, now+time.Microsecond)
	}
}

// settle admits or refuses a queued job.
func (w *world) settle(m policy.Move) {
	for i, j := range w.queue {
		if j.ID != m.Job {
			continue
		}
		w.queue = append(w.queue[:i], w.queue[i+1:]...)
		j.isDecided = true
		if m.Kind == policy.Admit {
			j.admitted, j.chosen = true, m.Option
			j.left = j.options[m.Option].iterations
			w.active = append(w.active, j)
		}
		return
	}
}

// pause makes this time a moment.
func (w *world) pause(now time.Duration, changed map[string]int) {
	isRestart := w.cluster.Pause.Restarts(w.moments)
	for _, j := range w.active {
		_, isChanged := changed[j.ID]
		isPaused := w.cluster.Pause.Charge != policy.ChargeChanged || isChanged
		if j.gpus > 0 && isPaused {
			j.pausedUntil = now + duration(w.cluster.Pause.Seconds(j.gpus, isChanged, isRestart))
		}
	}
	w.moments++
	w.lastMoment = now
}

func (j *simulatedJob) start(now time.Duration, gpus int) {
	j.gpus, j.since, j.updated = gpus, now, now
	j.pausedUntil = 0
}

// stop ends the current stretch.
func (j *simulatedJob) stop(now time.Duration) {
	if j.gpus > 0 && now > j.since {
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
