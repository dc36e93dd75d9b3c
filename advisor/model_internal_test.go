package advisor

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"courier/schemas"
)

var (
	modelSchedules = flag.Uint64("schedules", 60, "number of the last schedule of TestModel")
	modelFirst     = flag.Uint64("first", 1, "number of the first schedule of TestModel")
	modelSeed      = flag.Uint64("seed", 0, "only this schedule of TestModel")
)

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
	if *modelFirst > *modelSchedules {
		t.Fatalf("-first %d is after the last schedule, -schedules %d", *modelFirst, *modelSchedules)
	}
	parts := uint64(runtime.GOMAXPROCS(0))
	for part := range parts {
		t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
			t.Parallel()
			for seed := part + *modelFirst; seed <= *modelSchedules && !t.Failed(); seed += parts {
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
	kind     int
	target   int
	duration time.Duration
	then     time.Duration // until the next step
}

func (s step) String() string {
	return fmt.Sprintf("%s %d for %s, then wait %s", kinds[s.kind].name, s.target, s.duration, s.then)
}

// kinds are the steps, the more frequent ones several times.
var kinds = []struct {
	name string
	take func(*model, step)
}{
	{"submit", (*model).submit},
	{"submit", (*model).submit},
	{"submit", (*model).submit},
	{"submit", (*model).submit},
	{"submit", (*model).submit},
	{"second runner", onRunner(func(m *model, r *modelRunner, _ step) { m.run(r.request, r.node, r.stops) })},
	{"cancel", onRunner((*model).cancel)},
	{"report too many CPUs", (*model).reportTooMany},
	{"kill runner", onRunner((*model).killRunner)},
	{"pause runner", duringRunner(isPaused)},
	{"cut runner", duringRunner(isCut)},
	{"lose acks of runner", duringRunner(losesAcks)},
	{"fill disk of runner", onRunner(func(m *model, r *modelRunner, _ step) {
		m.locked(func() { r.node.isFull = !r.node.isFull })
	})},
	{"kill advisor", func(m *model, s step) {
		m.killAdvisor(s.target % modelAdvisors)
		<-time.After(s.duration / 8)
		m.startAdvisor(s.target % modelAdvisors)
	}},
	{"pause advisor", duringAdvisor(isPaused)},
	{"cut advisor", duringAdvisor(isCut)},
	{"lose acks of advisor", duringAdvisor(losesAcks)},
	{"clock of advisor", func(m *model, s step) { // while it runs it measures time by the monotonic clock
		n := s.target % modelAdvisors
		m.killAdvisor(n)
		m.offsets[n] = s.offset()
		m.startAdvisor(n)
	}},
	{"clock of node", func(m *model, s step) { m.nodes[s.target%modelNodes].offset = s.offset() }},
}

func onRunner(take func(*model, *modelRunner, step)) func(*model, step) {
	return func(m *model, s step) {
		if len(m.runners) > 0 {
			take(m, m.runners[s.target%len(m.runners)], s)
		}
	}
}

func duringRunner(f fault) func(*model, step) {
	return onRunner(func(m *model, r *modelRunner, s step) { m.during(r.bus, f, s.duration) })
}

func duringAdvisor(f fault) func(*model, step) {
	return func(m *model, s step) { m.during(m.advisors[s.target%modelAdvisors].bus, f, s.duration) }
}

// offset returns how wrong a clock becomes: by seconds, by an hour, or not any more.
func (s step) offset() time.Duration {
	offsets := []time.Duration{0, -time.Hour, -6 * time.Second, 6 * time.Second, time.Hour}
	return offsets[int(s.duration/time.Second)%len(offsets)]
}

func randomSteps(seed uint64) []step {
	random := rand.New(rand.NewPCG(seed, 39))
	steps := make([]step, 8+random.IntN(16))
	for i := range steps {
		steps[i] = step{
			kind: random.IntN(len(kinds)), target: random.IntN(1 << 10),
			duration: time.Duration(1+random.IntN(80)) * time.Second,
			then:     time.Duration(random.IntN(12)) * time.Second,
		}
	}
	steps[0].kind = 0
	return steps
}

// model is a cluster that a schedule drives.
type model struct {
	*modelLog
	nodes    []*modelNode
	runners  []*modelRunner
	offsets  [modelAdvisors]time.Duration // of the clocks of the advisors
	overfull map[string]int               // seconds for which a node has been given away twice
	idle     map[string]int               // seconds for which a job has waited for an idle node without any fault
	lost     map[string]int               // seconds for which a job with heartbeats has not counted as running
	quietAt  time.Time                    // when the last fault ends

	advisors  [modelAdvisors]*modelAdvisor // replaced when one is started again
	violation string                       // the first one
	open      map[string]int               // submissions in progress, by job
	answers   map[string]*schemas.Advice   // that were given, by job
	known     []schemas.Event              // acknowledged
}

type modelAdvisor struct {
	*Advisor
	bus   *modelBus
	stop  context.CancelFunc
	ended chan struct{}
}

// violate records a violation. The caller holds the lock.
func (m *model) violate(format string, args ...any) {
	m.violation = cmp.Or(m.violation, fmt.Sprintf(format, args...))
}

func (m *model) isSound() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.violation == ""
}

