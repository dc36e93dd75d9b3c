package advisor

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"courier/schemas"
)

// errDamaged is wrapped by the errors of DecodeCluster for damaged input.
var errDamaged = errors.New("damaged snapshot")

// DecodeCluster reads a state that Encode wrote. It returns an error for another version and for
// truncated or damaged input.
func DecodeCluster(r io.Reader) (*Cluster, error) {
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
	c, err := decodeFrames(packed)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return c, nil
}

func decodeFrames(r io.Reader) (*Cluster, error) {
	d := newDecoder()
	read := func(parse func(*frameBatch) bool) error { return readFrames(r, parse) }
	if err := parseFrames(read, d.apply); err != nil {
		return nil, err
	}
	return d.finish()
}

// readFrames reads frames in batches and passes them to hand until the end, an error, or until hand
// returns false.
func readFrames(r io.Reader, hand func(*frameBatch) bool) error {
	in := bufio.NewReaderSize(r, 1<<16)
	batch := newFrameBatch()
	for {
		kind, payload, err := readFrame(in)
		if err != nil {
			return err
		}
		if kind == frameEnd {
			break
		}
		batch.frames = append(batch.frames, frame{kind: kind, payload: payload})
		if len(batch.frames) == cap(batch.frames) {
			if !hand(batch) {
				return nil
			}
			batch = newFrameBatch()
		}
	}
	if _, err := in.ReadByte(); err != io.EOF { // gzip checks the checksum at the end
		return fmt.Errorf("data after the last frame, or wrong checksum: %v", err)
	}
	hand(batch)
	return nil
}

func readFrame(in *bufio.Reader) (kind byte, payload []byte, err error) {
	if kind, err = in.ReadByte(); err != nil {
		return 0, nil, noEOF(err)
	}
	length, err := binary.ReadUvarint(in)
	if err != nil {
		return 0, nil, noEOF(err)
	}
	if length > longestFrame {
		return 0, nil, fmt.Errorf("frame %q has %d bytes, maximum %d", kind, length, longestFrame)
	}
	const step = 1 << 16 // a wrong length fails before its memory is allocated
	payload = make([]byte, 0, min(length, step))
	for uint64(len(payload)) < length {
		n := min(length-uint64(len(payload)), step)
		at := len(payload)
		payload = append(payload, make([]byte, n)...)
		if _, err := io.ReadFull(in, payload[at:]); err != nil {
			return 0, nil, noEOF(err)
		}
	}
	return kind, payload, nil
}

func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// readPast decodes a packed job that frameWriter.past encoded.
func readPast(b []byte) (*pastJob, error) {
	p := &pastJob{}
	var state string
	for _, read := range []func() bool{
		func() (ok bool) { p.first, b, ok = cutUvarint(b); return ok },
		func() (ok bool) { p.listedAt, b, ok = cutUvarint(b); return ok },
		func() (ok bool) { p.endOrder, b, ok = cutUvarint(b); return ok },
		func() (ok bool) { state, b, ok = cutText(b); return ok },
		func() (ok bool) { p.id, b, ok = cutText(b); return ok },
	} {
		if !read() {
			return nil, io.ErrUnexpectedEOF
		}
	}
	p.state, p.text = knownState(state), b
	if p.state == "" {
		return nil, fmt.Errorf("unknown job state %q", state)
	}
	return p, nil
}

func cutUvarint(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}

func cutText(b []byte) (string, []byte, bool) {
	n, b, ok := cutUvarint(b)
	if !ok || n > uint64(len(b)) {
		return "", nil, false
	}
	return string(b[:n]), b[n:], true
}

// knownState returns the constant of a state, "" if there is none.
func knownState(s string) schemas.State {
	for _, known := range schemas.States() {
		if s == string(known) {
			return known
		}
	}
	return ""
}

// frame is a frame of a snapshot.
type frame struct {
	kind    byte
	payload []byte
	state   any // the parsed payload
}

