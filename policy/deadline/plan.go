package deadline

import (
	"cmp"
	"slices"
	"time"

	"courier/policy"
)

// Policy is the deadline policy. It is safe for concurrent use.
type Policy struct{ o Options }

// New returns the policy.
func New(o Options) *Policy { return &Policy{o.withDefaults()} }

type plan struct {
	o        Options
	view     *policy.ClusterView
	now      time.Time
	start    time.Time // of the plan: the next time at which a moment may be
	lead     float64   // seconds from now to start
	restarts bool      // the next moment restarts all jobs

	tasks []*task // admitted jobs in order of due time
	grid  grid
	moves []policy.Move
}

// Plan implements policy.Policy.
func (p *Policy) Plan(view *policy.ClusterView, now time.Time) policy.MoveDecision {
	s := &plan{
		o:        p.o,
		view:     view,
		now:      now,
		start:    view.NextMoment(now),
		restarts: view.Pause.Restarts(view.Moments),
	}
	s.lead = s.start.Sub(now).Seconds()
	s.addAdmitted()
	s.admit()
	s.fill(s.tasks, float64(view.Units), true)
	s.allocate()
	review := s.change()
	return policy.MoveDecision{Moves: s.moves, ReviewAt: review}
}

// addAdmitted adds the admitted jobs in order of due time. Equal ones keep their order.
func (s *plan) addAdmitted() {
	for i := range s.view.Jobs {
		job := &s.view.Jobs[i]
		t := s.newTask(job, &job.Options[0])
		t.current = job.Units
		t.work = max(0, t.work-s.progress(t, s.lead))
		s.tasks = append(s.tasks, t)
	}
	slices.SortStableFunc(s.tasks, byDue)
}

func byDue(a, b *task) int { return cmp.Compare(a.due, b.due) }

func (s *plan) move(kind policy.Kind, t *task, units int, reason policy.Reason) {
	s.moves = append(s.moves, policy.Move{
		Kind:   kind,
		Job:    t.job.ID,
		Option: t.option,
		Units:  units,
		Reason: reason,
	})
}
