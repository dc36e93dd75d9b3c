package advisor

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"courier/schemas"
)

var (
	modelSchedules = flag.Uint64("schedules", 60, "number of schedules of TestModel")
	modelSeed      = flag.Uint64("seed", 0, "only this schedule of TestModel")
)

// regressions are the seeds of schedules that found a fault of the product.
var regressions = []uint64{22}

const (
	modelNodes    = 3
	modelCores    = 4
	modelAdvisors = 3
)

// TestModel drives advisors and runners through random faults in virtual time, and checks after each
// second that the invariants of docs/explanation/robustness.md hold.
func TestModel(t *testing.T) {
	debug.SetGCPercent(400)
	if *modelSeed > 0 {
		checkSchedule(t, *modelSeed)
		return
	}
	for _, seed := range regressions {
		checkSchedule(t, seed)
	}
	parts := uint64(runtime.GOMAXPROCS(0))
	for part := range parts {
		t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
			t.Parallel()
			for seed := part + 1; seed <= *modelSchedules && !t.Failed(); seed += parts {
				checkSchedule(t, seed)
			}
		})
	}
}

// checkSchedule runs the schedule of a seed. If it violates an invariant, it is shortened first.
func checkSchedule(t *testing.T, seed uint64) {
	steps := randomSteps(seed)
	violation := runSchedule(t, seed, steps)
	if violation == "" {
		return
	}
	for i := 0; i < len(steps); {
		fewer := slices.Delete(slices.Clone(steps), i, i+1)
		if shorter := runSchedule(t, seed, fewer); shorter != "" {
			steps, violation = fewer, shorter
			continue
		}
		i++
	}
	var text strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&text, "\n  %s", s)
	}
	t.Errorf("seed %d: %s, after%s", seed, violation, text.String())
}

// step is a fault, or a request. What it changes is undone after its duration.
type step struct {
	what     string
	target   int
	duration time.Duration
	then     time.Duration // until the next step
}

func (s step) String() string {
	return fmt.Sprintf("%s %d for %s, then wait %s", s.what, s.target, s.duration, s.then)
}

// kinds are the steps, the more frequent ones several times.
var kinds = []string{
	"submit", "submit", "submit", "submit", "submit", "second runner", "cancel", "report too many CPUs",
	"kill runner", "pause runner", "cut runner", "lose acks of runner", "fill disk of runner",
	"kill advisor", "pause advisor", "cut advisor", "lose acks of advisor", "clock of advisor", "clock of node",
}

func randomSteps(seed uint64) []step {
	random := rand.New(rand.NewPCG(seed, 39))
	steps := make([]step, 8+random.IntN(16))
	for i := range steps {
		steps[i] = step{
			what: kinds[random.IntN(len(kinds))], target: random.IntN(1 << 10),
			duration: time.Duration(1+random.IntN(80)) * time.Second,
			then:     time.Duration(random.IntN(12)) * time.Second,
		}
		if i == 0 {
			steps[i].what = "submit"
		}
	}
	return steps
}

// model is a cluster that a schedule drives.
type model struct {
	log      *modelLog
	nodes    []*modelNode
	runners  []*modelRunner
	overfull map[string]int // seconds for which a node has been given away twice
	idle     map[string]int // seconds for which a job has waited for an idle node without any fault
	quietAt  time.Time      // when the last fault ends

	mu        sync.Mutex
	advisors  []*modelAdvisor // replaced when one is started again
	violation string
	open      map[string]int             // submissions in progress, by job
	answers   map[string]*schemas.Advice // that were given, by job
	known     []schemas.Event            // acknowledged
	offset    []time.Duration            // of the clocks of the advisors
}

type modelAdvisor struct {
	*Advisor
	bus   *modelBus
	stop  context.CancelFunc
	ended chan struct{}
}

// violate records the first violation.
func (m *model) violate(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.violation == "" {
		m.violation = fmt.Sprintf(format, args...)
	}
}

func (m *model) isViolated() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.violation != ""
}

