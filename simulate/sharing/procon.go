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

// compare returns the effects of a cluster on the schedules, against another one.
func (s *clusterSchedule) compare(cl, base Cluster) (e randomEffects) {
	for seed := range uint64(randomSeeds) {
		cl.Seed, base.Seed = seed, seed
		jobs := RandomJobs(s.jobs, s.overSeconds, defaultError, seed)
		e.add(jobs, SimulateCluster(jobs, cl, s.contention), SimulateCluster(jobs, base, s.contention))
	}
	return e
}

// addProCon adds the figures of ProCon against the nodes with the fewest jobs, and of simpler rules.
func addProCon(f *figures.Comparisons) {
	fewest := placed(PlacementFewest)
	for i := range clusterSchedules {
		s := &clusterSchedules[i]
		e := s.compare(placed(PlacementProCon), fewest)
		variant := s.variant("ProCon")
		f.AddReductions("completion time of the best job, mean", figures.Bar(proconBestJob), variant, meanOf(e.best))
		f.AddReductions("completion time of all jobs, mean", figures.Bar(proconAllJobs), variant, meanOf(e.average))

		for _, simple := range []struct {
			name string
			rule Placement
		}{{"least remaining work", PlacementLeastWork}, {"random nodes", PlacementRandom}} {
			e = s.compare(placed(simple.rule), fewest)
			f.AddReductions("completion time of all jobs, mean", figures.Target{}, s.variant(simple.name),
				meanOf(e.average))
		}
	}
}
