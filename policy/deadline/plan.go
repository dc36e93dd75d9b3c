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
type Policy struct{ o options }

// ForCluster returns the policy for a cluster of GPUs, whose jobs restart to change their units.
func ForCluster() *Policy { return &Policy{clusterOptions} }

// ForNode returns the policy for a node, whose jobs change their CPUs while they run.
func ForNode() *Policy { return &Policy{nodeOptions} }

type plan struct {
	o        options
	view     *policy.View
	start    time.Time // of the plan: the next time at which a moment may be
	lead     float64   // seconds from now to start
	restarts bool      // the next moment restarts all jobs

	tasks []*task // admitted jobs in order of due time
	grid  grid
	moves []policy.Move
}

// Plan implements policy.Policy.
func (p *Policy) Plan(v *policy.View) []policy.Move {
	s := &plan{
		o:        p.o,
		view:     v,
		start:    v.NextMoment(),
		restarts: v.Pause.Restarts(v.Moments),
	}
	s.lead = s.start.Sub(v.Now).Seconds()
	s.addAdmitted()
	s.admit()
	s.fill(s.tasks, float64(v.Units), true)
	s.allocate()
	s.change()
	return s.moves
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

// options are the parameters of the policy.
type options struct {
	// momentInterval is the distance of moments that plans expect: rates are lowered by the pause
	// per interval.
	momentInterval time.Duration
	// payBack is the time in which new shares must gain more than their moment costs.
	payBack time.Duration
	// reviewInterval is the time to the next decision while the shares differ from the plan.
	reviewInterval time.Duration
	// margin is subtracted from the time to a deadline, at most half of the job's slack.
	margin time.Duration
	// urgent is how long a job must be able to wait for more units. A job that cannot gets them
	// before others.
	urgent time.Duration
	// headroomUnits are free units that admission leaves, as a ratio of the capacity from
	// minHeadroomRatio to maxHeadroomRatio, because jobs hold whole numbers of units. Jobs that can
	// run side by side until their ends need none.
	headroomUnits                      float64
	minHeadroomRatio, maxHeadroomRatio float64
}

// clusterOptions were chosen on seven traces of ElasticFlow together, and on six of them with a half to
// an eighth of the GPUs; see docs/reference/benchmarks-policies.md.
var clusterOptions = options{
	momentInterval:   20 * time.Minute,
	payBack:          200 * time.Second,
	reviewInterval:   time.Minute,
	margin:           2 * time.Minute,
	urgent:           15 * time.Minute,
	headroomUnits:    6.4,
	minHeadroomRatio: 0.1,
	maxHeadroomRatio: 0.4,
}

// nodeOptions are those of a node. Its jobs do not pause when their CPUs change, so moments are free. The
// rates are upper bounds already, so a deadline needs no margin but the seconds until the next epoch
// ends, at which the node is planned again. Admission fills the node, or a job that fits would wait.
var nodeOptions = options{
	momentInterval: 20 * time.Minute,
	payBack:        200 * time.Second,
	reviewInterval: time.Second,
	margin:         time.Second,
	urgent:         time.Second,
}

// costLimit is the cost above which a job is refused although it fits: its unit-seconds, relative to
// the median of recent submissions, times the fourth power of the utilization until its deadline.
const costLimit = 1

// headroomRatio returns the ratio of a capacity that admission leaves free.
func (o *options) headroomRatio(units int) float64 {
	return min(max(o.headroomUnits/float64(max(1, units)), o.minHeadroomRatio), o.maxHeadroomRatio)
}
