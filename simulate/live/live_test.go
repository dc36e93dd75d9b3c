package live_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"courier/advisor"
	"courier/advisor/advisortest"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats-server/v2/server/ats"
)

// The node has two hardware threads, and its jobs are those of BenchmarkElasticQueue, with its epoch
// times.
const (
	modelName = "digits-mlp"
	nodeName  = "node-a"
	batchSize = 32

	jobsOfQueue   = 30
	aloneSeconds  = 0.22 // of an epoch on both CPUs
	oneSeconds    = 0.38 // on one
	overload      = 1.2  // of the epoch time, when processes share a CPU
	meanGapEpochs = 17   // between two arrivals: 76 % of the time on both CPUs
)

var twoCPUs = &advisortest.Node{
	Hardware:       schemas.Hardware{Cores: 2, CPUModel: "x", Speed: 1e9},
	Model:          modelName,
	BatchSize:      batchSize,
	CPUs:           []uint32{1, 2},
	Others:         []float64{0, 1, 2, 3, 4},
	MaxProcesses:   6,
	EpochSeconds:   twoCPUSeconds,
	StartupSeconds: 0.3,
	Accuracy:       func(epochs float64) float64 { return 1 - 0.5/epochs },
}

func twoCPUSeconds(cpus, processes float64) float64 {
	seconds := oneSeconds
	if cpus > 1 {
		seconds = aloneSeconds
	}
	if processes > 2 {
		seconds *= overload * processes / 2
	}
	return seconds
}

// world is how a node differs from what the regressors know about it.
type world struct {
	name           string
	slowdown       float64 // of all epochs
	jobSpread      float64 // standard deviation of the logarithm of a job's speed
	epochSpread    float64 // and of an epoch
	startupSeconds float64
	moveEpochs     float64 // epochs of work that a move of CPUs costs
}

// scheduler decides when a job starts, and with how many CPUs.
type scheduler struct {
	name  string
	cpus  int // of each job; 0: Courier decides
	slots int // jobs that may run at once
}

var schedulers = []scheduler{{"elastic", 0, 0}, {"edf", 2, 1}, {"fixed", 1, 2}}

// queue is a node with its jobs.
type queue struct {
	t    testing.TB
	w    world
	node *advisortest.Node
	b    *bus.Bus // nil without an advisor
	cpu  bool     // epochs report the CPU time of their job, which uses all of its CPUs

	betweenEpochs bool // CPUs change between two epochs, and jobs wait for their loans
	omitsApplied  bool // the runners do not publish that CPUs have changed

	mu       sync.Mutex
	held     map[string]int              // CPUs, by job
	free     int                         // slots
	waiting  map[time.Time]chan struct{} // by deadline
	kept     int
	promised int // jobs that were promised their SLO
	broken   int // those of them that missed it
	moves    int
	waited   time.Duration // of all jobs, for their loans
	seconds  float64       // of all jobs, from submission to the end
}

func newQueue(t testing.TB, w world, n *advisortest.Node) *queue {
	return &queue{
		t: t, w: w, node: n, held: map[string]int{}, waiting: map[time.Time]chan struct{}{},
	}
}

// enter waits until a slot is free and no job with an earlier deadline waits.
func (q *queue) enter(deadline time.Time) {
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return
	}
	turn := make(chan struct{})
	q.waiting[deadline] = turn
	q.mu.Unlock()
	<-turn
}

// leave gives the slot to the waiting job with the earliest deadline.
func (q *queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(q.waiting)), time.Time.Compare)
	close(q.waiting[first])
	delete(q.waiting, first)
}

// hold records the CPUs of a job; 0 when it has ended.
func (q *queue) hold(id string, cpus int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.held[id] = cpus; cpus == 0 {
		delete(q.held, id)
	}
}

func (q *queue) processes() float64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := 0
	for _, cpus := range q.held {
		n += cpus
	}
	return float64(n)
}

func (q *queue) publish(e schemas.Event) {
	if _, err := q.b.Publish(context.Background(), e); err != nil {
		q.t.Error(err)
	}
}

// last returns the last event of a subject; nil if there is none.
func (q *queue) last(stream, subject string) schemas.Event {
	records, err := q.b.Last(context.Background(), stream, subject)
	if err != nil || len(records) == 0 {
		return nil
	}
	return records[0].Event
}

