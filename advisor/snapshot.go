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
	"slices"

	"courier/schemas"
)

// SnapshotVersion is the version of the encoded state of a cluster. It changes with every
// change of that state or of how it follows from the log, because a snapshot must be what
// a replay of the log would give.
const SnapshotVersion = 3

// Frozen is the state of a cluster at a moment, to be encoded while the cluster goes on.
type Frozen struct {
	head    headState
	nodes   []nodeState // the first are idle, by their last use
	idle    int         // how many of the nodes are
	models  []modelState
	tallies []tallyState
	jobs    []entry // copies of jobs, and packed jobs, by first sequence
}

// Freeze returns the state of the cluster. It copies what may change and shares the rest:
// some milliseconds for 10,000 running and 100,000 ended jobs.
func (c *Cluster) Freeze() *Frozen {
	f := &Frozen{
		head:    c.headState(),
		nodes:   c.nodeStates(),
		idle:    len(c.idleNodes.at),
		models:  c.modelStates(),
		tallies: c.tallies.states(),
		jobs:    make([]entry, 0, c.order.count),
	}
	copies := make([]Job, 0, len(c.jobs))
	for _, e := range c.order.entries {
		if e.removed() {
			continue
		}
		if e.job != nil {
			copies = append(copies, *e.job)
			e.job = &copies[len(copies)-1]
		}
		f.jobs = append(f.jobs, e)
	}
	return f
}

// The encoding is a line with the version, and gzip-compressed frames: a byte for the
// kind, the length as a varint, and JSON. A packed job is kept as it is, behind what is
// needed to find it, so that reading does not unpack it.
const (
	frameHead  = 'h' // headState, first
	frameNode  = 'n' // nodeState, the least recently used first
	frameModel = 'm' // modelState, the least recently used first
	frameTally = 't' // tallyState
	frameJob   = 'j' // jobState, by first sequence
	framePast  = 'p' // pastJob, by first sequence
	frameEnd   = 'e' // nothing, last

	snapshotTitle = "courier cluster state %d\n"
	longestFrame  = 64 << 20 // bytes; longer ones are damage
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
	if err := f.encodeFrames(packed); err != nil {
		return fmt.Errorf("encode the cluster state: %w", err)
	}
	return packed.Close()
}

func (f *Frozen) encodeFrames(w io.Writer) error {
	f.sort()
	out := frameWriter{w: bufio.NewWriterSize(w, 1<<16)}
	out.json(frameHead, &f.head)
	for i := range f.nodes {
		out.json(frameNode, &f.nodes[i])
	}
	for i := range f.models {
		out.json(frameModel, &f.models[i])
	}
	for i := range f.tallies {
		out.json(frameTally, &f.tallies[i])
	}
	for _, e := range f.jobs {
		if e.past != nil {
			out.past(e.past)
		} else {
			out.json(frameJob, e.job.state())
		}
	}
	out.frame(frameEnd, nil)
	if out.err != nil {
		return out.err
	}
	return out.w.Flush()
}

// sort orders by name what has no order. Freeze leaves that, because the cluster waits
// for it.
func (f *Frozen) sort() {
	slices.SortFunc(f.nodes[f.idle:], func(a, b nodeState) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(f.tallies, func(a, b tallyState) int { return cmp.Compare(a.Node, b.Node) })
}

// frameWriter writes frames until the first error.
type frameWriter struct {
	w   *bufio.Writer
	buf []byte
	err error
}

func (o *frameWriter) json(kind byte, v any) {
	text, err := json.Marshal(v)
	if err != nil && o.err == nil {
		o.err = err
	}
	o.frame(kind, text)
}

func (o *frameWriter) past(p *pastJob) {
	b := binary.AppendUvarint(o.buf[:0], p.first)
	b = binary.AppendUvarint(b, p.filed)
	b = appendText(b, string(p.state))
	b = appendText(b, p.id)
	o.buf = append(b, p.text...)
	o.frame(framePast, o.buf)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func (o *frameWriter) frame(kind byte, payload []byte) {
	if o.err != nil {
		return
	}
	head := binary.AppendUvarint([]byte{kind}, uint64(len(payload)))
	if _, o.err = o.w.Write(head); o.err == nil {
		_, o.err = o.w.Write(payload)
	}
}

// errDamaged is wrapped by the errors of DecodeCluster.
var errDamaged = errors.New("damaged snapshot")

// DecodeCluster reads a state that Encode wrote. Another version, and input that is cut
// or damaged, is an error.
func DecodeCluster(r io.Reader) (*Cluster, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	var version int
	if _, err := fmt.Fscanf(in, snapshotTitle, &version); err != nil {
		return nil, fmt.Errorf("%w: no title: %w", errDamaged, err)
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

// readFrames reads frames up to the end and hands them on in batches, until the end, an
// error, or hand returns false.
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
	if _, err := in.ReadByte(); err != io.EOF { // the end holds the checksum
		return fmt.Errorf("behind the last frame: %v, want the end", err)
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
		return 0, nil, fmt.Errorf("frame %q has %d bytes", kind, length)
	}
	const step = 1 << 16 // so that a wrong length does not take its memory before it fails
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

// readPast reads what frameWriter.past wrote.
func readPast(b []byte) (*pastJob, error) {
	p := &pastJob{}
	var state string
	for _, read := range []func() bool{
		func() (ok bool) { p.first, b, ok = cutUvarint(b); return ok },
		func() (ok bool) { p.filed, b, ok = cutUvarint(b); return ok },
		func() (ok bool) { state, b, ok = cutText(b); return ok },
		func() (ok bool) { p.id, b, ok = cutText(b); return ok },
	} {
		if !read() {
			return nil, io.ErrUnexpectedEOF
		}
	}
	p.state, p.text = knownState(state), b
	if p.state == "" {
		return nil, fmt.Errorf("state %q", state)
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

// knownState returns a state as one of the constants, "" if it is none.
func knownState(s string) schemas.State {
	for _, known := range schemas.States() {
		if s == string(known) {
			return known
		}
	}
	return ""
}
