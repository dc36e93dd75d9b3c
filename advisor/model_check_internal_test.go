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
		if m.open[e.JobID] == 0 {
			m.violate("%s is stored after its runner was told that the advisor is unavailable", e.JobID)
		}
	case *schemas.Started:
		if e.CPUs > modelCores {
			m.violate("%s is recorded with %d CPUs on a node with %d", e.JobID, e.CPUs, modelCores)
		}
	}
}

// check checks what must hold at any time.
func (m *model) check() {
	var healthy []string // jobs that compute and send heartbeats
	m.locked(func() {
		m.checkHeld()
		m.checkIdle()
		for _, r := range m.runners {
			if r.computes && r.hasClaimed && time.Since(m.quietAt) > deadTime {
				healthy = append(healthy, r.request.JobID)
			}
		}
	})
	for _, id := range healthy {
		if m.lost[id]++; m.runsEverywhere(id) {
			m.lost[id] = 0
		}
		if m.lost[id] > 2 { // an advisor may not have read its start yet
			m.locked(func() { m.violate("%s computes and sends heartbeats, but is lost", id) })
		}
	}
}

// runsEverywhere reports whether all advisors count a job as running.
func (m *model) runsEverywhere(id string) bool {
	return !slices.ContainsFunc(m.advisors[:], func(a *modelAdvisor) bool {
		a.mu.RLock()
		defer a.mu.RUnlock()
		j := a.cluster.Job(id)
		return j == nil || j.State != schemas.StateRunning && j.State != schemas.StateCancelled
	})
}

// checkHeld checks that no job is started twice, and no node is given away twice. A process that wakes up
// has a moment to notice that it lost its right.
func (m *model) checkHeld() {
	held, claims := map[string]map[string]uint32{}, map[string]int{}
	for _, r := range m.runners {
		id, node := r.request.JobID, r.node.name
		if held[node] == nil {
			held[node] = map[string]uint32{}
		}
		held[node][id] = max(held[node][id], r.holds())
		if r.computes && r.hasClaimed {
			claims[id]++
		}
		if claims[id] > 1 {
			m.violate("%s is started twice", id)
		}
	}
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
		isBusy[r.node.name] = isBusy[r.node.name] || !r.isDone && !r.isWaiting && !r.bus.has[isKilled]
		isWanted[r.node.name] = isWanted[r.node.name] || r.isWaiting
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

// settle ends all faults, lets all jobs end, and checks what must hold then: no job waits for ever, each
// answer and acknowledged event is stored, and each advisor has the state of the log.
func (m *model) settle() {
	m.locked(func() {
		for _, r := range m.runners {
			r.bus.has = [faults]bool{isKilled: r.bus.has[isKilled]}
		}
		for _, a := range m.advisors {
			a.bus.has = [faults]bool{}
		}
		m.wake()
	})
	m.quietAt = time.Now()
	const patience = 20 * time.Minute
	for begin := time.Now(); m.unfinished() != "" && time.Since(begin) < patience && m.isSound(); {
		m.letPass(5 * time.Second)
	}
	if id := m.unfinished(); id != "" {
		m.locked(func() { m.violate("%s does not end", id) })
	}
	m.letPass(schemas.LostAfter + 10*time.Second)
	if m.isSound() {
		m.checkLog()
		m.checkStates()
	}
}

// unfinished returns a job whose runner lives, or "".
func (m *model) unfinished() (id string) {
	m.locked(func() {
		for _, r := range m.runners {
			if !r.isDone && !r.bus.has[isKilled] {
				id = fmt.Sprintf("%s (waits: %t, computes: %t)", r.request.JobID, r.isWaiting, r.computes)
			}
		}
	})
	return id
}

// checkLog checks that answers and acknowledged events are stored.
func (m *model) checkLog() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, answer := range m.answers {
		e, ok := m.lastOf(id, schemas.EventSubmitted).(*schemas.Submitted)
		if !ok || e.Advice.Message != answer.Message || !e.Advice.At.Equal(answer.At) ||
			e.Advice.Admission.Verdict != answer.Admission.Verdict {
			m.violate("the answer to %s is not the stored one", id)
		}
	}
	for _, e := range m.known {
		if m.sequences[e.ID()] == 0 {
			m.violate("the acknowledged event %s is lost", e.ID())
		}
	}
}

// checkStates compares the jobs of each advisor with those of the log.
func (m *model) checkStates() {
	want := cluster.New()
	for _, r := range m.streams[schemas.StreamJob] {
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
