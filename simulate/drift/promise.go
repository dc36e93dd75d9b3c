package drift

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"courier/advisor"
	"courier/schemas"
	"courier/simulate"
	"courier/trainer"
)

const (
	promiseFits     = 4   // independent sets of regressors, used in turn
	promiseExamples = 10  // per configuration, on which each set was fitted
	jobsAfter       = 200 // after the change
	promiseModel    = "model-1"
	promiseNode     = "node-1"
)

var promiseBatches, promiseCPUs = []int{16, 64, 256}, []int{1, 2}

// promiseSeconds is the true time of a job before the change.
func promiseSeconds(batch, cpus int) float64 {
	return 60 * (1 + 32/float64(batch)) / float64(cpus)
}

// coverage asks the advisor for promises before and after all jobs change, and counts how many are
// kept. The regressors are not fitted again: this measures the conformal bounds alone.
func (s *simulation) coverage(ctx context.Context, r *Reaction) error {
	var fits [promiseFits]advisor.Regressors
	err := inParallel(ctx, promiseFits, func(ctx context.Context, number int) (err error) {
		fits[number], err = s.fit(ctx, s.random(streamExamples, number))
		return err
	})
	if err != nil {
		return err
	}

	runs := make([][]promise, s.Repetitions)
	err = inParallel(ctx, s.Repetitions, func(_ context.Context, number int) (err error) {
		random := s.random(streamPromises, number)
		runs[number], err = s.runJobs(random, fits[number%promiseFits])
		return err
	})

	r.CoverageBefore, r.WidthBefore, _ = keptRatio(runs, jobsBefore-50, jobsBefore)
	r.CoverageAtOnce, _, _ = keptRatio(runs, jobsBefore, jobsBefore+20)
	r.CoverageAfter20, _, _ = keptRatio(runs, jobsBefore+20, jobsBefore+50)
	r.CoverageAfter50, r.WidthAfter50, _ = keptRatio(runs, jobsBefore+50, jobsBefore+jobsAfter)
	_, _, r.UnpromisedRatio = keptRatio(runs, jobsBefore, jobsBefore+jobsAfter)
	return err
}

// fit fits regressors of epoch time and accuracy on a few runs of every configuration.
func (s *simulation) fit(
	ctx context.Context, random *rand.Rand,
) (r advisor.Regressors, err error) {
	var examples []trainer.Example
	for _, batch := range promiseBatches {
		for _, cpus := range promiseCPUs {
			for range promiseExamples {
				examples = append(examples, trainer.Example{
					Model: promiseModel,
					Features: schemas.Features{
						BatchSize:  uint32(batch),
						CPUs:       uint32(cpus),
						Load:       schemas.Load{ConcurrentJobs: 1, Processes: float64(cpus)},
						EpochsDone: 1,
					},
					Weight: 1,
					Value:  promiseSeconds(batch, cpus) * math.Exp(s.Noise*random.NormFloat64()),
				})
			}
		}
	}

	fitTarget := func(target string) (*advisor.LoadedRegressor, error) {
		fitted, err := trainer.Fit(ctx, target, examples, trainer.Options{Seed: s.Seed})
		if err != nil {
			return nil, err
		}
		p, digest, err := simulate.Reload(fitted)
		if err != nil {
			return nil, err
		}
		return advisor.NewRegressor(p, digest)
	}
	if r.EpochTime, err = fitTarget(schemas.TargetEpochTime); err != nil {
		return r, err
	}
	for i := range examples {
		examples[i].Value = 0.9 - 0.0001*float64(examples[i].Features.BatchSize)
	}
	r.Accuracy, err = fitTarget(schemas.TargetAccuracy)
	return r, err
}

// promise is the upper bound of a job divided by its measured time; 0 without a promise.
type promise float64

