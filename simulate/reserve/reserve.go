// Package reserve reproduces the figures of DRESS (Mao et al., IEEE CLOUD 2018), which reserves a part
// of a cluster for small jobs: policy/reserve against first come, first served, and against first fit.
//
// Random jobs with fixed numbers of units are submitted to a cluster that they congest. Package
// simulate/elastic plays them, without pauses, and checks the schedules.
package reserve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"courier/policy"
	"courier/policy/reserve"
	"courier/simulate/elastic"
	"courier/simulate/figures"
)

// publishedSmall is the reduction of the completion time of one class that the abstract reports.
const publishedSmall = 0.761

const (
	seeds        = 30
	jobs         = 40
	clusterUnits = 64
	mostSmall    = 6   // units of a small job: up to 10 % of the cluster
	leastLarge   = 16  // units of a large job
	mostLarge    = 48  // units
	smallRatio   = 0.3 // of the jobs
)

// gaps between two submissions, in seconds: a queue that grows to the last submission, and a cluster
// that could do 92 % of the work in time.
var gaps = []float64{5, 30}

// randomTrace returns jobs that need 20 to 160 s, like those of the other simulations.
func randomTrace(gap float64, seed uint64) ([]elastic.TraceJob, elastic.Throughputs) {
	random := rand.New(rand.NewPCG(seed, 2))
	rates := elastic.Throughputs{}
	trace := make([]elastic.TraceJob, jobs)
	for i := range trace {
		units := leastLarge + random.IntN(mostLarge-leastLarge+1)
		if random.Float64() < smallRatio {
			units = 1 + random.IntN(mostSmall)
		}
		model := strconv.Itoa(units)
		rates[model] = map[int]policy.Curve{1: {{Units: units, Rate: 1}}}
		submitted := time.Duration(gap * float64(i) * float64(time.Second))
		trace[i] = elastic.TraceJob{
			ID:         strconv.Itoa(i),
			Submitted:  submitted,
			Deadline:   submitted + 1000*time.Hour, // no job is late
			Iterations: []float64{20, 40, 80, 160}[random.IntN(4)],
			Model:      model,
			BatchSize:  1,
		}
	}
	return trace, rates
}

// outcome are the completion times of a schedule, in seconds.
type outcome struct {
	small, large float64 // sums by class
	makespan     float64
}

// play plays a trace with a rule.
func play(ctx context.Context, gap float64, seed uint64, rule reserve.Rule) (o outcome, err error) {
	trace, rates := randomTrace(gap, seed)
	score, err := elastic.Play(ctx, trace, rates, string(rule), reserve.New(reserve.Options{Rule: rule}),
		elastic.Options{Cluster: elastic.GPUCluster{
			GPUs:  clusterUnits,
			Pause: policy.Pause{Charge: policy.ChargeNone},
		}})
	if err != nil {
		return o, err
	}
	if score.Kept != len(trace) {
		return o, fmt.Errorf("rule %q, seed %d: %d of %d jobs end", rule, seed, score.Kept, len(trace))
	}
	submitted := map[string]time.Duration{}
	for _, j := range trace {
		submitted[j.ID] = j.Submitted
	}
	for _, s := range score.Schedule {
		seconds := (s.End - submitted[s.Job]).Seconds()
		if s.GPUs <= mostSmall {
			o.small += seconds
		} else {
			o.large += seconds
		}
		o.makespan = max(o.makespan, s.End.Seconds())
	}
	return o, nil
}

// Reproduce adds the figures to those of other systems.
func Reproduce(ctx context.Context, f *figures.Comparisons) error {
	for _, gap := range gaps {
		base, err := playAll(ctx, gap, reserve.RuleFirst)
		if err != nil {
			return err
		}
		for _, r := range []struct {
			name  string
			rule  reserve.Rule
			small figures.Target
		}{
			{"DRESS", reserve.RuleReserve, figures.Bar(publishedSmall)},
			{"first fit", reserve.RuleFirstFit, figures.Target{}},
		} {
			got, err := playAll(ctx, gap, r.rule)
			if err != nil {
				return err
			}
			variant := fmt.Sprintf("%s, %d random schedules of %d jobs every %g s on %d units",
				r.name, seeds, jobs, gap, clusterUnits)
			f.Group(fmt.Sprintf("%s on %d units", r.name, clusterUnits))
			f.AddReductions("completion time of small jobs, mean", r.small, variant,
				reductions(got, base, func(o *outcome) float64 { return o.small }))
			f.AddReductions("completion time of large jobs, mean", figures.Target{}, variant,
				reductions(got, base, func(o *outcome) float64 { return o.large }))
			f.AddReductions("completion time of all jobs, mean", figures.Target{}, variant,
				reductions(got, base, func(o *outcome) float64 { return o.small + o.large }))
			f.AddReductions("makespan, mean", figures.Target{}, variant,
				reductions(got, base, func(o *outcome) float64 { return o.makespan }))
		}
	}
	f.Group("")
	return nil
}

// playAll plays all schedules with a rule.
func playAll(ctx context.Context, gap float64, rule reserve.Rule) (all []outcome, err error) {
	for seed := range uint64(seeds) {
		o, err := play(ctx, gap, seed, rule)
		if err != nil {
			return nil, err
		}
		all = append(all, o)
	}
	return all, nil
}

// reductions returns the reduction of a time in each schedule.
func reductions(got, base []outcome, seconds func(*outcome) float64) []float64 {
	values := make([]float64, len(got))
	for i := range got {
		values[i] = 1 - seconds(&got[i])/seconds(&base[i])
	}
	return values
}
