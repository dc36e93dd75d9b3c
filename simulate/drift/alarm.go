package drift

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"courier/trainer"
)

// shards is the number of independent parts of the stationary jobs. It is fixed, so that the result
// does not depend on the number of processors.
const shards = 64

// falseAlarms counts the alarms of one detector, and of all together, in jobs without drift.
func (s *simulation) falseAlarms(ctx context.Context, r *Reaction) error {
	var one, all [shards]int
	err := inParallel(ctx, shards, func(ctx context.Context, shard int) error {
		jobs := s.StationaryJobs / shards
		if shard < s.StationaryJobs%shards {
			jobs++
		}
		one[shard] = detectorAlarms(s.random(streamDetector, shard), jobs)

		c := s.newCluster(streamWatch, shard)
		for i := range jobs {
			if i%(1<<16) == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if _, alarm := c.runJob(0); alarm {
				all[shard]++
			}
		}
		return nil
	})
	r.FalseAlarms = per100000(one, s.StationaryJobs)
	r.FalseAlarmsAll = per100000(all, s.StationaryJobs)
	return err
}

func per100000(counts [shards]int, jobs int) float64 {
	sum := 0.0
	for _, n := range counts {
		sum += float64(n)
	}
	return sum * 1e5 / float64(jobs)
}

// detectorAlarms counts the alarms of a single detector.
func detectorAlarms(random *rand.Rand, jobs int) (alarms int) {
	var p trainer.PageHinkley
	lambda := trainer.Lambda(1)
	for i := range jobs {
		p.Add(random.NormFloat64(), i)
		if _, _, alarm := p.Alarm(lambda); alarm {
			alarms++
			p = trainer.PageHinkley{}
		}
	}
	return alarms
}

// simulatedCluster runs simulated jobs of some models, each on one node, under the drift detectors.
type simulatedCluster struct {
	random   *rand.Rand
	watch    *trainer.Watch
	noise    float64
	nodes    [][]string
	models   []string
	jobs     int
	lastNode int // of the last job
}

func (s *simulation) newCluster(stream, number int) *simulatedCluster {
	c := &simulatedCluster{
		random: s.random(stream, number),
		watch:  trainer.NewWatch(s.Noise),
		noise:  s.Noise,
	}
	for n := range s.Nodes {
		c.nodes = append(c.nodes, []string{fmt.Sprintf("node-%d", n+1)})
	}
	for m := range s.Models {
		c.models = append(c.models, fmt.Sprintf("model-%d", m+1))
	}
	return c
}

// runJob runs the next job. logChange is added to its log residual if it runs on one of the
// drifting nodes.
func (c *simulatedCluster) runJob(logChange float64, drifting ...int) (trainer.Finding, bool) {
	c.lastNode = c.random.IntN(len(c.nodes))
	residual := c.noise * c.random.NormFloat64()
	for _, n := range drifting {
		if n == c.lastNode {
			residual += logChange
		}
	}
	c.jobs++
	return c.watch.Add(trainer.JobResidual{
		At:       time.Unix(int64(60*c.jobs), 0).UTC(),
		Model:    c.models[c.random.IntN(len(c.models))],
		Nodes:    c.nodes[c.lastNode],
		Residual: residual,
	})
}

const (
	jobsBefore   = 200     // without drift, before each drift
	maxDelayJobs = 100_000 // after which the alarm is no longer awaited
)

// delays simulates drifts of all nodes and of a single node, and measures when each is detected and
// whether its cause is named.
func (s *simulation) delays(ctx context.Context, r *Reaction) error {
	everyNode := make([]int, s.Nodes)
	for n := range everyNode {
		everyNode[n] = n
	}
	delays, named, err := s.detect(ctx, streamCluster, func(int) ([]int, trainer.DriftScope) {
		return everyNode, trainer.DriftScope{Kind: trainer.ScopeAll}
	})
	if err != nil {
		return err
	}
	r.MedianDelayJobs, r.NamedClusterRatio = median(delays), named

	delays, named, err = s.detect(ctx, streamNode, func(number int) ([]int, trainer.DriftScope) {
		n := number % s.Nodes
		if s.Nodes == 1 { // The single slow node is the slow cluster.
			return []int{n}, trainer.DriftScope{Kind: trainer.ScopeAll}
		}
		return []int{n}, trainer.DriftScope{Kind: trainer.ScopeNode, Name: fmt.Sprintf("node-%d", n+1)}
	})
	r.MedianDelayNodeJobs, r.NamedNodeRatio = median(delays), named
	return err
}

// detect simulates one drift per repetition. It returns the number of jobs on the drifting nodes
// until each was detected, and the share of drifts whose cause was named. After a false alarm
// before the drift the repetition starts again.
func (s *simulation) detect(
	ctx context.Context, stream int, drift func(number int) ([]int, trainer.DriftScope),
) (delays []float64, named float64, err error) {
	delays, isNamed := make([]float64, s.Repetitions), make([]bool, s.Repetitions)
	err = inParallel(ctx, s.Repetitions, func(_ context.Context, number int) error {
		drifting, cause := drift(number)
		c := s.newCluster(stream, number)
		for done := 0; done < jobsBefore; done++ {
			if _, alarm := c.runJob(0); alarm {
				c.watch, done = trainer.NewWatch(s.Noise), -1
			}
		}

		for jobs := 0; jobs < maxDelayJobs; jobs++ {
			f, alarm := c.runJob(s.logChange(), drifting...)
			if len(drifting) == s.Nodes || c.lastNode == drifting[0] {
				delays[number]++
			}
			if alarm {
				isNamed[number] = f.Cause == cause
				return nil
			}
		}
		return nil
	})

	count := 0
	for _, is := range isNamed {
		if is {
			count++
		}
	}
	return delays, float64(count) / float64(s.Repetitions), err
}
