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
	view     *policy.View
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
func (p *Policy) Plan(view *policy.View, now time.Time) policy.Decision {
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
	s.tasks = make([]task, 0, len(view.Jobs)+len(view.Queue))
	for i := range view.Jobs {
		if job := &view.Jobs[i]; len(job.Options) > 0 {
			t := s.newTask(job, &job.Options[0])
			t.current = max(0, job.Units)
			t.work = max(0, t.work-s.progress(&t, s.lead))
			s.tasks = append(s.tasks, t)
		}
	}
	slices.SortStableFunc(s.tasks, func(a, b task) int { return cmp.Compare(a.due, b.due) })

	s.admit()
	s.fill(s.tasks, float64(s.capacity), true)
	s.allocate()
	review := s.change()
	return policy.Decision{Moves: s.moves, ReviewAt: review}
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
