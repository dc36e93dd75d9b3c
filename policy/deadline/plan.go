// Package deadline is the default policy: elastic jobs that are promised a deadline at submission.
//
// Each call plans all admitted jobs in order of deadline on a step function of the free capacity
// (grid). A job gets the smallest constant number of units that completes it in time, on the concave
// hull of its curve: any other course holds more unit-seconds. The plan has four uses:
//
//   - Admission (admit.go). A queued job is admitted if every promise can still be kept and if the
//     job does not take the place of several others. All others are refused at once.
//   - Triage (grid.go). If a promise cannot be kept any more, the plan gives up the job that holds
//     the most unit-seconds before that deadline, so that the fewest jobs are late (Moore and
//     Hodgson 1968). It gets units that no other job needs.
//   - Shares (allocate.go). Each job gets its minimum share, and left-over units go where they save
//     the most unit-seconds later: to the largest speed gained per unit, relative to that at the
//     job's minimum share.
//   - Moments (moment.go). Because all running jobs pause at a moment, new shares are carried out
//     only if they pay back the pauses, or if waiting loses more promises than it saves.
//
// The policy keeps no state between calls. The number of steps of the grid depends on the logarithm
// of the longest window, so the time of a decision grows with the number of jobs only.
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

// Options are the parameters of the policy. A zero field means the documented default. The defaults
// were chosen on seven traces of ElasticFlow together, and on six of them with a half to an eighth
// of the GPUs; see docs/reference/benchmarks-policies.md.
type Options struct {
	// MomentInterval is the distance of moments that plans expect: rates are lowered by the pause
	// per interval. Default: 20 minutes.
	MomentInterval time.Duration
	// PayBack is the time in which new shares must gain more than their moment costs. Default: 200
	// seconds.
	PayBack time.Duration
	// ReviewInterval is the time to the next decision while the shares differ from the plan.
	// Default: 1 minute.
	ReviewInterval time.Duration
	// Margin is subtracted from the time to a deadline, at most half of the job's slack. Default: 2
	// minutes.
	Margin time.Duration
	// Urgent is how long a job must be able to wait for more units. A job that cannot gets them
	// before others. Default: 15 minutes.
	Urgent time.Duration

	// NoHeadroom lets admission fill the capacity. By default it leaves 6.4 units free, but 0.1 to 0.4
	// of the capacity, because jobs hold whole numbers of units. Jobs that can run side by side until
	// their ends need none.
	NoHeadroom bool
}

// costLimit is the cost above which a job is refused although it fits: its unit-seconds, relative to
// the median of recent submissions, times the fourth power of the utilization until its deadline.
const costLimit = 1

func (o Options) withDefaults() Options {
	o.MomentInterval = cmp.Or(o.MomentInterval, 20*time.Minute)
	o.PayBack = cmp.Or(o.PayBack, 200*time.Second)
	o.ReviewInterval = cmp.Or(o.ReviewInterval, time.Minute)
	o.Margin = cmp.Or(o.Margin, 2*time.Minute)
	o.Urgent = cmp.Or(o.Urgent, 15*time.Minute)
	return o
}

// The headroom without Options.NoHeadroom.
const (
	headroomUnits                      = 6.4
	minHeadroomRatio, maxHeadroomRatio = 0.1, 0.4
)

// headroomRatio returns the ratio of a capacity that admission leaves free.
func (o *Options) headroomRatio(units int) float64 {
	if o.NoHeadroom {
		return 0
	}
	return min(max(headroomUnits/float64(units), minHeadroomRatio), maxHeadroomRatio)
}