// admitted submits a job, waits until it may start, and returns its CPUs, and whether it was promised
// its SLO.
func (q *queue) admitted(id string, epochs int, slo time.Duration) (cpus int, isPromised bool) {
	var advice schemas.Advice
	request := schemas.JobRequest{
		JobID: id, Model: modelName, Elastic: true, BatchSizes: []int{batchSize},
		Epochs: epochs, SLO: schemas.Duration(slo), Nodes: []string{nodeName},
	}
	for _, cpus := range q.node.CPUs {
		request.CPUs = append(request.CPUs, int(cpus))
	}
	err := q.b.Request(context.Background(), schemas.SubjectJobSubmit, &request, &advice)
	if err != nil || advice.Admission == nil {
		q.t.Errorf("%s: no admission: %v", id, err)
		return 1, false
	}
	for advice.Admission.Verdict == schemas.Queued {
		pass(20 * time.Millisecond)
		last := q.last(schemas.StreamJob, schemas.JobSubject(id, schemas.EventAdmitted))
		if e, ok := last.(*schemas.JobAdmitted); ok {
			advice = e.Advice
		}
	}
	if q.betweenEpochs {
		q.awaitLoans(advice.Admission.Loans)
	}
	return int(advice.Chosen.CPUs), advice.Decision == schemas.MeetsSLO
}

// awaitLoans waits as the runner does, until the lenders have given up the CPUs of a job.
func (q *queue) awaitLoans(loans []schemas.Loan) {
	const longest = 30 * time.Second
	begin := time.Now()
	isPending := func(l schemas.Loan) bool {
		var status schemas.JobStatus
		request := &schemas.JobStatusRequest{JobID: l.JobID}
		err := q.b.Request(context.Background(), schemas.SubjectJobStatus, request, &status)
		return err != nil || status.State == schemas.StateRunning && status.CPUs > l.ToCPUs
	}
	for slices.ContainsFunc(loans, isPending) && time.Since(begin) < longest {
		pass(250 * time.Millisecond)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waited += time.Since(begin)
}

// pass waits for virtual time to pass.
func pass(d time.Duration) { <-time.After(d) }

// training is a running job.
type training struct {
	*queue
	id      string
	setting schemas.Setting
	cause   uint64         // of the last move
	moved   uint32         // events of moves
	pending *schemas.Moved // the move whose first epoch has not ended; nil if there is none
}

func (j *training) stamp(eventID string) schemas.JobStamp {
	return schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: eventID, At: time.Now().UTC()}, JobID: j.id, Run: 1,
	}
}

// move carries out the last advice about the CPUs of the job, whose next epoch to end is the given one.
// It reports whether there was a new one.
func (j *training) move(epoch int) bool {
	a, ok := j.last(schemas.StreamAdvice, schemas.JobSubject(j.id, schemas.EventAdvice)).(*schemas.Advice)
	if !ok || a.Move == nil || a.CauseSequence <= j.cause || a.Move.FromCPUs != j.setting.CPUs {
		return false
	}
	j.cause, j.setting.CPUs = a.CauseSequence, a.Move.ToCPUs
	j.hold(j.id, int(a.Move.ToCPUs))
	j.mu.Lock()
	j.moves++
	j.mu.Unlock()
	j.pending = &schemas.Moved{
		CauseSequence: a.CauseSequence,
		Move:          schemas.MoveCPUs,
		Means:         "cap",
		FromBatchSize: batchSize, ToBatchSize: batchSize,
		FromCPUs: a.Move.FromCPUs, ToCPUs: a.Move.ToCPUs,
		Purpose: a.Move.Purpose, Rule: a.Move.Rule,
		Epoch: uint32(epoch),
	}
	if !j.omitsApplied {
		j.publishMove(schemas.MoveApplied)
	}
	return true
}

func (j *training) publishMove(outcome string) {
	e := *j.pending
	j.moved++
	e.JobStamp, e.Outcome = j.stamp(schemas.MovedID(j.id, 1, j.moved)), outcome
	j.publish(&e)
}