// keptRatio returns the share of promises that were kept among some jobs of each run, the median of
// bound / measured time, and the share of jobs without a promise.
func keptRatio(runs [][]promise, from, to int) (ratio, width, unpromised float64) {
	var kept, none, all float64
	var widths []float64
	for _, jobs := range runs {
		for _, p := range jobs[min(from, len(jobs)):min(to, len(jobs))] {
			all++
			switch {
			case p == 0:
				none++
				continue
			case p >= 1:
				kept++
			}
			widths = append(widths, float64(p))
		}
	}
	if all == 0 || all == none {
		return 0, 0, none / max(all, 1)
	}
	return kept / (all - none), median(widths), none / all
}

// runJobs runs jobs of one epoch one after another. Each is submitted, promised, run and recorded
// as in the advisor.
func (s *simulation) runJobs(
	random *rand.Rand, regressors advisor.Regressors,
) ([]promise, error) {
	l := &eventLog{cluster: advisor.NewCluster(), now: time.Unix(0, 0).UTC()}
	promises := make([]promise, 0, jobsBefore+jobsAfter)
	for i := range jobsBefore + jobsAfter {
		batch := promiseBatches[random.IntN(len(promiseBatches))]
		cpus := promiseCPUs[random.IntN(len(promiseCPUs))]
		seconds := promiseSeconds(batch, cpus) * math.Exp(s.Noise*random.NormFloat64())
		if i >= jobsBefore {
			seconds *= 1 + s.Change
		}

		q := schemas.JobRequest{
			JobID:      fmt.Sprintf("job-%d", i),
			Model:      promiseModel,
			BatchSizes: []int{batch},
			CPUs:       schemas.CPUs{cpus},
			Epochs:     1,
			Nodes:      []string{promiseNode},
			SLO:        schemas.Duration(24 * time.Hour),
			Confidence: s.Confidence,
		}.WithDefaults()
		a := advisor.Decide(l.cluster.Ask(q, l.now), regressors, l.now)
		if a.Chosen == nil {
			return nil, fmt.Errorf("%s got no advice: %s", q.JobID, a.Message)
		}
		promises = append(promises, 0)
		if bound := a.Chosen.UpperBoundSeconds; bound != nil && a.Decision == schemas.MeetsSLO {
			promises[i] = promise(*bound / seconds)
		}
		l.run(q, a, seconds)
	}
	return promises, nil
}

// eventLog applies the events of simulated jobs to the state of an advisor.
type eventLog struct {
	cluster  *advisor.Cluster
	now      time.Time
	sequence uint64
}

func (l *eventLog) apply(e schemas.Event) {
	l.sequence++
	l.cluster.Apply(e, l.sequence, l.now)
}

func (l *eventLog) stamp(id, job string, run uint32) schemas.JobStamp {
	return schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: id, At: l.now},
		JobID: job,
		Run:   run,
	}
}

// run applies the events of a job of one epoch.
func (l *eventLog) run(q schemas.JobRequest, a *schemas.Advice, seconds float64) {
	job := q.JobID
	set := schemas.Setting{
		Model:     q.Model,
		BatchSize: uint32(q.BatchSizes[0]),
		CPUs:      uint32(q.CPUs[0]),
		Epochs:    1,
		Nodes:     q.Nodes,
	}

	l.apply(&schemas.Submitted{
		JobStamp: l.stamp(job+"/0/submitted", job, 0),
		Request:  q,
		Advice:   *a,
	})
	l.apply(&schemas.Started{
		JobStamp:  l.stamp(schemas.StartedID(job, 1), job, 1),
		Setting:   set,
		NodeCores: 8,
	})
	l.now = l.now.Add(time.Duration(seconds * float64(time.Second)))
	l.apply(&schemas.Epoch{
		JobStamp:        l.stamp(schemas.EpochID(job, 1, 1), job, 1),
		Setting:         set,
		Epoch:           1,
		DurationSeconds: seconds,
		DurationSource:  schemas.DurationReported,
		NodeCores:       8,
	})
	l.apply(&schemas.Ended{
		JobStamp:        l.stamp(schemas.EndedID(job, 1, schemas.EventFinished), job, 1),
		Outcome:         schemas.EventFinished,
		DurationSeconds: seconds,
		EpochsDone:      1,
		Setting:         set,
	})
}
