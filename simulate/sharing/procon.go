package sharing

import (
	"fmt"

	"courier/simulate/figures"
)

// The reductions that the abstract of ProCon reports, against the default scheduler of Kubernetes.
const (
	proconBestJob = 0.533
	proconAllJobs = 0.23
)

// clusterNodes is the number of nodes in the authors' experiments with SpeCon.
const clusterNodes = 4

// clusterSchedule are random schedules for a cluster.
type clusterSchedule struct {
	jobs        int
	overSeconds float64
	contention  float64
}

// clusterSchedules are those of sections 2.7 and 5 of the design page resource-policies for each node:
// 10 jobs in a burst of 200 s, or over 900 s.
var clusterSchedules = []clusterSchedule{
	{10 * clusterNodes, 200, 0},
	{10 * clusterNodes, 200, 0.1},
	{10 * clusterNodes, 900, 0},
	{10 * clusterNodes, 900, 0.1},
}

func (s *clusterSchedule) variant(name string) string {
	return fmt.Sprintf("%s, %d random schedules of %d jobs over %g s on %d nodes, contention %g",
		name, randomSeeds, s.jobs, s.overSeconds, clusterNodes, s.contention)
}

// placed returns a cluster that shares fairly on its nodes.
func placed(p Placement) Cluster {
	return Cluster{Nodes: clusterNodes, Sharing: Sharing{Rule: RuleFair}, Placement: p}
}

// play simulates a cluster on all schedules.
func (s *clusterSchedule) play(cl Cluster) []*NodeOutcome {
	outcomes := make([]*NodeOutcome, randomSeeds)
	for seed := range outcomes {
		cl.Seed = uint64(seed)
		outcomes[seed] = SimulateCluster(s.randomJobs(cl.Seed), cl, s.contention)
	}
	return outcomes
}

func (s *clusterSchedule) randomJobs(seed uint64) []TrainingJob {
	return RandomJobs(s.jobs, s.overSeconds, defaultError, seed)
}

// compare returns the effects of a cluster on all schedules, against other outcomes.
func (s *clusterSchedule) compare(cl Cluster, base []*NodeOutcome) (e randomEffects) {
	for seed, got := range s.play(cl) {
		e.add(s.randomJobs(uint64(seed)), got, base[seed])
	}
	return e
}

// addClusters adds the figures of systems for several nodes, against the nodes with the fewest jobs.
func addClusters(f *figures.Comparisons) {
	for i := range clusterSchedules {
		s := &clusterSchedules[i]
		base := s.play(placed(PlacementFewest))
		s.addProCon(f, base)
		s.addSpeCon(f, base)
	}
	f.Group("")
}

// addProCon adds the figures of ProCon, and those of simpler rules.
func (s *clusterSchedule) addProCon(f *figures.Comparisons, base []*NodeOutcome) {
	e := s.compare(placed(PlacementProCon), base)
	variant := s.variant("ProCon")
	f.Group("ProCon on 4 nodes")
	f.AddReductions("completion time of the best job, mean", figures.Bar(proconBestJob), variant, e.best)
	f.AddReductions("completion time of all jobs, mean", figures.Bar(proconAllJobs), variant, e.average)

	for _, simple := range []struct {
		name string
		rule Placement
	}{{"least remaining work", PlacementLeastWork}, {"random nodes", PlacementRandom}} {
		e = s.compare(placed(simple.rule), base)
		f.Group(simple.name + " on 4 nodes")
		f.AddReductions("completion time of all jobs, mean", figures.Target{}, s.variant(simple.name),
			e.average)
	}
}
