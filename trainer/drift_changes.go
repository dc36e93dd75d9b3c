package trainer

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"courier/schemas"
)

const (
	nodeSilence = time.Minute // after which a node counts as gone
	maxNotes    = 256         // changes in memory
	maxKnown    = 20_000      // nodes, and models; the least recently used are evicted
	clockSlack  = time.Minute // tolerated difference between clocks of nodes
)

// changeLog remembers changes of the cluster that may explain a drift: nodes that joined or left,
// core counts, CPU models, new models. It is safe for concurrent use.
type changeLog struct {
	mu     sync.Mutex
	nodes  recent[string, knownNode]
	models recent[string, struct{}]
	notes  []changeNote
}

type knownNode struct {
	cores      uint32
	cpu        string    // CPU model; "" if unknown
	sampledAt  time.Time // last sample; zero: none
	reportedAt time.Time // time of the newest report
}

type changeNote struct {
	at   time.Time
	text string
}

func newChangeLog() *changeLog {
	return &changeLog{
		nodes:  recent[string, knownNode]{limit: maxKnown},
		models: recent[string, struct{}]{limit: maxKnown},
	}
}

func (k *changeLog) note(at time.Time, format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	k.notes = append(k.notes[max(0, len(k.notes)+1-maxNotes):], changeNote{at, text})
}

// sample applies a sample of a node. While isLive is false, a new node is not noted as joined: it
// was there before the trainer started.
func (k *changeLog) sample(e *schemas.Sample, isLive bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, met := k.nodes.get(e.Node)
	switch {
	case !met && isLive:
		k.note(e.At, "node %s joined", e.Node)
	case !s.sampledAt.IsZero() && e.At.Sub(s.sampledAt) > nodeSilence:
		k.note(e.At, "node %s came back after %s", e.Node, e.At.Sub(s.sampledAt).Round(time.Second))
	}
	if !e.At.After(s.sampledAt) {
		return
	}
	k.record(e.Node, e.Cores, e.At, e.At)
	if s, met = k.nodes.get(e.Node); met && e.CPUModel != "" && e.CPUModel != s.cpu {
		if s.cpu != "" {
			k.note(e.At, "node %s has CPUs %s instead of %s", e.Node, e.CPUModel, s.cpu)
		}
		s.cpu = e.CPUModel
		k.nodes.put(e.Node, s)
	}
}

// job applies a started event or an epoch.
func (k *changeLog) job(s *schemas.Setting, cores uint32, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	level := schemas.ModelLevel(s.Model, s.Dataset)
	if _, met := k.models.get(level); !met {
		k.models.put(level, struct{}{})
		k.note(at, "first job of model %s", level)
	}
	for _, name := range s.Nodes {
		state, met := k.nodes.get(name)
		if !met {
			k.note(at, "first job on node %s", name)
		}
		if len(s.Nodes) > 1 {
			cores = state.cores // an event of several nodes reports the smallest
		}
		k.record(name, cores, state.sampledAt, at)
	}
}

// record stores the state of a node and notes a change of its cores. An old report, of an imported
// run, is ignored.
func (k *changeLog) record(name string, cores uint32, heard, at time.Time) {
	before, _ := k.nodes.get(name)
	if at.Before(before.reportedAt) {
		return
	}
	if before.cores > 0 && cores > 0 && before.cores != cores {
		k.note(at, "node %s has %d cores instead of %d", name, cores, before.cores)
	}
	if cores == 0 {
		cores = before.cores
	}
	k.nodes.put(name, knownNode{cores, before.cpu, heard, at})
}

// between describes the changes in a time range, oldest first in the order of arrival. A node that
// sent samples in the range and is silent at its end counts as gone.
func (k *changeLog) between(from, until time.Time) (texts []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	from = from.Add(-clockSlack)
	for _, n := range k.notes {
		if !n.at.Before(from) && !n.at.After(until) {
			texts = append(texts, n.text)
		}
	}
	var silent []string
	for name, s := range k.nodes.all() {
		if !s.sampledAt.IsZero() && !s.sampledAt.Before(from) &&
			until.Sub(s.sampledAt) > nodeSilence {
			since := s.sampledAt.UTC().Format(time.RFC3339)
			silent = append(silent, fmt.Sprintf("node %s has been silent since %s", name, since))
		}
	}
	slices.Sort(silent)
	return append(texts, silent...)
}
