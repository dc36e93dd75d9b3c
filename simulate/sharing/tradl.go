package sharing

import (
	"fmt"

	"courier/policy/target"
	"courier/simulate/figures"
)

// tradlBestJob is the reduction of the time to the first target that the abstract of TRADL reports.
const tradlBestJob = 0.482

// deliverDivider divides by policy/target.
type deliverDivider struct{ interval float64 }

func (d deliverDivider) divide(running []*sharingJob, now float64, _ bool) float64 {
	jobs := make([]target.Job, len(running))
	for i, j := range running {
		first := j.lossAfter(j.TrainingJob.qualityWork(qualityRatio))
		jobs[i] = target.Job{Accuracy: 1 - j.loss(), FirstTarget: 1 - first}
	}
	for i, share := range target.Deliver(jobs, target.Options{}) {
		running[i].share = share
	}
	return now + d.interval
}

// addTRADL adds the figures of TRADL against fair sharing, and those of FlowCon, which does not know
// the targets. The schedules are those of FlowCon.
func addTRADL(f *figures.Comparisons) {
	tradl := Sharing{Rule: RuleDeliver, Interval: 10}
	flowcon := Sharing{Interval: 10}
	for _, overSeconds := range []float64{200, 900} {
		for _, contention := range []float64{0, 0.1} {
			schedule := fmt.Sprintf(", %d random schedules of 10 jobs over %g s, contention %g",
				randomSeeds, overSeconds, contention)

			e := simulateRandom(tradl, 10, overSeconds, contention)
			variant := "TRADL" + schedule
			f.Group("TRADL")
			f.AddReductions("time to the first target of the best job, mean", figures.Bar(tradlBestJob), variant,
				e.bestQuality)
			f.AddReductions("time to the first target of all jobs, mean", figures.Target{}, variant, e.quality)
			f.AddReductions("completion time of all jobs, mean", figures.Target{}, variant, e.average)

			e = simulateRandom(flowcon, 10, overSeconds, contention)
			variant = "FlowCon by the target of TRADL" + schedule
			f.Group("FlowCon by the target of TRADL")
			f.AddReductions("time to the first target of the best job, mean", figures.Target{}, variant,
				e.bestQuality)
			f.AddReductions("time to the first target of all jobs, mean", figures.Target{}, variant, e.quality)
		}
	}
	f.Group("")
}
