package advisor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"courier/schemas"
)

// decoder builds a cluster from the frames of a snapshot.
type decoder struct {
	c    *Cluster
	head *headState
	busy []string // nodes with running jobs

	changed map[string]time.Time // of nodes
}

func newDecoder() *decoder {
	return &decoder{c: NewCluster(), changed: map[string]time.Time{}}
}

// apply adds the parsed frames of a batch to the cluster.
func (d *decoder) apply(b *frameBatch) error {
	for i := range b.frames {
		if err := d.applyFrame(b.frames[i].state); err != nil {
			return fmt.Errorf("frame %q: %w", b.frames[i].kind, err)
		}
	}
	return nil
}

func (d *decoder) applyFrame(state any) error {
	if h, is := state.(*headState); is {
		return d.readHead(h)
	}
	if d.head == nil {
		return errors.New("comes before the head")
	}
	switch s := state.(type) {
	case *nodeState:
		d.node(s)
	case *modelState:
		m := d.c.useModel(s.Name)
		m.described, m.configurations = s.Described, s.Configurations
	case *tallyState:
		t := s.tally()
		d.c.tallies[t.node] = &t
	case *jobState:
		return d.job(s)
	case *pastJob:
		d.c.past[s.id] = s
		d.c.order.add(entry{key: s.first, past: s})
	}
	return nil
}

func (d *decoder) readHead(h *headState) error {
	if d.head != nil {
		return errors.New("comes twice")
	}
	d.head = h
	d.c.ends, d.c.record = h.Ends, h.Record.record()
	d.c.score, d.c.means = h.Score.score(), meansOf(h.Means)
	return nil
}

func (d *decoder) node(s *nodeState) {
	n := d.c.useNode(s.Name)
	n.Cores, n.Heard, n.foreign = s.Cores, s.Heard, s.Foreign
	d.changed[s.Name] = s.Changed
	if s.Known {
		d.c.fleet[s.Name] = s.Hardware
	}
	if s.Busy {
		d.busy = append(d.busy, s.Name)
	}
}

func (d *decoder) job(s *jobState) error {
	if s.ID == "" || knownState(string(s.State)) == "" {
		return fmt.Errorf("job %q is in state %q", s.ID, s.State)
	}
	j := s.job()
	if err := j.check(); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	d.c.jobs[j.ID] = j
	d.c.order.add(entry{key: j.first, job: j})
	return nil
}

// check refuses a job that no log could lead to, and that other code relies on not to be.
func (j *Job) check() error {
	if s := j.Submitted; s != nil && s.Advice.Chosen == nil {
		return errors.New("its answer chooses nothing")
	}
	for _, a := range []*schemas.Advice{j.Promise, j.Advice} {
		if a != nil && a.Chosen == nil && a.Alternatives != nil {
			return errors.New("an advice chooses nothing")
		}
	}
	if j.Promise != nil && j.Promise.Chosen == nil {
		return errors.New("its promise chooses nothing")
	}
	switch {
	case j.State == schemas.StateQueued && j.Submitted == nil:
		return errors.New("it waits without a request")
	case j.State == schemas.StateSubmitted && j.Promise == nil:
		return errors.New("it may start without a promise")
	case j.State == schemas.StateRunning && len(j.Hardware) != len(j.Setting.Nodes):
		return fmt.Errorf("%d nodes have %d descriptions", len(j.Setting.Nodes), len(j.Hardware))
	}
	return nil
}

// finish builds the indices, which follow from the jobs.
func (d *decoder) finish() (*Cluster, error) {
	c := d.c
	if d.head == nil {
		return nil, errors.New("it has no head")
	}
	if len(c.jobs)+len(c.past) != c.order.count {
		return nil, errors.New("a job comes twice")
	}
	var filed []entry
	for _, e := range c.order.entries {
		switch {
		case e.past != nil:
			filed = append(filed, entry{key: e.past.filed, past: e.past})
			continue
		case e.job.filed > 0:
			filed = append(filed, entry{key: e.job.filed, job: e.job})
		}
		if err := d.index(e.job); err != nil {
			return nil, err
		}
	}
	d.file(filed)
	for name, at := range d.changed {
		c.nodes[name].changed = at
	}
	for _, name := range d.busy {
		if len(c.nodes[name].running) == 0 {
			return nil, fmt.Errorf("nothing runs on node %s", name)
		}
	}
	for _, id := range d.head.Due {
		j := c.jobs[id]
		if j == nil || j.due == 0 {
			return nil, fmt.Errorf("job %s cannot be abandoned", id)
		}
		c.due.add(entry{key: j.due, job: j})
	}
	return c, nil
}

// index adds a job to the indices of jobs that wait or run.
func (d *decoder) index(j *Job) error {
	switch {
	case j.State == schemas.StateQueued:
		d.c.waiting = append(d.c.waiting, j)
	case j.admittedByPolicy():
		d.c.arrivals.add(j)
	case j.State == schemas.StateRunning:
		for _, n := range j.Setting.Nodes {
			if d.c.tallies[n] == nil {
				return fmt.Errorf("nothing is counted on node %s of job %s", n, j.ID)
			}
		}
		d.c.enter(j, time.Time{})
	}
	return nil
}

// file orders the ended jobs by when they ended, and the queue by its urgency.
func (d *decoder) file(filed []entry) {
	slices.SortStableFunc(filed, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	for _, e := range filed {
		if e.past != nil {
			d.c.old.add(e)
		} else {
			d.c.ended.add(e)
		}
	}
	slices.SortFunc(d.c.waiting, compareUrgency)
}
