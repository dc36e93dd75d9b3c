package cluster

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"courier/schemas"
)

// SnapshotVersion is the version of the encoded state. It changes with the state, and with how the
// state follows from the event log, because a snapshot must equal the result of a replay.
const SnapshotVersion = 11

// Frozen is a copy of the state, to be encoded while the cluster changes.
type Frozen struct {
	common commonState
	jobs   []listed // copies of jobs, and packed jobs, in the order of job.list
}

// commonState is the part of the state that is not about one job.
type commonState struct {
	Ends          uint64         `json:"ends"`
	Nodes         []Node         `json:"nodes"` // the idle ones by last use, then the others by name
	Fleet         schemas.Fleet  `json:"fleet"`
	LoadIntegrals []LoadIntegral `json:"load_integrals"` // by node
	Models        []namedModel   `json:"models"`         // by last use
	Score         score          `json:"score"`
}

// namedModel is a model with its level.
type namedModel struct {
	Level string `json:"level"`
	Model
}

// Freeze returns a copy of the state. It shares the immutable parts, and takes a few milliseconds
// for 10,000 running and 100,000 ended jobs.
func (c *Cluster) Freeze() *Frozen {
	f := &Frozen{
		common: commonState{
			Ends:  c.ends,
			Fleet: maps.Clone(c.fleet),
			Score: c.score.clone(),
		},
		jobs: make([]listed, 0, len(c.order.all)),
	}
	for _, name := range c.idleNodes.names() {
		f.common.Nodes = append(f.common.Nodes, *c.nodes[name])
	}
	for _, n := range c.nodes {
		if len(n.Running) > 0 {
			f.common.Nodes = append(f.common.Nodes, *n)
		}
	}
	for _, t := range c.loadIntegrals {
		f.common.LoadIntegrals = append(f.common.LoadIntegrals, *t)
	}
	for _, level := range c.lastModels.names() {
		f.common.Models = append(f.common.Models, namedModel{level, *c.models[level]})
	}
	f.copyJobs(c)
	return f
}

func (f *Frozen) copyJobs(c *Cluster) {
	copies := make([]Job, 0, len(c.jobs))
	for _, l := range c.order.all {
		if j, isUnpacked := l.(*Job); isUnpacked {
			copies = append(copies, *j)
			l = &copies[len(copies)-1]
		}
		f.jobs = append(f.jobs, l)
	}
}