func runSchedule(t *testing.T, seed uint64, steps []step) (violation string) {
	synctest.Test(t, func(*testing.T) {
		m := &model{
			log: newModelLog(seed), open: map[string]int{}, answers: map[string]*schemas.Advice{},
			offset: make([]time.Duration, modelAdvisors), overfull: map[string]int{}, idle: map[string]int{},
		}
		m.log.onStored = m.checkStored
		for i := range modelNodes {
			m.nodes = append(m.nodes, &modelNode{name: fmt.Sprint("node-", i)})
		}
		m.sample()
		m.advisors = make([]*modelAdvisor, modelAdvisors)
		for i := range m.advisors {
			m.startAdvisor(i)
		}
		m.pass(3 * time.Second)
		for _, s := range steps {
			m.take(s)
			m.pass(s.then)
		}
		m.settle()
		for _, r := range m.runners {
			r.bus.set(&r.bus.isKilled, true)
		}
		for i := range m.advisors {
			m.killAdvisor(i)
		}
		violation = m.violation
		<-time.After(time.Minute) // virtual time stops with this function, and timers would not end
	})
	return violation
}

func (m *model) startAdvisor(i int) {
	b, offset := newModelBus(m.log), m.offset[i]
	o := Options{Admission: schemas.AdmissionQueue, MaxLogBytes: -1, SnapshotEvents: 8, SnapshotInterval: time.Minute}
	a := newAdvisor(b, o, slog.New(slog.DiscardHandler), nil)
	a.clock = func() time.Time {
		return time.Now().Add(offset)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &modelAdvisor{a, b, cancel, make(chan struct{})}
	m.mu.Lock()
	m.advisors[i] = p
	m.mu.Unlock()
	m.fault(0)
	go func() {
		defer close(p.ended)
		_ = a.Run(ctx)
	}()
}

func (m *model) killAdvisor(i int) {
	a := m.advisors[i]
	a.bus.set(&a.bus.isKilled, true)
	a.stop()
	<-a.ended
}

// pass lets time pass, and checks the invariants after each second.
func (m *model) pass(d time.Duration) {
	for ; d >= time.Second && !m.isViolated(); d -= time.Second {
		<-time.After(time.Second)
		if time.Since(m.log.created)%(10*time.Second) < time.Second {
			m.sample()
		}
		m.check()
	}
}

// sample reports the processors of the nodes, as their collectors do.
func (m *model) sample() {
	for _, n := range m.nodes {
		s := &schemas.Sample{Node: n.name, Cores: modelCores, IntervalSeconds: 10}
		s.EventID, s.At = fmt.Sprint(n.name, "/", time.Now().UnixNano()), n.now()
		if _, _, _, err := m.log.store(s, false); err != nil {
			m.violate("a sample is refused: %v", err)
		}
	}
}

// fault notes that the cluster is not healthy for some time.
func (m *model) fault(d time.Duration) {
	if end := time.Now().Add(d); end.After(m.quietAt) {
		m.quietAt = end
	}
}

// take carries out a step.
func (m *model) take(s step) {
	n := s.target % modelAdvisors
	var r *modelRunner
	if len(m.runners) > 0 {
		r = m.runners[s.target%len(m.runners)]
	}
	switch s.what {
	case "submit":
		m.submit(s)
	case "clock of advisor": // while it runs it measures time by the monotonic clock
		m.killAdvisor(n)
		m.step(&m.offset[n], s)
		m.startAdvisor(n)
	case "clock of node":
		m.step(&m.nodes[s.target%modelNodes].offset, s)
	case "report too many CPUs":
		m.reportTooMany(s)
	case "kill advisor":
		m.killAdvisor(n)
		<-time.After(s.duration / 8)
		m.startAdvisor(n)
	case "pause advisor":
		m.during(m.advisors[n].bus, &m.advisors[n].bus.isPaused, s.duration)
	case "cut advisor":
		m.during(m.advisors[n].bus, &m.advisors[n].bus.isCut, s.duration)
	case "lose acks of advisor":
		m.during(m.advisors[n].bus, &m.advisors[n].bus.losesAcks, s.duration)
	}
	if r == nil {
		return
	}
	switch s.what {
	case "second runner":
		m.run(r.request, r.node, r.stops)
	case "cancel":
		go m.ask(nil, func(ctx context.Context, a *Advisor) (any, error) {
			return a.cancelJob(ctx, &schemas.JobCancelRequest{JobID: r.request.JobID})
		})
	case "kill runner":
		m.fault(deadTime)
		r.bus.set(&r.bus.isKilled, true)
		r.set(func() { r.computes = false })
	case "pause runner":
		m.during(r.bus, &r.bus.isPaused, s.duration)
	case "cut runner":
		m.during(r.bus, &r.bus.isCut, s.duration)
	case "lose acks of runner":
		m.during(r.bus, &r.bus.losesAcks, s.duration)
	case "fill disk of runner":
		r.node.isFull.Store(!r.node.isFull.Load())
	}
}

// during sets a fault of a process for some time.
func (m *model) during(b *modelBus, flag *bool, d time.Duration) {
	m.fault(d)
	b.set(flag, true)
	time.AfterFunc(d, func() { b.set(flag, false) })
}

// step steps a clock: it becomes slow or fast, by seconds or by an hour, or right again.
func (m *model) step(offset *time.Duration, s step) {
	m.mu.Lock()
	defer m.mu.Unlock()
	offsets := []time.Duration{0, -time.Hour, -6 * time.Second, 6 * time.Second, time.Hour}
	*offset = offsets[int(s.duration/time.Second)%len(offsets)]
}

func (m *model) submit(s step) {
	node := m.nodes[s.target%modelNodes]
	q := schemas.JobRequest{
		JobID: fmt.Sprint("job-", len(m.runners)), Model: "mlp", CPUs: schemas.CPUs{1 + s.target/8%modelCores},
		BatchSizes: []int{16}, Epochs: 2 + s.target/64%6, Nodes: []string{node.name}, User: "ada",
	}
	if s.target/512 > 0 {
		q.Epochs = 1 // a long one
	}
	m.run(q, node, s.target%4 > 0)
}

func (m *model) run(q schemas.JobRequest, node *modelNode, stops bool) {
	r := &modelRunner{
		m: m, bus: newModelBus(m.log), request: q, node: node, stops: stops, offset: node.offset, epochSeconds: 5,
	}
	if q.Epochs == 1 {
		r.epochSeconds = 150
	}
	m.runners = append(m.runners, r)
	go r.run()
}

// reportTooMany reports the start of a job on more CPUs than its node has, as a person may try.
func (m *model) reportTooMany(s step) {
	e := &schemas.Started{Setting: schemas.Setting{
		Model: "mlp", BatchSize: 16, CPUs: 1 << 12, Nodes: []string{m.nodes[s.target%modelNodes].name},
	}}
	id := fmt.Sprint("greedy-", s.target)
	e.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: schemas.StartedID(id, 1), At: time.Now().UTC()}, JobID: id, Run: 1,
	}
	go m.ask(nil, func(ctx context.Context, a *Advisor) (any, error) { return a.personEvent(ctx, "eve", e) })
}