// train runs a job. Its CPUs change at once, also within an epoch, unless q.betweenEpochs is set. lossAt
// returns its loss after a ratio of its epochs; nil: it reports none.
func (q *queue) train(id string, epochs, cpus int, lossAt func(float64) float64, random *rand.Rand) {
	j := &training{queue: q, id: id, setting: schemas.Setting{
		Model: modelName, BatchSize: batchSize, CPUs: uint32(cpus), Epochs: uint32(epochs),
		Nodes: []string{nodeName},
	}}
	slowdown := q.w.slowdown * math.Exp(q.w.jobSpread*random.NormFloat64())
	q.hold(id, cpus)
	defer q.hold(id, 0)
	if q.b != nil {
		q.publish(&schemas.Started{
			JobStamp: j.stamp(schemas.StartedID(id, 1)), Setting: j.setting, NodeCores: q.node.Hardware.Cores,
			HeartbeatSeconds: time.Hour.Seconds(), Moves: []string{schemas.MoveCPUs},
		})
	}
	pass(time.Duration(q.w.startupSeconds * float64(time.Second)))
	for k := 1; k <= epochs; k++ {
		const step, stepsPerLook = 10 * time.Millisecond, 5
		factor := slowdown * math.Exp(q.w.epochSpread*random.NormFloat64())
		begin, done := time.Now(), 0.0
		for i := 0; done < 1; i++ {
			pass(step)
			done += step.Seconds() / (factor * q.node.EpochSeconds(float64(j.setting.CPUs), q.processes()))
			if q.b != nil && !q.betweenEpochs && i%stepsPerLook == 0 && j.move(k) {
				done -= q.w.moveEpochs
			}
		}
		if q.b != nil {
			var loss *float64
			if lossAt != nil {
				loss = new(lossAt(float64(k) / float64(epochs)))
			}
			e := &schemas.Epoch{
				JobStamp: j.stamp(schemas.EpochID(id, 1, uint32(k))), Setting: j.setting,
				NodeCores: q.node.Hardware.Cores, Epoch: uint32(k), DurationSeconds: time.Since(begin).Seconds(),
				DurationSource: schemas.DurationReported, Loss: loss,
			}
			if q.cpu {
				e.JobCPUSeconds = new(float64(e.CPUs) * e.DurationSeconds)
			}
			q.publish(e)
			if j.pending != nil {
				j.publishMove(schemas.MoveCarriedOut)
				j.pending = nil
			}
			if q.betweenEpochs && k < epochs {
				j.move(k + 1)
			}
		}
	}
	if q.b != nil {
		q.publish(&schemas.Ended{
			JobStamp: j.stamp(schemas.EndedID(id, 1, schemas.EventFinished)), Setting: j.setting,
			Outcome: schemas.EventFinished, EpochsDone: uint32(epochs),
		})
	}
}

// play submits the jobs of a seed at their times, and waits for all of them. Their SLOs are 1.5 to 6
// times their time alone on all CPUs.
func (q *queue) play(seed uint64, s scheduler) {
	random := rand.New(rand.NewPCG(30, seed))
	var all sync.WaitGroup
	for i := range jobsOfQueue {
		epochs := 6 + random.IntN(15)
		alone := aloneSeconds * float64(epochs)
		slo := time.Duration((1.5 + 4.5*random.Float64()) * alone * float64(time.Second))
		pass(time.Duration(random.ExpFloat64() * meanGapEpochs * aloneSeconds * float64(time.Second)))
		all.Go(func() {
			id, cpus, isPromised := fmt.Sprint("job-", i), s.cpus, false
			own := rand.New(rand.NewPCG(seed, uint64(i)))
			submitted := time.Now()
			if s.cpus == 0 {
				cpus, isPromised = q.admitted(id, epochs, slo)
				q.train(id, epochs, cpus, nil, own)
			} else {
				q.enter(submitted.Add(slo))
				q.train(id, epochs, cpus, nil, own)
				q.leave()
			}
			took := time.Since(submitted)
			q.mu.Lock()
			defer q.mu.Unlock()
			q.seconds += took.Seconds()
			if took <= slo {
				q.kept++
			}
			if isPromised {
				q.promised++
				if took > slo {
					q.broken++
				}
			}
		})
	}
	all.Wait()
}

// scope ends what a part of a test started.
type scope struct {
	*testing.T
	cleanups []func()
}

func (s *scope) Cleanup(f func()) { s.cleanups = append(s.cleanups, f) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.cleanups) {
		f()
	}
}

