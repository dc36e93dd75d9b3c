package deadline

import (
	"cmp"
	"slices"
	"time"

	"courier/policy"
)

// Policy is the deadline policy. It is safe for concurrent use.
type Policy struct {
	o Options
}

// New returns the policy.
func New(o Options) *Policy {
	return &Policy{o.withDefaults()}
}

// plan is one decision.
type plan struct {
	o        Options
	view     *policy.ClusterView
	now      time.Time
	start    time.Time // of the plan: the next time at which a moment may be
	lead     float64   // seconds from now to start
	restarts bool      // the next moment restarts all jobs
	capacity int

	tasks   []task // admitted jobs in order of due time
	grid    grid
	scratch []task
	typical float64 // unit-seconds of a typical job; negative: not computed
	moves   []policy.Move
}

// Plan implements policy.Policy.
func (p *Policy) Plan(view *policy.ClusterView, now time.Time) policy.MoveDecision {
	s := &plan{
		o:        p.o,
		view:     view,
		now:      now,
		start:    view.NextMoment(now),
		restarts: view.Pause.Restarts(view.Moments),
		capacity: view.Units(),
		typical:  -1,
	}
	s.lead = s.start.Sub(now).Seconds()
	s.tasks = s.admitted()
	s.admit()
	s.fill(s.tasks, float64(s.capacity), true)
	s.allocate()
	review := s.change()
	return policy.MoveDecision{Moves: s.moves, ReviewAt: review}
}

// admitted returns the admitted jobs in order of due time. Equal ones keep their order.
func (s *plan) admitted() []task {
	jobs := s.view.Jobs
	tasks := make([]task, 0, len(jobs))
	for i := range jobs {
		if len(jobs[i].Options) > 0 {
			t := s.newTask(&jobs[i], &jobs[i].Options[0])
			t.current = max(0, jobs[i].Units)
			t.work = max(0, t.work-s.progress(&t, s.lead))
			tasks = append(tasks, t)
		}
	}

	order := make([]int, len(tasks)) // swapping numbers is faster than swapping tasks
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(tasks[a].due, tasks[b].due), cmp.Compare(a, b))
	})
	sorted := make([]task, len(tasks), len(tasks)+len(s.view.Queue))
	for i, from := range order {
		sorted[i] = tasks[from]
	}
	return sorted
}

func (s *plan) move(kind policy.Kind, t *task, units int, reason policy.Reason) {
	s.moves = append(s.moves, policy.Move{
		Kind:   kind,
		Job:    t.job.ID,
		Option: t.option,
		Units:  units,
		Reason: reason,
	})
}
