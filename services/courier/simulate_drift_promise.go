package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"courier/advisor"
	"courier/schemas"
	"courier/trainer"
)

const (
	coverageFits     = 4   // regressors that promise, in turn
	coverageExamples = 10  // of each setting that each was fitted on
	jobsAfter        = 200 // a change
	coverageModel    = "model-1"
	coverageNode     = "node-1"
)

// coverageSeconds is the truth before the change.
func coverageSeconds(batch, cpus int) float64 { return 60 * (1 + 32/float64(batch)) / float64(cpus) }

var coverageBatches, coverageCPUs = []int{16, 64, 256}, []int{1, 2}

// coverage asks the advisor for promises, before and after all jobs change, and
// counts how many were kept. Nothing is fitted anew in between: this is what the
// conformal bounds do alone.
func (c *simulateDrift) coverage(w *world, r *driftResult) error {
	var fitted [coverageFits]advisor.Regressors
	err := inParallel(w.ctx, coverageFits, func(ctx context.Context, number int) (err error) {
		fitted[number], err = c.promiser(ctx, c.random(streamExamples, number))
		return err
	})
	if err != nil {
		return err
	}
	played := make([][]kept, c.Repetitions)
	err = inParallel(w.ctx, c.Repetitions, func(_ context.Context, number int) (err error) {
		played[number], err = c.promises(c.random(streamPromises, number), fitted[number%coverageFits])
		return err
	})
	r.CoverageBefore, r.WidthBefore, _ = keptRatio(played, jobsBefore-50, jobsBefore)
	r.CoverageAtOnce, _, _ = keptRatio(played, jobsBefore, jobsBefore+20)
	r.CoverageAfter20, _, _ = keptRatio(played, jobsBefore+20, jobsBefore+50)
	r.CoverageAfter50, r.WidthAfter50, _ = keptRatio(played, jobsBefore+50, jobsBefore+jobsAfter)
	_, _, r.UnpromisedRatio = keptRatio(played, jobsBefore, jobsBefore+jobsAfter)
	return err
}

// promiser fits what the advisor needs for a promise, on a few runs of every
// setting: how long an epoch takes, and what accuracy comes of it.
func (c *simulateDrift) promiser(ctx context.Context, random *rand.Rand) (r advisor.Regressors, err error) {
	var examples []trainer.Example
	for _, batch := range coverageBatches {
		for _, cpus := range coverageCPUs {
			for range coverageExamples {
				f := schemas.Features{BatchSize: uint32(batch), CPUs: uint32(cpus), Load: schemas.Load{ConcurrentJobs: 1, Processes: float64(cpus)}, EpochsDone: 1}
				examples = append(examples, trainer.Example{Model: coverageModel, Features: f, Weight: 1, Value: coverageSeconds(batch, cpus) * math.Exp(c.Noise*random.NormFloat64())})
			}
		}
	}
	use := func(target string) (*advisor.Regressor, error) {
		fitted, err := trainer.Fit(ctx, target, examples, trainer.Options{Seed: c.Seed})
		if err != nil {
			return nil, err
		}
		p, digest, err := served(fitted)
		if err != nil {
			return nil, err
		}
		return advisor.NewRegressor(p, digest)
	}
	if r.EpochTime, err = use(schemas.TargetEpochTime); err != nil {
		return r, err
	}
	for i := range examples {
		examples[i].Value = 0.9 - 0.0001*float64(examples[i].Features.BatchSize)
	}
	r.Accuracy, err = use(schemas.TargetAccuracy)
	return r, err
}

// kept is what became of a promise: the bound / the measured time; 0 if there
// was no bound.
type kept float64

// keptRatio returns the share of promises that were kept among some jobs of each
// play, the median of bound / measured, and the share that was not promised.
func keptRatio(played [][]kept, from, to int) (ratio, width, unpromised float64) {
	var held, none, all float64
	var widths []float64
	for _, jobs := range played {
		for _, k := range jobs[min(from, len(jobs)):min(to, len(jobs))] {
			all++
			switch {
			case k == 0:
				none++
				continue
			case k >= 1:
				held++
			}
			widths = append(widths, float64(k))
		}
	}
	if all == 0 || all == none {
		return 0, 0, none / max(all, 1)
	}
	return held / (all - none), middle(widths), none / all
}

// promises plays jobs of one epoch one after the other: each is asked for,
// promised, run and recorded, as the advisor does.
func (c *simulateDrift) promises(random *rand.Rand, regressors advisor.Regressors) ([]kept, error) {
	cluster := advisor.NewCluster()
	now, sequence := time.Unix(0, 0).UTC(), uint64(0)
	apply := func(e schemas.Event) {
		sequence++
		cluster.Apply(e, sequence, now)
	}
	stamp := func(id, job string, run uint32) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: now}, JobID: job, Run: run}
	}
	all := make([]kept, 0, jobsBefore+jobsAfter)
	for i := range jobsBefore + jobsAfter {
		job := fmt.Sprintf("job-%d", i)
		batch, cpus := coverageBatches[random.IntN(len(coverageBatches))], coverageCPUs[random.IntN(len(coverageCPUs))]
		seconds := coverageSeconds(batch, cpus) * math.Exp(c.Noise*random.NormFloat64())
		if i >= jobsBefore {
			seconds *= 1 + c.Change
		}
		q := schemas.JobRequest{JobID: job, Model: coverageModel, BatchSizes: []int{batch}, CPUs: schemas.CPUs{cpus}, Epochs: 1, Nodes: []string{coverageNode},
			SLO: schemas.Duration(24 * time.Hour), Confidence: c.Confidence}.WithDefaults()
		a := advisor.Decide(cluster.Ask(q, now), regressors, now)
		if a.Chosen == nil {
			return nil, fmt.Errorf("%s was advised nothing: %s", job, a.Message)
		}
		all = append(all, 0)
		if bound := a.Chosen.UpperBoundSeconds; bound != nil && a.Decision == schemas.MeetsSLO {
			all[i] = kept(*bound / seconds)
		}
		set := schemas.Setting{Model: coverageModel, BatchSize: uint32(batch), CPUs: uint32(cpus), Epochs: 1, Nodes: q.Nodes}
		apply(&schemas.Submitted{JobStamp: stamp(job+"/0/submitted", job, 0), Request: q, Advice: *a})
		apply(&schemas.Started{JobStamp: stamp(schemas.StartedID(job, 1), job, 1), Setting: set, NodeCores: 8})
		now = now.Add(time.Duration(seconds * float64(time.Second)))
		apply(&schemas.Epoch{JobStamp: stamp(schemas.EpochID(job, 1, 1), job, 1), Setting: set, Epoch: 1, DurationSeconds: seconds, DurationSource: schemas.DurationReported, NodeCores: 8})
		apply(&schemas.Ended{JobStamp: stamp(schemas.EndedID(job, 1, schemas.EventFinished), job, 1), Outcome: schemas.EventFinished, DurationSeconds: seconds, EpochsDone: 1, Setting: set})
	}
	return all, nil
}