// ask sends a request of a runner, or of a person, to an advisor that it reaches.
func (m *model) ask(r *modelRunner, do func(context.Context, *Advisor) (any, error)) (any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), schemas.SubmitTimeout+time.Second)
	defer cancel()
	if r != nil {
		if err := r.bus.pass(ctx); err != nil {
			return nil, err
		}
		m.submitting(r.request.JobID, 1)
		defer m.submitting(r.request.JobID, -1)
	}
	first := int(m.log.latency()) % modelAdvisors
	for i := range modelAdvisors {
		m.mu.Lock()
		a := m.advisors[(first+i)%modelAdvisors]
		m.mu.Unlock()
		if a.Ready() != nil || a.bus.is(&a.bus.isPaused) || !a.bus.Connected() {
			continue
		}
		type answer struct {
			reply any
			err   error
		}
		answers := make(chan answer, 1)
		go func() {
			reply, err := do(ctx, a.Advisor)
			if a.bus.runs() {
				answers <- answer{reply, err}
			}
		}()
		select {
		case got := <-answers:
			if r != nil && r.bus.pass(ctx) != nil {
				return nil, errModelCut
			}
			return got.reply, got.err
		case <-ctx.Done():
			return nil, errModelCut
		}
	}
	return nil, errModelCut
}
