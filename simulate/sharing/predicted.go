package sharing

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/policy"
	"courier/policy/deadline"
)

const (
	reviewSeconds = 5.0
	floorFactor   = 8.0 // beta of section 1.3: no job gets less than 1 / (8 n)
)

// predictedDivider divides by predicted remaining times. Each job has the floor; the rule decides
// about the rest.
type predictedDivider struct{ rule Rule }

func (d *predictedDivider) divide(running []*sharingJob, now float64, _ bool) float64 {
	n := float64(len(running))
	for _, j := range running {
		j.share = 1 / (floorFactor * n)
	}
	rest := 1 - 1/floorFactor
	switch d.rule {
	case RuleSatisfactory:
		rest = d.satisfy(running, now, rest)
		shortest(running).share += rest
	case RuleShortest:
		shortest(running).share += rest
	case RuleEarliest:
		d.earliest(running, now).share += rest
	}
	return now + reviewSeconds
}

// satisfy raises jobs to the share that their deadline needs, the earliest deadline first, and
// returns what is left.
func (d *predictedDivider) satisfy(running []*sharingJob, now, rest float64) float64 {
	for _, j := range byDeadline(running, now) {
		left := j.left(now)
		if left <= 0 || j.predicted() > left {
			continue // late, whatever it gets
		}
		more := min(rest, max(0, j.predicted()/left-j.share))
		j.share += more
		rest -= more
	}
	return rest
}

// earliest returns the job with the earliest deadline that can still be met. If none can, it is the
// shortest job.
func (d *predictedDivider) earliest(running []*sharingJob, now float64) *sharingJob {
	for _, j := range byDeadline(running, now) {
		if j.predicted() <= j.left(now) {
			return j
		}
	}
	return shortest(running)
}

func byDeadline(running []*sharingJob, now float64) []*sharingJob {
	return slices.SortedStableFunc(slices.Values(running), func(a, b *sharingJob) int {
		return cmp.Compare(a.left(now), b.left(now))
	})
}

// shortest returns the job with the shortest predicted remaining time.
func shortest(running []*sharingJob) *sharingJob {
	return slices.MinFunc(running, func(a, b *sharingJob) int {
		return cmp.Compare(a.predicted(), b.predicted())
	})
}

// nodeUnits is the number of units that the node has for policy/deadline.
const nodeUnits = 20

// timeScale is how many seconds of the policy a second of the node is: its first step is 120 s, and
// jobs here take 20 to 160 s.
const timeScale = 10

// deadlineOptions are those of the policy on a node, where a change costs nothing. They were chosen
// on the schedules of seeds 0 to 24; courier simulate slo also reports others.
var deadlineOptions = deadline.Options{
	Margin:         timeScale * 20 * time.Second,
	Urgent:         timeScale * 15 * time.Second,
	ReviewInterval: timeScale * 60 * time.Second,
}

// deadlineDivider divides by policy/deadline. The node has units, a job's rate is proportional to
// them, and a change costs no pause. All jobs count as admitted: they run already, and the policy
// decides which of them to give up. There is no floor: jobs without units stand still.
type deadlineDivider struct {
	policy *deadline.Policy
	curve  policy.Curve
}

func newDeadlineDivider() *deadlineDivider {
	d := &deadlineDivider{policy: deadline.New(deadlineOptions)}
	for u := 1; u <= nodeUnits; u++ {
		d.curve = append(d.curve, policy.CurvePoint{Units: u, Rate: float64(u) / nodeUnits})
	}
	return d
}

// origin is the time of the start of a simulation; the policy needs some instant.
var origin = time.Unix(0, 0)

func at(seconds float64) time.Time {
	return origin.Add(time.Duration(timeScale * seconds * float64(time.Second)))
}

func (d *deadlineDivider) divide(running []*sharingJob, now float64, _ bool) float64 {
	view := &policy.ClusterView{
		Nodes: []policy.NodeView{{Name: "node", Units: nodeUnits}},
		Pause: policy.Pause{Charge: policy.ChargeNone},
	}
	jobs := map[string]*sharingJob{}
	for _, j := range running {
		jobs[j.Name] = j
		job := policy.ElasticJob{
			ID:        j.Name,
			Submitted: at(j.Arrival),
			Options:   []policy.Option{{Work: timeScale * j.predicted(), Curve: d.curve}},
			Units:     j.units,
		}
		if !math.IsInf(j.left(now), 1) {
			job.Deadline = at(j.Arrival + j.Deadline)
		}
		view.Jobs = append(view.Jobs, job)
	}
	decision := d.policy.Plan(view, at(now))
	for _, m := range decision.Moves {
		jobs[m.Job].units = m.Units
	}
	held := 0
	for _, j := range running {
		held += j.units
	}
	for _, j := range running {
		j.share = float64(j.units) / float64(max(1, held)) // weights: idle CPU goes to the others
	}
	return now + reviewSeconds
}
