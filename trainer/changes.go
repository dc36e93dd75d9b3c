package trainer

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"courier/schemas"
)

const (
	nodeSilence  = time.Minute // after which a node has left, as far as is known
	keptNotes    = 256         // changes that are remembered
	mostKnown    = 20_000      // nodes, and models, that are remembered: those heard of last
	lateKnowable = time.Minute // clocks of nodes may be off by as much
)

// changes remembers what changed in the cluster by itself: nodes that joined or
// left, core counts, CPU models, new models. It may be used by several goroutines.
type changes struct {
	mu     sync.Mutex
	nodes  *lru[string, nodeState]
	models *lru[string, struct{}]
	notes  []note
}

type nodeState struct {
	cores uint32
	cpu   string    // model of its processors; "" if unknown
	heard time.Time // last sample; zero: none
	told  time.Time // when this was so, by what tells of the node
}

type note struct {
	at   time.Time
	text string
}

func newChanges() *changes {
	return &changes{
		nodes:  newLRU[string, nodeState](mostKnown),
		models: newLRU[string, struct{}](mostKnown),
	}
}

func (k *changes) note(at time.Time, format string, values ...any) {
	k.notes = append(k.notes[max(0, len(k.notes)+1-keptNotes):], note{at, fmt.Sprintf(format, values...)})
}

// sample takes a measurement of a node; joins of nodes that were there before
// anybody listened are no news.
func (k *changes) sample(e *schemas.Sample, news bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s, met := k.nodes.get(e.Node)
	switch {
	case !met && news:
		k.note(e.At, "node %s joined", e.Node)
	case !s.heard.IsZero() && e.At.Sub(s.heard) > nodeSilence:
		k.note(e.At, "node %s came back after %s", e.Node, e.At.Sub(s.heard).Round(time.Second))
	}
	if !e.At.After(s.heard) {
		return
	}
	k.see(e.Node, e.Cores, e.At, e.At)
	if s, met = k.nodes.get(e.Node); met && e.CPUModel != "" && e.CPUModel != s.cpu {
		if s.cpu != "" {
			k.note(e.At, "node %s has CPUs %s instead of %s", e.Node, e.CPUModel, s.cpu)
		}
		s.cpu = e.CPUModel
		k.nodes.put(e.Node, s)
	}
}

// job takes a started job or an epoch.
func (k *changes) job(s *schemas.Setting, cores uint32, at time.Time) {
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
			cores = state.cores // of several nodes the smallest is told
		}
		k.see(name, cores, state.heard, at)
	}
}

// see keeps the state of a node, and notes another number of cores. What is told
// late, of a run that was imported, changes nothing now.
func (k *changes) see(name string, cores uint32, heard, at time.Time) {
	before, _ := k.nodes.get(name)
	if at.Before(before.told) {
		return
	}
	if before.cores > 0 && cores > 0 && before.cores != cores {
		k.note(at, "node %s has %d cores instead of %d", name, cores, before.cores)
	}
	if cores == 0 {
		cores = before.cores
	}
	k.nodes.put(name, nodeState{cores, before.cpu, heard, at})
}

// between tells what changed in some time, oldest first as far as it was noted;
// a node that was heard in it, and is silent at its end, has left.
func (k *changes) between(from, until time.Time) (texts []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	from = from.Add(-lateKnowable)
	for _, n := range k.notes {
		if !n.at.Before(from) && !n.at.After(until) {
			texts = append(texts, n.text)
		}
	}
	var silent []string
	k.nodes.each(func(name string, s nodeState) {
		if !s.heard.IsZero() && !s.heard.Before(from) && until.Sub(s.heard) > nodeSilence {
			since := s.heard.UTC().Format(time.RFC3339)
			silent = append(silent, fmt.Sprintf("node %s has been silent since %s", name, since))
		}
	})
	slices.Sort(silent)
	return append(texts, silent...)
}
