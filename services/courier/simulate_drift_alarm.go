package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"courier/trainer"

	"golang.org/x/sync/errgroup"
)

// driftShards split what is random, so that the same comes out on any machine.
const driftShards = 64

// Streams of random numbers: of each part, and of each shard or repetition in it.
const (
	streamDetector = 1 + iota
	streamWatch
	streamCluster
	streamNode
	streamExamples
	streamPromises
)

func (c *simulateDrift) random(stream, number int) *rand.Rand {
	return rand.New(rand.NewPCG(c.Seed, uint64(stream)<<32|uint64(number)))
}

// inParallel calls play for each number below n, on all processors.
func inParallel(ctx context.Context, n int, play func(ctx context.Context, number int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return play(ctx, i)
		})
	}
	return g.Wait()
}

// falseAlarms counts the alarms of one detector, and of all together, in jobs
// that did not drift.
func (c *simulateDrift) falseAlarms(w *world, r *driftResult) error {
	var one, all [driftShards]int
	err := inParallel(w.ctx, driftShards, func(ctx context.Context, shard int) error {
		jobs := c.StationaryJobs / driftShards
		if shard < c.StationaryJobs%driftShards {
			jobs++
		}
		one[shard] = c.detectorAlarms(c.random(streamDetector, shard), jobs)
		p := c.newPlay(streamWatch, shard)
		for i := range jobs {
			if i%(1<<16) == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if _, found := p.job(0); found {
				all[shard]++
			}
		}
		return nil
	})
	sum := func(counts [driftShards]int) (n float64) {
		for _, k := range counts {
			n += float64(k)
		}
		return n
	}
	r.FalseAlarms, r.FalseAlarmsAll = sum(one)*1e5/float64(c.StationaryJobs), sum(all)*1e5/float64(c.StationaryJobs)
	return err
}

// detectorAlarms counts the alarms of a detector that is alone.
func (c *simulateDrift) detectorAlarms(random *rand.Rand, jobs int) (alarms int) {
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

// driftPlay plays jobs of some models on some nodes, one node each.
type driftPlay struct {
	random *rand.Rand
	watch  *trainer.Watch
	noise  float64
	nodes  [][]string
	models []string
	jobs   int
	last   int // node of the last job
}

func (c *simulateDrift) newPlay(stream, number int) *driftPlay {
	p := &driftPlay{random: c.random(stream, number), watch: trainer.NewWatch(c.Noise), noise: c.Noise}
	for n := range c.Nodes {
		p.nodes = append(p.nodes, []string{fmt.Sprintf("node-%d", n+1)})
	}
	for m := range c.Models {
		p.models = append(p.models, fmt.Sprintf("model-%d", m+1))
	}
	return p
}

// job plays the next job; shift is what is added to its log residual if it runs
// on one of the nodes.
func (p *driftPlay) job(shift float64, on ...int) (trainer.Finding, bool) {
	p.last = p.random.IntN(len(p.nodes))
	residual := p.noise * p.random.NormFloat64()
	for _, n := range on {
		if n == p.last {
			residual += shift
		}
	}
	p.jobs++
	return p.watch.Add(trainer.Outcome{At: time.Unix(int64(60*p.jobs), 0).UTC(), Model: p.models[p.random.IntN(len(p.models))], Nodes: p.nodes[p.last], Residual: residual})
}

const (
	jobsBefore    = 200     // that did not drift, before each drift
	mostDelayJobs = 100_000 // after which an alarm is given up
)

// delays plays drifts of all nodes and of one, and notes when they are noticed
// and what is named.
func (c *simulateDrift) delays(w *world, r *driftResult) error {
	everywhere := make([]int, c.Nodes)
	for n := range everywhere {
		everywhere[n] = n
	}
	cluster, named, err := c.notice(w.ctx, streamCluster, func(int) ([]int, trainer.Scope) {
		return everywhere, trainer.Scope{Kind: trainer.ScopeAll}
	})
	if err != nil {
		return err
	}
	r.MedianDelayJobs, r.NamedClusterRatio = middle(cluster), named
	node, named, err := c.notice(w.ctx, streamNode, func(number int) ([]int, trainer.Scope) {
		n := number % c.Nodes
		if c.Nodes == 1 { // one slow node is the slow cluster
			return []int{n}, trainer.Scope{Kind: trainer.ScopeAll}
		}
		return []int{n}, trainer.Scope{Kind: trainer.ScopeNode, Name: fmt.Sprintf("node-%d", n+1)}
	})
	r.MedianDelayNodeJobs, r.NamedNodeRatio = middle(node), named
	return err
}

// notice plays one drift per repetition and returns how many jobs on the
// drifting nodes each took to be noticed, and the share that was named rightly.
// A false alarm before the drift counts as none: the play begins anew.
func (c *simulateDrift) notice(ctx context.Context, stream int, drift func(number int) ([]int, trainer.Scope)) (delays []float64, named float64, err error) {
	delays, right := make([]float64, c.Repetitions), make([]bool, c.Repetitions)
	err = inParallel(ctx, c.Repetitions, func(_ context.Context, number int) error {
		on, cause := drift(number)
		p := c.newPlay(stream, number)
		for done := 0; done < jobsBefore; done++ {
			if _, found := p.job(0); found {
				p.watch, done = trainer.NewWatch(c.Noise), -1
			}
		}
		for jobs := 0; jobs < mostDelayJobs; jobs++ {
			f, found := p.job(c.shift(), on...)
			if len(on) == c.Nodes || p.last == on[0] {
				delays[number]++
			}
			if found {
				right[number] = f.Cause == cause
				return nil
			}
		}
		return nil
	})
	rightly := 0
	for _, is := range right {
		if is {
			rightly++
		}
	}
	return delays, float64(rightly) / float64(c.Repetitions), err
}