// frameBatch is a batch of frames that one goroutine parses.
type frameBatch struct {
	frames []frame
	err    error         // the first error
	parsed chan struct{} // closed when parsing has ended
}

func newFrameBatch() *frameBatch {
	const together = 128
	return &frameBatch{frames: make([]frame, 0, together), parsed: make(chan struct{})}
}

// parseFrames parses batches concurrently while they are read, and applies them in the order in
// which they were read. It returns after all goroutines have ended.
func parseFrames(
	read func(hand func(*frameBatch) bool) error, apply func(*frameBatch) error,
) error {
	workers := runtime.GOMAXPROCS(0)
	work := make(chan *frameBatch)
	ordered := make(chan *frameBatch, 2*workers)
	stop := make(chan struct{})
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for batch := range work {
				batch.parse()
			}
		})
	}
	var readErr error // set before ordered is closed
	wait.Go(func() {
		defer close(ordered)
		defer close(work)
		readErr = read(func(batch *frameBatch) bool {
			select {
			case ordered <- batch:
				work <- batch
				return true
			case <-stop:
				return false
			}
		})
	})
	err := applyInOrder(ordered, apply)
	close(stop)
	wait.Wait()
	if err != nil {
		return err
	}
	return readErr
}

func applyInOrder(ordered <-chan *frameBatch, apply func(*frameBatch) error) error {
	for batch := range ordered {
		<-batch.parsed
		if batch.err != nil {
			return batch.err
		}
		if err := apply(batch); err != nil {
			return err
		}
	}
	return nil
}

// parse parses the frames until the first error.
func (b *frameBatch) parse() {
	defer close(b.parsed)
	for i := range b.frames {
		f := &b.frames[i]
		if err := f.parse(); err != nil {
			b.err = fmt.Errorf("frame %q: %w", f.kind, err)
			return
		}
	}
}

// parse sets the state of a frame from its payload.
func (f *frame) parse() error {
	switch f.kind {
	case frameHead:
		f.state = new(headSnapshot)
	case frameNode:
		f.state = new(nodeSnapshot)
	case frameModel:
		f.state = new(modelSnapshot)
	case frameTally:
		f.state = new(integralSnapshot)
	case frameJob:
		f.state = new(jobSnapshot)
	case framePast:
		p, err := readPast(f.payload)
		f.state = p
		return err
	default:
		return errors.New("unknown kind")
	}
	err := json.Unmarshal(f.payload, f.state)
	f.payload = nil
	return err
}

// decoder builds a cluster from the frames of a snapshot.
type decoder struct {
	c    *Cluster
	head *headSnapshot
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
	if h, is := state.(*headSnapshot); is {
		return d.readHead(h)
	}
	if d.head == nil {
		return errors.New("precedes the head")
	}
	switch s := state.(type) {
	case *nodeSnapshot:
		d.node(s)
	case *modelSnapshot:
		m := d.c.useModel(s.Name)
		m.described, m.configurations = s.Described, s.Configurations
	case *integralSnapshot:
		t := s.integral()
		d.c.loadIntegrals[t.node] = &t
	case *jobSnapshot:
		return d.job(s)
	case *pastJob:
		d.c.past[s.id] = s
		d.c.order.add(s.orderEntry())
	}
	return nil
}

func (d *decoder) readHead(h *headSnapshot) error {
	if d.head != nil {
		return errors.New("duplicate head")
	}
	d.head = h
	d.c.ends, d.c.recalibration = h.Ends, h.Recalibration.recalibration()
	d.c.score, d.c.meanThresholds = h.Score.score(), meansOf(h.Means)
	return nil
}

func (d *decoder) node(s *nodeSnapshot) {
	n := d.c.useNode(s.Name)
	n.Cores, n.LastSeen, n.foreign = s.Cores, s.LastSeen, s.Foreign
	d.changed[s.Name] = s.Changed
	if s.Known {
		d.c.fleet[s.Name] = s.Hardware
	}
	if s.Busy {
		d.busy = append(d.busy, s.Name)
	}
}