// sort sorts the parts whose order is arbitrary. It is separate from Freeze, because events wait for
// Freeze.
func (s *commonState) sort() {
	isBusy := func(n Node) bool { return len(n.Running) > 0 }
	if i := slices.IndexFunc(s.Nodes, isBusy); i >= 0 {
		slices.SortFunc(s.Nodes[i:], func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(s.LoadIntegrals, func(a, b LoadIntegral) int {
		return cmp.Compare(a.Node, b.Node)
	})
}

// The encoding is a line with the version, followed by gzip-compressed lines: the common state, and
// a line for each job. That of a packed job begins with a tab, so that decoding does not unpack it.
const (
	snapshotTitle = "courier cluster state %d\n"
	packedMark    = "\t"
	longestLine   = 256 << 20 // bytes; a longer one is damaged
)

// Encode writes the state. The same state gives the same bytes.
func (f *Frozen) Encode(w io.Writer) error {
	if _, err := fmt.Fprintf(w, snapshotTitle, SnapshotVersion); err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := f.encodeLines(packed); err != nil {
		return fmt.Errorf("encode the cluster state: %w", err)
	}
	return packed.Close()
}

func (f *Frozen) encodeLines(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	lines := json.NewEncoder(out)
	f.common.sort()
	if err := lines.Encode(&f.common); err != nil {
		return err
	}
	for _, l := range f.jobs {
		var err error
		if p, isPacked := l.(*packedJob); isPacked {
			_, err = fmt.Fprintf(out, packedMark+"%s\n", p.text)
		} else {
			err = lines.Encode(l)
		}
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// errDamaged is wrapped by the errors of Decode for damaged input.
var errDamaged = errors.New("damaged snapshot")

// Decode reads a state that Encode wrote. It returns an error for another version and for
// truncated or damaged input.
func Decode(r io.Reader) (*Cluster, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var version int
	if _, err := fmt.Fscanf(in, snapshotTitle, &version); err != nil {
		return nil, fmt.Errorf("%w: read the version: %w", errDamaged, err)
	}
	if version != SnapshotVersion {
		return nil, fmt.Errorf("snapshot has version %d, want %d", version, SnapshotVersion)
	}
	packed, err := gzip.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	c, err := decodeLines(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return c, nil
}

func decodeLines(r io.Reader) (*Cluster, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), longestLine)
	if !lines.Scan() {
		return nil, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
	}
	var common commonState
	if err := json.Unmarshal(lines.Bytes(), &common); err != nil {
		return nil, fmt.Errorf("common state: %w", err)
	}
	c := New()
	c.restoreCommon(&common)
	for lines.Scan() {
		if err := c.restoreJob(lines.Bytes()); err != nil {
			return nil, err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if err := c.restoreIndices(); err != nil {
		return nil, err
	}
	for _, n := range common.Nodes {
		c.nodes[n.Name].Changed = n.Changed
	}
	return c, nil
}

// restoreCommon adds everything but the jobs to an empty cluster.
func (c *Cluster) restoreCommon(s *commonState) {
	c.ends, c.score = s.Ends, s.Score
	for _, n := range s.Nodes {
		*c.useNode(n.Name) = n
	}
	if s.Fleet != nil {
		c.fleet = s.Fleet
	}
	for _, t := range s.LoadIntegrals {
		c.loadIntegrals[t.Node] = &t
	}
	for _, m := range s.Models {
		*c.useModel(m.Level) = m.Model
	}
}

// restoreJob adds the job of a line.
func (c *Cluster) restoreJob(line []byte) error {
	if text, isPacked := bytes.CutPrefix(line, []byte(packedMark)); isPacked {
		p := &packedJob{text: bytes.Clone(text)}
		if err := json.Unmarshal(text, &p.jobKey); err != nil {
			return fmt.Errorf("packed job: %w", err)
		}
		if p.State = knownState(p.State); p.State == "" || p.EndOrder == 0 {
			return fmt.Errorf("packed job %q has no known state, or has not ended", p.ID)
		}
		c.packed[p.ID] = p
		c.order.add(p)
		c.ended.all = append(c.ended.all, p)
		return nil
	}

	j := &Job{}
	if err := json.Unmarshal(line, j); err != nil {
		return fmt.Errorf("job: %w", err)
	}
	j.State = knownState(j.State)
	if err := j.check(); err != nil {
		return fmt.Errorf("job %q: %w", j.ID, err)
	}
	c.jobs[j.ID] = j
	c.order.add(j)
	return nil
}

// knownState returns the constant of a state, "" if there is none.
func knownState(s schemas.State) schemas.State {
	states := schemas.States()
	if i := slices.Index(states, s); i >= 0 {
		return states[i]
	}
	return ""
}

// check returns an error for a job that no event log can produce and that other code cannot handle.
func (j *Job) check() error {
	switch {
	case j.ID == "" || j.State == "":
		return errors.New("no ID or no known state")
	case j.State == schemas.StateQueued && j.Request == nil:
		return errors.New("queued without a request")
	case j.State == schemas.StateSubmitted && (j.Request == nil || j.Promise == nil):
		return errors.New("submitted without a request or a promise")
	case j.Promise != nil && j.Request == nil:
		return errors.New("promise without a request")
	case j.State == schemas.StateRunning && len(j.Hardware) != len(j.Setting.Nodes):
		return fmt.Errorf("%d nodes, but hardware of %d nodes",
			len(j.Setting.Nodes), len(j.Hardware))
	}
	return nil
}

// restoreIndices builds the indices, which follow from the jobs.
func (c *Cluster) restoreIndices() error {
	if len(c.jobs)+len(c.packed) != len(c.order.all) {
		return errors.New("duplicate job")
	}
	for _, j := range c.jobs {
		if j.EndOrder > 0 {
			c.ended.all = append(c.ended.all, j)
		}
		if j.Expiry > 0 {
			c.unstarted.add(j)
		}
		if err := c.restoreIndex(j); err != nil {
			return err
		}
	}
	slices.SortFunc(c.ended.all, compareEnds)
	for i, l := range c.ended.all {
		isPacked := c.packed[l.key().ID] != nil
		if isPacked != (i < len(c.packed)) || i > 0 && compareEnds(c.ended.all[i-1], l) == 0 {
			return fmt.Errorf("job %q did not end in order", l.key().ID)
		}
	}
	return nil
}

// restoreIndex adds a job to the index of queued, expected or running jobs.
func (c *Cluster) restoreIndex(j *Job) error {
	switch {
	case j.State == schemas.StateQueued:
		c.waiting.add(j)
	case j.IsAdmitted():
		c.arrivals.add(j)
	case j.State == schemas.StateRunning:
		for _, n := range j.Setting.Nodes {
			if c.loadIntegrals[n] == nil {
				return fmt.Errorf("node %s of job %s has no load integral", n, j.ID)
			}
		}
		c.addToNodes(j, j.LastSeen)
	}
	return nil
}
