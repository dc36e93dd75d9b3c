package simulate

import (
	"fmt"
	"slices"
	"time"

	"courier/schemas"
)

// HistoryRecord is an event of a log with its position.
type HistoryRecord struct {
	Event    schemas.Event
	Sequence uint64
	At       time.Time
}

// pause is the idle time between the history and origin.
const pause = 60

// History plays the warm-up of a world: each configuration of the design once per number of
// concurrent jobs, together with others of the design. It ends before origin. The same
// seed gives the same history.
func (w *World) History(seed uint64) []HistoryRecord {
	_, end := w.warmUp(seed, 0)
	log, _ := w.warmUp(seed, -end-pause)
	return log
}

// warmUp runs each group of the design on the first free node. It returns the log and its end in
// seconds.
func (w *World) warmUp(seed uint64, begin float64) (log []HistoryRecord, end float64) {
	nodes, groups := w.nodes(begin), w.groups(seed)
	publish := func(e schemas.Event, at float64) {
		sequence := uint64(len(log) + 1)
		e.Stamped().Sequence = sequence
		log = append(log, HistoryRecord{e, sequence, timeAt(at)})
	}
	for now := begin; ; {
		for i := range nodes {
			if n := &nodes[i]; len(n.jobs) == 0 && len(groups) > 0 {
				n.now = now
				for k := range groups[0] {
					j := &groups[0][k]
					n.start(j, candidates(&j.Request)[0], uint32(j.Request.Epochs), false)
					publish(n.jobs[k].startedEvent(n), now)
				}
				groups = groups[1:]
			}
		}
		first, at := earliest(nodes)
		if first == nil {
			return log, now
		}
		now = at
		first.publishStep(publish)
	}
}

// earliest returns the node with the next change, and the time of that change; nil if no job runs.
func earliest(nodes []node) (first *node, at float64) {
	for i := range nodes {
		if next, _ := nodes[i].next(); len(nodes[i].jobs) > 0 && (first == nil || next < at) {
			first, at = &nodes[i], next
		}
	}
	return first, at
}

// publishStep advances to the next change of the node and publishes its events. It returns the job
// and the kind of change.
func (n *node) publishStep(publish func(e schemas.Event, at float64)) (runningJob, change) {
	r, what := n.step()
	if what == epochEnded || what == jobEnded {
		publish(r.epochEvent(n), n.now)
	}
	if what == jobEnded {
		publish(r.finishedEvent(n), n.now)
	}
	return r, what
}

// groups returns groups of jobs that start together on a node. For each number of concurrent jobs,
// the whole design in random order is split into groups; the last group is completed with the first
// jobs. The order of the groups is random: examples of each number are spread over time.
func (w *World) groups(seed uint64) [][]Submission {
	random := randomFor(seed, streamWarmUp, "")
	var all [][]Submission
	jobs := 0
	for _, atOnce := range w.WarmUp.JobsAtOnce {
		design := w.design()
		random.Shuffle(len(design), func(i, k int) { design[i], design[k] = design[k], design[i] })
		for i := 0; i < len(design); i += atOnce {
			group := make([]Submission, atOnce)
			for k := range group {
				group[k] = design[(i+k)%len(design)]
				jobs++
				q := &group[k].Request
				q.JobID = fmt.Sprintf("warm-%06d", jobs)
				group[k].noise = w.Noise.runNoise(seed, q.JobID, q.Epochs)
			}
			all = append(all, group)
		}
	}
	random.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	return all
}

// design returns every family with each batch size and number of CPUs, and its largest number of
// epochs.
func (w *World) design() []Submission {
	var all []Submission
	for i := range w.Families {
		f := &w.Families[i]
		for _, batch := range f.BatchSizes {
			for _, cpus := range f.cpuLevels() {
				all = append(all, Submission{
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