// serve starts an advisor with some regressors, on a bus of its own.
func (q *queue) serve(o advisor.Options, all map[string]advisortest.Files) {
	q.b = bustest.New(q.t)
	ctx, cancel := context.WithCancel(context.Background())
	if err := advisortest.Promote(ctx, q.b, all); err != nil {
		q.t.Fatal(err)
	}
	o.MoveCPUs, o.Check = advisor.MovesOn, 100*time.Millisecond
	a := advisor.New(q.b, o, slog.New(slog.DiscardHandler), nil)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	q.t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			q.t.Errorf("advisor ended with %v", err)
		}
	})
	sample := &schemas.Sample{
		Stamp: schemas.Stamp{EventID: nodeName + "/1", At: time.Now()}, Node: nodeName, Number: 1,
		Cores: q.node.Hardware.Cores, CPUModel: q.node.Hardware.CPUModel,
		SpeedOperationsPerSecond: &q.node.Hardware.Speed, IntervalSeconds: 5,
	}
	q.publish(sample)
	ask := schemas.JobRequest{
		Model: modelName, CPUs: schemas.CPUs{1}, BatchSizes: []int{batchSize}, Epochs: 6, Nodes: []string{nodeName},
	}
	for {
		pass(20 * time.Millisecond)
		var advice schemas.Advice
		err := q.b.Request(ctx, schemas.SubjectJobPredict, &ask, &advice)
		if err == nil && len(advice.Regressors) == len(schemas.Targets()) {
			return
		}
	}
}

// result is the sum over some queues.
type result struct {
	jobs, kept, promised, broken, moves int
	seconds                             float64
}

func (r *result) ratio() float64 { return float64(r.kept) / float64(r.jobs) }

func playAll(t *testing.T, w world, s scheduler, queues int, all map[string]advisortest.Files) result {
	var sum result
	for seed := range uint64(queues) {
		part := &scope{T: t}
		q := newQueue(part, w, twoCPUs)
		q.free = s.slots
		if s.cpus == 0 {
			q.serve(advisor.Options{Policy: advisor.Policy{Admission: schemas.AdmissionQueue}}, all)
		}
		q.play(seed+1, s)
		part.end()
		sum.jobs += jobsOfQueue
		sum.kept += q.kept
		sum.promised += q.promised
		sum.broken += q.broken
		sum.moves += q.moves
		sum.seconds += q.seconds
	}
	return sum
}

// inVirtualTime runs f in a bubble of its own clock. nats.go may leave a goroutine of an upload
// behind, which then waits for ever.
func inVirtualTime(t *testing.T, f func(*testing.T)) {
	ats.Register() // starts a goroutine for all servers of the process, which must not be in the bubble
	defer ats.Unregister()
	defer func() {
		if p := recover(); p != nil && !strings.Contains(fmt.Sprint(p), "blocked goroutines remain") {
			panic(p)
		}
	}()
	synctest.Test(t, f)
}

// Courier keeps more SLOs than the simplest rules: jobs in order of deadline on all CPUs, or on one
// each, and as many as it has kept before. COURIER_LONG plays more queues, on nodes that differ more
// from what the regressors know.
func TestQueue_KeepsMoreSLOsThanTheSimplestRules(t *testing.T) {
	regressors, err := twoCPUs.Fit(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	queues, worlds := 4, []world{
		{"as known", 1, 0.02, 0.02, 0.3, 0},
		{"20 % slower", 1.2, 0.05, 0.1, 0.3, 0},
	}
	// Of four queues 0.89 and 0.73 are kept, and without moves of CPUs 0.82 and 0.62.
	least := map[string]float64{"as known": 0.86, "20 % slower": 0.69}
	if os.Getenv("COURIER_LONG") != "" {
		queues, worlds = 20, append(worlds, []world{
			{"40 % slower", 1.4, 0.05, 0.1, 0.3, 0},
			{"noise of 15 %", 1, 0.1, 0.15, 0.3, 0},
			{"slow start of 0.8 s", 1, 0.05, 0.1, 0.8, 0},
			{"a move costs half an epoch", 1, 0.05, 0.1, 0.3, 0.5},
		}...)
	}
	inVirtualTime(t, func(t *testing.T) {
		for _, w := range worlds {
			results := map[string]result{}
			for _, s := range schedulers {
				r := playAll(t, w, s, queues, regressors)
				results[s.name] = r
				t.Logf("%-26s %-8s kept %.3f, broken promises %d of %d, %.1f s/job, %d moves",
					w.name, s.name, r.ratio(), r.broken, r.promised, r.seconds/float64(r.jobs), r.moves)
			}
			elastic := results["elastic"]
			if elastic.ratio() < least[w.name] {
				t.Errorf("%s: elastic keeps %.3f of the SLOs, want at least %.2f",
					w.name, elastic.ratio(), least[w.name])
			}
			for _, simple := range []string{"edf", "fixed"} {
				if r := results[simple]; elastic.kept <= r.kept {
					t.Errorf("%s: elastic keeps %.3f of the SLOs, %s %.3f", w.name, elastic.ratio(), simple, r.ratio())
				}
			}
		}
	})
}