func runSchedule(t *testing.T, seed uint64, steps []step) (violation string) {
	synctest.Test(t, func(*testing.T) {
		m := &model{
			modelLog: newModelLog(seed), open: map[string]int{}, answers: map[string]*schemas.Advice{},
			overfull: map[string]int{}, idle: map[string]int{}, lost: map[string]int{},
		}
		m.onStored = m.checkStored
		for i := range modelNodes {
			m.nodes = append(m.nodes, &modelNode{name: fmt.Sprint("node-", i)})
		}
		m.sample()
		for i := range modelAdvisors {
			m.startAdvisor(i)
		}
		m.letPass(3 * time.Second)
		for _, s := range steps {
			kinds[s.kind].take(m, s)
			m.letPass(s.then)
		}
		m.settle()
		for _, r := range m.runners {
			r.bus.set(isKilled, true)
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
	b, offset := &modelBus{modelLog: m.modelLog}, m.offsets[i]
	o := Options{SnapshotEvents: 8, SnapshotInterval: time.Minute}
	o.Admission = schemas.AdmissionQueue
	a := newAdvisor(b, o, slog.New(slog.DiscardHandler), nil)
	a.clock = func() time.Time { return time.Now().Add(offset) }
	ctx, cancel := context.WithCancel(context.Background())
	p := &modelAdvisor{a, b, cancel, make(chan struct{})}
	m.locked(func() { m.advisors[i] = p })
	m.fault(0)
	go func() {
		defer close(p.ended)
		_ = a.Run(ctx)
	}()
}

func (m *model) killAdvisor(i int) {
	a := m.advisors[i]
	a.bus.set(isKilled, true)
	a.stop()
	<-a.ended
}

// letPass lets time pass, and checks the invariants after each second.
func (m *model) letPass(d time.Duration) {
	for ; d >= time.Second && m.isSound(); d -= time.Second {
		<-time.After(time.Second)
		if time.Since(m.created)%(10*time.Second) < time.Second {
			m.sample()
		}
		m.check()
	}
}

// sample reports the processors of the nodes, as their collectors do.
func (m *model) sample() {
	for _, n := range m.nodes {
		s := &schemas.Sample{Node: n.name, Cores: modelCores, IntervalSeconds: 10}
		s.EventID, s.At = fmt.Sprint(n.name, "/", time.Now().UnixNano()), time.Now().Add(n.offset).UTC()
		m.locked(func() {
			if _, _, err := m.store(s, false); err != nil {
				m.violate("a sample is refused: %v", err)
			}
		})
	}
}

// fault notes that the cluster is not healthy for some time.
func (m *model) fault(d time.Duration) {
	if end := time.Now().Add(d); end.After(m.quietAt) {
		m.quietAt = end
	}
}

// during sets a fault of a process for some time.
func (m *model) during(b *modelBus, f fault, d time.Duration) {
	m.fault(d)
	b.set(f, true)
	time.AfterFunc(d, func() { b.set(f, false) })
}

func (m *model) killRunner(r *modelRunner, _ step) {
	m.fault(deadTime)
	r.bus.set(isKilled, true)
	m.locked(func() { r.computes = false })
}

func (m *model) cancel(r *modelRunner, _ step) {
	go m.ask(nil, func(ctx context.Context, a *Advisor) (any, error) {
		return a.cancelJob(ctx, &schemas.JobCancelRequest{JobID: r.request.JobID})
	})
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
		m: m, bus: &modelBus{modelLog: m.modelLog}, request: q, node: node, stops: stops, offset: node.offset,
		epochSeconds: 5,
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
func (m *model) ask(r *modelRunner, do func(context.Context, *Advisor) (any, error)) (reply any, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), schemas.SubmitTimeout+time.Second)
	defer cancel()
	if r != nil {
		if err := r.bus.pass(ctx); err != nil {
			return nil, err
		}
		m.locked(func() { m.open[r.request.JobID]++ })
		defer m.locked(func() { m.open[r.request.JobID]-- })
	}
	a := m.reachable(int(m.latency()))
	if a == nil {
		return nil, errModelCut
	}
	answered := make(chan struct{})
	go func() {
		if reply, err = do(ctx, a.Advisor); a.bus.runs() {
			close(answered)
		}
	}()
	select {
	case <-answered:
		if r == nil || r.bus.pass(ctx) == nil {
			return reply, err
		}
	case <-ctx.Done():
	}
	return nil, errModelCut
}

// reachable returns an advisor that answers requests, the first one from a number on, or nil.
func (m *model) reachable(first int) *modelAdvisor {
	for i := range modelAdvisors {
		var a *modelAdvisor
		isReachable := false
		m.locked(func() {
			a = m.advisors[(first+i)%modelAdvisors]
			isReachable = a.bus.has == [faults]bool{losesAcks: a.bus.has[losesAcks]}
		})
		if isReachable && a.Ready() == nil {
			return a
		}
	}
	return nil
}
