package fit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/fit"
	"courier/policy/speed"
	"courier/schemas"
)

// nodeJobs returns random jobs that run with 1 to 8 CPUs and know their own speed, and some without a window.
func nodeJobs(random *rand.Rand) (jobs []policy.Job) {
	allowed := []int{1, 2, 4, 8}
	limits := []schemas.Bottleneck{
		"", schemas.BottleneckCPU, schemas.BottleneckSurplus, schemas.BottleneckInput, schemas.BottleneckThreads,
	}
	for i := range 1 + random.IntN(6) {
		j := policy.Job{
			ID: fmt.Sprint(i), Units: allowed[random.IntN(4)], Allowed: allowed, Confidence: 0.9,
			Options: []policy.Option{{Work: 1}}, Epochs: 100, EpochsSinceMove: 50,
		}
		for k, n := range allowed {
			p := policy.CurvePoint{Units: n, Rate: float64(n), Chance: float64(k+random.IntN(3)) / 4}
			j.Options[0].Curve = append(j.Options[0].Curve, p)
		}
		if random.IntN(2) == 0 {
			j.Deadline = now.Add(time.Hour)
		}
		if random.IntN(4) > 0 {
			s := speed.Shape{Workers: 1, WorkerCores: j.Units}
			r := speed.StepReport{Shape: s, StepSeconds: 1, WorkerCPURatio: random.Float64()}
			t := &policy.Training{
				Facts:      speed.Facts{SamplesPerWorker: 1, BytesPerSecond: 1},
				Shape:      s,
				Window:     []speed.StepReport{r, r, r},
				Bottleneck: limits[random.IntN(len(limits))],
			}
			t.Model = speed.Learn(t.Facts, []speed.ShapeTime{speed.NewShapeTime(t.Window)}, nil, speed.Shape{})
			j.Training = t
		}
		jobs = append(jobs, j)
	}
	return jobs
}

// On random nodes, jobs without a window keep their CPUs, promises are kept, jobs grow only into the
// capacity and by a gain, and a plan that was carried out leads to no other one.
func TestNode_KeepsTheRulesOnRandomNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	p, moved, again := policy.Guard(fit.Node{}), 0, 0
	for range 2000 {
		v := &policy.View{Now: now, Units: 4 + random.IntN(20), Cores: 24, Jobs: nodeJobs(random)}
		before, after := 0, 0
		moves := p.Plan(v)
		for i := range v.Jobs {
			before += v.Jobs[i].Units
		}
		for _, m := range moves {
			var j *policy.Job
			for i := range v.Jobs {
				if v.Jobs[i].ID == m.Job {
					j = &v.Jobs[i]
				}
			}
			switch {
			case j.Training == nil && m.Units < j.Units && m.Reason != policy.ReasonYield:
				t.Fatalf("%+v: nothing is known about the job", m)
			case m.Units < j.Units && j.KeepsDeadline(v, j.Units) && !j.KeepsDeadline(v, m.Units):
				t.Fatalf("%+v: the job loses its deadline", m)
			case m.Reason == policy.ReasonGrow && !(m.SpeedRatio > 1):
				t.Fatalf("%+v: the job grows without a gain", m)
			case m.Units < j.Units && m.SpeedRatio > 1:
				t.Fatalf("%+v: a loan with a gain", m)
			}
			after += m.Units - j.Units
			j.Units = m.Units
			moved++
		}
		if after += before; after > max(before, v.Units) {
			t.Fatalf("the jobs hold %d of %d CPUs, before %d: %+v", after, v.Units, before, moves)
		}
		again += len(p.Plan(v))
	}
	t.Logf("%d moves, and %d more of the same windows", moved, again)
	if moved < 1000 || again > moved/10 {
		t.Errorf("%d moves and %d more, want at least 1000 and at most a tenth more", moved, again)
	}
}
