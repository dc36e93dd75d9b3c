package deadline

// maxTriage bounds how many tasks a plan gives up in favour of others, and so its time.
const maxTriage = 20

// lostRatio is the ratio of the remaining work above which a job that does not fit counts as lost. Below
// it, the margins may suffice.
const lostRatio = 0.03

type filled struct {
	missing float64 // sum of the missing ratios of the work
	lost    int     // tasks that do not fit
}

// fill places tasks, which are in order of due time. With triage, tasks that make others lost are
// given up and placed nowhere.
func (s *plan) fill(tasks []*task, units float64, triage bool) (f filled) {
	horizon := 1.0
	for _, t := range tasks {
		t.isLost = false
		if !t.isTimeless() {
			horizon = max(horizon, t.due)
		}
	}
	for given := 0; ; given++ {
		s.grid.reset(units, horizon)
		var victim *task
		f, victim = s.placeAll(tasks, triage && given < maxTriage)
		if victim == nil {
			return f
		}
		victim.giveUp()
	}
}

// placeAll places the tasks that are not lost. It stops at a task that does not fit and returns the
// task to give up for it, if asked to.
func (s *plan) placeAll(tasks []*task, triage bool) (f filled, victim *task) {
	for i, t := range tasks {
		if t.isLost {
			f.missing++
			f.lost++
			continue
		}
		s.grid.place(t)
		if t.missing <= 0 {
			continue
		}
		f.missing += t.missing / t.work
		if t.missing <= lostRatio*t.work {
			continue
		}
		if triage {
			return f, victimOf(tasks[:i+1])
		}
		f.lost++
	}
	return f, nil
}

// victimOf returns the task with the most reserved unit-seconds, or the last one if it cannot be
// saved.
func victimOf(tasks []*task) *task {
	victim := tasks[len(tasks)-1]
	if victim.fastest().Rate*victim.due < victim.work {
		return victim
	}
	for _, t := range tasks {
		if !t.isLost && t.area > victim.area {
			victim = t
		}
	}
	return victim
}

func (t *task) giveUp() {
	t.isLost = true
	t.missing = t.work
	t.level, t.share, t.area = 0, 0, 0
	t.segment = len(t.hull) - 1
}