func (d *decoder) job(s *jobSnapshot) error {
	if s.ID == "" || knownState(string(s.State)) == "" {
		return fmt.Errorf("job %q has unknown state %q", s.ID, s.State)
	}
	j := s.job()
	if err := j.check(); err != nil {
		return fmt.Errorf("job %s: %w", j.ID, err)
	}
	d.c.jobs[j.ID] = j
	d.c.order.add(j.orderEntry())
	return nil
}

// check returns an error for a job that no event log can produce and that other code cannot handle.
func (j *Job) check() error {
	if s := j.Submitted; s != nil && s.Advice.Chosen == nil {
		return errors.New("answer without a chosen alternative")
	}
	for _, a := range []*schemas.Advice{j.Promise, j.Advice} {
		if a != nil && a.Chosen == nil && a.Alternatives != nil {
			return errors.New("advice without a chosen alternative")
		}
	}
	if j.Promise != nil && j.Promise.Chosen == nil {
		return errors.New("promise without a chosen alternative")
	}
	switch {
	case j.State == schemas.StateQueued && j.Submitted == nil:
		return errors.New("queued without a request")
	case j.State == schemas.StateSubmitted && j.Promise == nil:
		return errors.New("submitted without a promise")
	case j.State == schemas.StateRunning && len(j.Hardware) != len(j.Setting.Nodes):
		return fmt.Errorf("%d nodes, but hardware of %d nodes",
			len(j.Setting.Nodes), len(j.Hardware))
	}
	return nil
}

// finish builds the indices, which follow from the jobs.
func (d *decoder) finish() (*Cluster, error) {
	c := d.c
	if d.head == nil {
		return nil, errors.New("head record is missing")
	}
	if len(c.jobs)+len(c.past) != c.order.count {
		return nil, errors.New("duplicate job")
	}
	var filed []listEntry
	for _, e := range c.order.entries {
		switch {
		case e.past != nil:
			filed = append(filed, listEntry{key: e.past.endOrder, past: e.past})
			continue
		case e.job.endOrder > 0:
			filed = append(filed, listEntry{key: e.job.endOrder, job: e.job})
		}
		if err := d.index(e.job); err != nil {
			return nil, err
		}
	}
	d.updateEndedLists(filed)
	for name, at := range d.changed {
		c.nodes[name].changed = at
	}
	for _, name := range d.busy {
		if len(c.nodes[name].running) == 0 {
			return nil, fmt.Errorf("node %s is busy without running jobs", name)
		}
	}
	for _, id := range d.head.Due {
		j := c.jobs[id]
		if j == nil || j.expiry == 0 {
			return nil, fmt.Errorf("job %s in the expiry list cannot expire", id)
		}
		c.unstarted.add(listEntry{key: j.expiry, job: j})
	}
	return c, nil
}

// index adds a job to the indices of queued, submitted and running jobs.
func (d *decoder) index(j *Job) error {
	switch {
	case j.State == schemas.StateQueued:
		d.c.waiting = append(d.c.waiting, j)
	case j.admittedByPolicy():
		d.c.arrivals.add(j)
	case j.State == schemas.StateRunning:
		for _, n := range j.Setting.Nodes {
			if d.c.loadIntegrals[n] == nil {
				return fmt.Errorf("node %s of job %s has no load integral", n, j.ID)
			}
		}
		d.c.addToNodes(j, time.Time{})
	}
	return nil
}

// updateEndedLists sorts the ended jobs and the queue.
func (d *decoder) updateEndedLists(filed []listEntry) {
	slices.SortStableFunc(filed, func(a, b listEntry) int { return cmp.Compare(a.key, b.key) })
	for _, e := range filed {
		if e.past != nil {
			d.c.packedJobs.add(e)
		} else {
			d.c.ended.add(e)
		}
	}
	slices.SortFunc(d.c.waiting, compareUrgency)
}
