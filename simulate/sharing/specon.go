package sharing

import (
	"slices"
	"strconv"

	"courier/policy/placement"
	"courier/policy/quality"
	"courier/simulate/figures"
)

// The reductions that the abstract of SpeCon reports, against the default scheduler of Kubernetes.
const (
	speconBestJob  = 0.415
	speconAllJobs  = 0.148
	speconMakespan = 0.247
)

// The published parameters of SpeCon are 0.1 and 10 s. They are taken as a fall of the loss by 0.1 in
// 10 s, which is the default threshold of policy/quality.
const speconSeconds = 10

// moveSeconds is how long a job stands still when it moves (resource policies, section 1.2).
const moveSeconds = 60

// jobs returns the running jobs of a node, and those that are on their way to it.
func (n *node) jobs() []*sharingJob {
	return slices.Concat(n.running, n.coming)
}

// restart starts the jobs that were moved to the node.
func (n *node) restart(now float64) {
	n.coming = slices.DeleteFunc(n.coming, func(j *sharingJob) bool {
		if j.start > now {
			return false
		}
		j.since, j.lossSum, j.used = now, 0, 0
		n.running = append(n.running, j)
		n.isChanged = true
		return true
	})
}

// migrate observes the losses of all jobs, and moves at most one.
func (c *cluster) migrate(now float64) {
	c.review = now + speconSeconds
	for _, n := range c.nodes {
		n.observe(now)
	}
	m := placement.Migrate(c.view(), *c.Migration)
	if m == nil {
		return
	}
	from, to := c.nodes[index(m.From)], c.nodes[index(m.To)]
	i := slices.IndexFunc(from.running, func(j *sharingJob) bool { return j.Name == m.Job })
	j := from.running[i]
	from.running = slices.Delete(from.running, i, i+1)
	from.isChanged = true
	j.start = now + c.Migration.CostSeconds
	to.coming = append(to.coming, j)
}

// index returns the index of a node by its name in the view.
func index(name string) int {
	i, _ := strconv.Atoi(name)
	return i
}

// observe updates the phases of the running jobs.
func (n *node) observe(now float64) {
	before := map[string]quality.JobState{}
	for _, j := range n.running {
		before[j.Name] = quality.JobState{Phase: j.phase}
	}
	after, _ := quality.Plan(before, closeWindows(n.running, now), quality.Options{})
	for _, j := range n.running {
		j.phase = after[j.Name].Phase
	}
}

// addSpeCon adds the figures of SpeCon: as published, and only with moves that pay back.
func (s *clusterSchedule) addSpeCon(f *figures.Comparisons, base []*NodeOutcome) {
	for _, v := range []struct {
		name    string
		options placement.MigrateOptions
	}{
		{"SpeCon as published", placement.MigrateOptions{CostSeconds: moveSeconds, IsPublished: true}},
		{"SpeCon with moves that save twice their cost", placement.MigrateOptions{CostSeconds: moveSeconds}},
	} {
		cl := placed(PlacementFewest)
		cl.Migration = &v.options
		e := s.compare(cl, base)
		variant := s.variant(v.name)
		f.Group(v.name + ", on 4 nodes")
		f.AddReductions("completion time of the best job, mean", figures.Bar(speconBestJob), variant, e.best)
		f.AddReductions("completion time of all jobs, mean", figures.Bar(speconAllJobs), variant, e.average)
		f.AddReductions("makespan, mean", figures.Bar(speconMakespan), variant, e.makespan)
	}
}
