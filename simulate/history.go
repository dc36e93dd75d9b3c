package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"courier/schemas"
)

// Record is an event of a log, as a rule is told it.
type Record struct {
	Event    schemas.Event
	Sequence uint64
	At       time.Time
}

// pause is how long nothing runs between the history and the first judged second.
const pause = 60

// History plays the warm-up of a world: each setting of the design once with
// each number of jobs at once, beside others of the design. It ends before the
// first judged second, and no drift touches it. The same seed gives the same.
func (w *World) History(seed uint64) []Record {
	_, end := w.warmUp(seed, 0)
	log, _ := w.warmUp(seed, -end-pause)
	return log
}

// warmUp runs the groups of the design, each on the first node that is free. It
// returns the log and when it ends, in seconds like begin.
func (w *World) warmUp(seed uint64, begin float64) (log []Record, end float64) {
	still := *w
	still.Drift = nil
	nodes, groups := still.nodes(begin), still.groups(seed)
	tell := func(e schemas.Event, at float64) {
		sequence := uint64(len(log) + 1)
		numbered(e, sequence)
		log = append(log, Record{e, sequence, clock(at)})
	}
	for now := begin; ; {
		for i := range nodes {
			if n := &nodes[i]; len(n.jobs) == 0 && len(groups) > 0 {
				n.now = now
				for k := range groups[0] {
					j := &groups[0][k]
					n.start(j, candidate{
						uint32(j.Request.BatchSizes[0]),
						uint32(j.Request.CPUs[0]),
					}, uint32(j.Request.Epochs), false)
					tell(n.jobs[k].startedEvent(n), now)
				}
				groups = groups[1:]
			}
		}
		first, at := earliest(nodes)
		if first == nil {
			return log, now
		}
		now = at
		first.tellStep(tell)
	}
}

// earliest returns the node that changes next by itself, nil if none will.
func earliest(nodes []node) (first *node, at float64) {
	for i := range nodes {
		if next, _ := nodes[i].next(); len(nodes[i].jobs) > 0 && (first == nil || next < at) {
			first, at = &nodes[i], next
		}
	}
	return first, at
}

// tellStep goes to the node's next change and tells what an observer sees of it.
// It returns the job that it is about, and what happened to it.
func (n *node) tellStep(tell func(e schemas.Event, at float64)) (running, change) {
	r, what := n.step()
	if what == epochEnded || what == jobEnded {
		tell(r.epochEvent(n), n.now)
	}
	if what == jobEnded {
		tell(r.finishedEvent(n), n.now)
	}
	return r, what
}

// groups of jobs that start together on a node: for each number of jobs at once
// the whole design in random order, cut into groups; the last is filled up from
// the front.
func (w *World) groups(seed uint64) [][]Job {
	random := chances(seed, streamWarmUp, "")
	var all [][]Job
	jobs := 0
	for _, atOnce := range w.WarmUp.JobsAtOnce {
		design := w.design()
		random.Shuffle(len(design), func(i, k int) { design[i], design[k] = design[k], design[i] })
		for i := 0; i < len(design); i += atOnce {
			group := make([]Job, atOnce)
			for k := range group {
				group[k] = design[(i+k)%len(design)]
				jobs++
				q := &group[k].Request
				q.JobID = fmt.Sprintf("warm-%06d", jobs)
				group[k].luck = w.Noise.luck(seed, q.JobID, q.Epochs)
			}
			all = append(all, group)
		}
	}
	return shuffled(all, random)
}

// shuffled mixes the numbers of jobs at once, so that none of them is learnt of
// at one time only.
func shuffled(groups [][]Job, random *rand.Rand) [][]Job {
	random.Shuffle(len(groups), func(i, k int) { groups[i], groups[k] = groups[k], groups[i] })
	return groups
}

// design is every family with each batch size and number of CPUs, for its
// longest runs.
func (w *World) design() []Job {
	var all []Job
	for i := range w.Families {
		f := &w.Families[i]
		for _, batch := range f.BatchSizes {
			for _, cpus := range f.levelsOfCPUs() {
				all = append(all, Job{
					family: f,
					Request: schemas.JobRequest{Model: f.Model, TrainingSamples: f.TrainingSamples,
						BatchSizes: []int{batch},
						CPUs:       schemas.CPUs{cpus},
						Epochs:     slices.Max(f.Epochs)},
				})
			}
		}
	}
	return all
}
