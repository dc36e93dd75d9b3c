package advisor

import (
	"fmt"
	"slices"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"
)

// checkStored checks an event when the log stores it.
func (m *model) checkStored(e schemas.Event) {
	switch e := e.(type) {
	case *schemas.Submitted:
		m.mu.Lock()
		isOpen := m.open[e.JobID] > 0
		m.mu.Unlock()
		if !isOpen {
			m.violate("%s is stored after its runner was told that the advisor is unavailable", e.JobID)
		}
	case *schemas.Started:
		if e.CPUs > modelCores {
			m.violate("%s is recorded with %d CPUs on a node with %d", e.JobID, e.CPUs, modelCores)
		}
	}
}

// check checks what must hold at any time: no job is started twice, and no node is given away twice. A
// process that wakes up has a moment to notice that it lost its right.
func (m *model) check() {
	held, claims := map[string]map[string]uint32{}, map[string]int{}
	for _, r := range m.runners {
		id := r.request.JobID
		if held[r.node.name] == nil {
			held[r.node.name] = map[string]uint32{}
		}
		held[r.node.name][id] = max(held[r.node.name][id], r.holds())
		if r.is(&r.computes) && r.is(&r.hasClaimed) {
			claims[id]++
		}
		if claims[id] > 1 {
			m.violate("%s is started twice", id)
		}
	}
	m.checkIdle()
	for node, jobs := range held {
		sum := uint32(0)
		for _, cpus := range jobs {
			sum += cpus
		}
		if m.overfull[node]++; sum <= modelCores {
			m.overfull[node] = 0
		}
		if m.overfull[node] > 2 {
			m.violate("%s with %d CPUs is given away twice: %v", node, modelCores, jobs)
		}
	}
}

// deadTime is how long the CPUs of a dead runner are not given away: until its job is lost, or is not
// expected to start any more.
const deadTime = schemas.LostAfter + 10*time.Second

// checkIdle checks that no job waits for an idle node for long, if there has been no fault for a while.
func (m *model) checkIdle() {
	isBusy, isWanted := map[string]bool{}, map[string]bool{}
	for _, r := range m.runners {
		r.mu.Lock()
		isBusy[r.node.name] = isBusy[r.node.name] || !r.isDone && !r.isWaiting && !r.bus.is(&r.bus.isKilled)
		isWanted[r.node.name] = isWanted[r.node.name] || r.isWaiting
		counts := r.computes && r.hasClaimed && time.Since(m.quietAt) > deadTime
		r.mu.Unlock()
		if counts && !m.runsEverywhere(r.request.JobID) {
			m.violate("%s computes and sends heartbeats, but is lost", r.request.JobID)
		}
	}
	for _, n := range m.nodes {
		if m.idle[n.name]++; isBusy[n.name] || !isWanted[n.name] || time.Since(m.quietAt) < deadTime {
			m.idle[n.name] = 0
		}
		if m.idle[n.name] > 20 {
			m.violate("a job waits for %s, which is idle", n.name)
		}
	}
}

// runsEverywhere reports whether all advisors count a job as running.
func (m *model) runsEverywhere(id string) bool {
	for _, a := range m.advisors {
		a.mu.RLock()
		j := a.cluster.Job(id)
		isRunning := j != nil && (j.State == schemas.StateRunning || j.State == schemas.StateCancelled)
		a.mu.RUnlock()
		if !isRunning {
			return false
		}
	}
	return true
}

// settle ends all faults, lets all jobs end, and checks what must hold then: no job waits for ever, each
// answer and acknowledged event is stored, and each advisor has the state of the log.
func (m *model) settle() {
	const patience = 20 * time.Minute
	for _, r := range m.runners {
		m.heal(r.bus)
	}
	for _, a := range m.advisors {
		m.heal(a.bus)
	}
	m.quietAt = time.Now()
	begin := time.Now()
	for m.unfinished() != "" && time.Since(begin) < patience && !m.isViolated() {
		m.pass(5 * time.Second)
	}
	if id := m.unfinished(); id != "" {
		m.violate("%s does not end", id)
	}
	m.pass(schemas.LostAfter + 10*time.Second)
	if !m.isViolated() {
		m.checkLog()
		m.checkStates()
	}
}

func (m *model) heal(b *modelBus) {
	b.set(&b.isCut, false)
	b.set(&b.isPaused, false)
	b.set(&b.losesAcks, false)
}

// unfinished returns a job whose runner lives, or "".
func (m *model) unfinished() string {
	for _, r := range m.runners {
		r.mu.Lock()
		isDone, isWaiting, computes := r.isDone, r.isWaiting, r.computes
		r.mu.Unlock()
		if !isDone && !r.bus.is(&r.bus.isKilled) {
			return fmt.Sprintf("%s (waits: %t, computes: %t)", r.request.JobID, isWaiting, computes)
		}
	}
	return ""
}

// checkLog checks that answers and acknowledged events are stored.
func (m *model) checkLog() {
	for id, answer := range m.answers {
		e, ok := m.lastOf(id, schemas.EventSubmitted).(*schemas.Submitted)
		if !ok || e.Advice.Message != answer.Message || !e.Advice.At.Equal(answer.At) ||
			e.Advice.Admission.Verdict != answer.Admission.Verdict {
			m.violate("the answer to %s is not the stored one", id)
		}
	}
	records, _ := m.log.from(schemas.StreamJob, 1)
	stored := map[string]bool{}
	for _, r := range records {
		stored[r.Event.ID()] = true
	}
	for _, e := range m.known {
		if !stored[e.ID()] {
			m.violate("the acknowledged event %s is lost", e.ID())
		}
	}
}

// checkStates compares the jobs of each advisor with those of the log.
func (m *model) checkStates() {
	want := cluster.New()
	records, _ := m.log.from(schemas.StreamJob, 1)
	for _, r := range records {
		want.Apply(r.Event, r.Sequence, r.StoredAt)
	}
	jobs, _ := want.NewestFirst("", "")
	for i, a := range m.advisors {
		a.mu.RLock()
		for j := range jobs {
			got := a.cluster.Job(j.ID)
			if got == nil || got.State != j.State || got.Run != j.Run || got.EpochsDone != j.EpochsDone {
				m.violate("advisor %d has %+v, the log has %+v", i, got, j)
			}
			if j.State == schemas.StateQueued || j.State == schemas.StateRunning {
				m.violate("%s is %s, but its runner has ended", j.ID, j.State)
			}
		}
		a.mu.RUnlock()
	}
}

// submitting counts the requests of a job that are in progress.
func (m *model) submitting(job string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open[job] += n
}

// answered records the answer to a submission.
func (m *model) answered(a *schemas.Advice) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers[a.JobID] = a
}

func (m *model) acknowledged(e schemas.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = append(m.known, e)
}

// lastOf returns the last event of a job of some kinds, or nil.
func (m *model) lastOf(job string, events ...string) schemas.Event {
	records, _ := m.log.from(schemas.StreamJob, 1)
	for _, r := range slices.Backward(records) {
		if slices.ContainsFunc(events, func(e string) bool { return r.Subject == schemas.JobSubject(job, e) }) {
			return r.Event
		}
	}
	return nil
}
