package advisor

import (
	"bytes"
	"cmp"
	"context"
	"hash/fnv"
	"io"
	"maps"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"
)

// modelLog is the event log of a schedule, in virtual time. It keeps what NATS keeps: the order and the
// time of storage, one copy of a message ID within the window of duplicates, the ticket, and snapshots.
// Its lock guards everything that the goroutines of a schedule share.
type modelLog struct {
	mu        sync.Mutex
	changed   chan struct{} // closed and replaced by wake
	seed      uint64
	messages  uint64 // sent so far
	created   time.Time
	streams   map[string][]bus.Record // without ADVICE, which no advisor reads
	sequences map[string]uint64       // of the last copy, by event ID
	ticket    schemas.Ticket
	revision  uint64
	snapshot  bus.Snapshot // the newest
	state     []byte       // its content
	onStored  func(schemas.Event)
}

// window is the time within which JOB drops a second message with the same ID.
const window = 2 * time.Minute

func newModelLog(seed uint64) *modelLog {
	return &modelLog{
		seed: seed, created: time.Now(), changed: make(chan struct{}),
		streams: map[string][]bus.Record{}, sequences: map[string]uint64{},
	}
}

func (l *modelLog) locked(do func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	do()
}

// unlocked does something that blocks. The caller holds the lock.
func (l *modelLog) unlocked(do func()) {
	l.mu.Unlock()
	defer l.mu.Lock()
	do()
}

// is returns a value that the lock guards.
func (l *modelLog) is(value *bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *value
}

// wake lets await look again. The caller holds the lock.
func (l *modelLog) wake() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until a condition holds, or ctx ends.
func (l *modelLog) await(ctx context.Context, holds func() bool) {
	for {
		l.mu.Lock()
		isDone, changed := holds(), l.changed
		l.mu.Unlock()
		if isDone {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// latency returns the time that a message takes; no two messages of a schedule take the same time.
func (l *modelLog) latency() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages++
	h := fnv.New64a()
	_, _ = h.Write(strconv.AppendUint(strconv.AppendUint(nil, l.seed, 10), l.messages, 36))
	return time.Duration(h.Sum64()%20)*time.Millisecond + time.Duration(l.messages)
}

// store stores an event. If onlyFirst is set and the subject has one, it is refused. The caller holds the lock.
func (l *modelLog) store(e schemas.Event, onlyFirst bool) (sequence uint64, isNew bool, err error) {
	data, err := schemas.Marshal(e)
	if err != nil {
		return 0, false, err
	}
	parsed, err := schemas.ParseAll(e.Subject(), data)
	if err != nil {
		return 0, false, err
	}
	stream := schemas.StreamJob
	switch e.(type) {
	case *schemas.Advice:
		return 1, true, nil
	case *schemas.Sample:
		stream = schemas.StreamNode
	}
	records := l.streams[stream]
	if copied := l.sequences[e.ID()]; copied > 0 && time.Since(records[copied-1].StoredAt) < window {
		return copied, false, nil
	}
	sameSubject := func(r bus.Record) bool { return r.Subject == e.Subject() }
	if i := slices.IndexFunc(records, sameSubject); onlyFirst && i >= 0 {
		return records[i].Sequence, false, nil
	}
	r := bus.Record{
		Event: parsed[0], Subject: e.Subject(), Sequence: uint64(len(records) + 1), StoredAt: time.Now().UTC(),
	}
	if numbered, ok := r.Event.(interface{ SetSequence(uint64) }); ok {
		numbered.SetSequence(r.Sequence)
	}
	l.sequences[e.ID()] = r.Sequence
	l.streams[stream] = append(records, r)
	l.onStored(r.Event)
	l.wake()
	return r.Sequence, true, nil
}

// lastOf returns the last event of a job of some kinds, or nil. The caller holds the lock.
func (l *modelLog) lastOf(job string, events ...string) schemas.Event {
	for _, r := range slices.Backward(l.streams[schemas.StreamJob]) {
		if slices.ContainsFunc(events, func(e string) bool { return r.Subject == schemas.JobSubject(job, e) }) {
			return r.Event
		}
	}
	return nil
}

// fault is what happens to the connection of a process, or to the process.
type fault int

const (
	isCut fault = iota
	isPaused
	losesAcks
	isKilled
	faults
)

// modelBus is the connection of a process to the log. A partition or a pause stops its messages, and a
// killed process sends and receives nothing more. No schedule calls the methods that it has not.
type modelBus struct {
	eventBus
	*modelLog
	has [faults]bool
}

func (c *modelBus) set(f fault, value bool) {
	c.locked(func() { c.has[f] = value; c.wake() })
}

var errModelCut = &schemas.Error{Code: schemas.CodeUnavailable, Message: "partition"}

// runs waits until the process runs: it is not paused. It returns false if it was killed.
func (c *modelBus) runs() bool {
	c.await(context.Background(), func() bool { return c.has[isKilled] || !c.has[isPaused] })
	return !c.is(&c.has[isKilled])
}

// pass waits until a message has passed the network. A message that cannot pass before ctx ends is not
// sent, nor is one of a process that wakes up after that.
func (c *modelBus) pass(ctx context.Context) error {
	<-time.After(c.latency())
	c.await(ctx, func() bool { return c.has[isKilled] || !c.has[isPaused] && !c.has[isCut] })
	if !c.runs() || ctx.Err() != nil {
		return errModelCut
	}
	return nil
}

// ask lets the log do something with the lock held, and waits for its answer. The answer is lost in a
// partition, and also if the process loses acknowledgements.
func (c *modelBus) ask(ctx context.Context, do func() error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout)
	defer cancel()
	if err := c.pass(ctx); err != nil {
		return err
	}
	c.locked(func() { err = do() })
	if c.is(&c.has[losesAcks]) {
		<-ctx.Done()
		return errModelCut
	}
	return cmp.Or(c.pass(ctx), err)
}

func (c *modelBus) Connected() bool { return c.runs() && !c.is(&c.has[isCut]) }

func (c *modelBus) publish(ctx context.Context, e schemas.Event, onlyFirst bool) (n uint64, isNew bool, err error) {
	if err := e.Validate(); err != nil {
		return 0, false, err
	}
	err = c.ask(ctx, func() (err error) {
		n, isNew, err = c.store(e, onlyFirst)
		return err
	})
	return n, isNew, err
}

func (c *modelBus) Publish(ctx context.Context, e schemas.Event) (uint64, error) {
	sequence, _, err := c.publish(ctx, e, false)
	return sequence, err
}

func (c *modelBus) PublishOnce(ctx context.Context, e schemas.Event) (sequence uint64, first bool, err error) {
	return c.publish(ctx, e, true)
}

func (c *modelBus) Claim(ctx context.Context, e *schemas.Started) (sequence uint64, err error) {
	if sequence, err = c.Publish(ctx, e); err != nil {
		return 0, err
	}
	c.locked(func() {
		first, ok := c.streams[schemas.StreamJob][sequence-1].Event.(*schemas.Started)
		if !ok || !first.At.Equal(e.At) {
			err = &schemas.Error{Code: schemas.CodeConflict, Message: "started by another runner"}
		}
	})
	return sequence, err
}

func (c *modelBus) Follow(ctx context.Context, o bus.FollowOptions, handle func(bus.Record) error) error {
	var records []bus.Record
	next, last := max(1, o.From), uint64(0)
	c.locked(func() { last = uint64(len(c.streams[o.Stream])) })
	if o.LastPerSubject {
		next = max(1, last-min(last, modelNodes)+1)
	}
	for {
		if next > last && o.CaughtUp != nil {
			o.CaughtUp()
			o.CaughtUp = nil
		}
		c.await(ctx, func() bool {
			all := c.streams[o.Stream]
			records = all[min(uint64(len(all)), next-1):]
			return len(records) > 0
		})
		if ctx.Err() != nil {
			return nil
		}
		if c.pass(ctx) != nil {
			<-ctx.Done() // killed, or stopped
			return nil
		}
		for _, r := range records {
			if err := handle(r); err != nil {
				return err
			}
			if next = r.Sequence + 1; next > last && o.CaughtUp != nil {
				break
			}
		}
	}
}

func (c *modelBus) Last(ctx context.Context, stream, filter string) (all []bus.Record, err error) {
	last := map[string]bus.Record{}
	err = c.ask(ctx, func() error {
		for _, r := range c.streams[stream] {
			if matched, _ := path.Match(filter, r.Subject); matched {
				last[r.Subject] = r
			}
		}
		return nil
	})
	return slices.SortedFunc(maps.Values(last), func(x, y bus.Record) int {
		return cmp.Compare(x.Sequence, y.Sequence)
	}), err
}

func (c *modelBus) StreamInfo(ctx context.Context, stream string) (info bus.StreamInfo, err error) {
	err = c.ask(ctx, func() error {
		last := uint64(len(c.streams[stream]))
		info = bus.StreamInfo{At: time.Now().UTC(), CreatedAt: c.created, First: 1, Last: last}
		return nil
	})
	return info, err
}

func (c *modelBus) LastSequence(ctx context.Context, stream string) (uint64, error) {
	info, err := c.StreamInfo(ctx, stream)
	return info.Last, err
}

func (c *modelBus) Ticket(ctx context.Context) (t schemas.Ticket, revision uint64, err error) {
	err = c.ask(ctx, func() error {
		t, revision = c.ticket, c.revision
		return nil
	})
	return t, revision, err
}

func (c *modelBus) TakeTicket(ctx context.Context, t schemas.Ticket, revision uint64) error {
	return c.ask(ctx, func() error {
		if c.revision != revision {
			return &schemas.Error{Code: schemas.CodeConflict, Message: "another ticket"}
		}
		c.ticket, c.revision = t, revision+1
		return nil
	})
}

func (c *modelBus) ListenPersons(ctx context.Context, _ []string, _ func(string, schemas.Event)) error {
	<-ctx.Done() // the runners of the model call the handler
	return nil
}

func (c *modelBus) Serve(ctx context.Context, s bus.Service) error {
	s.Ready()
	<-ctx.Done()
	return nil
}

func (c *modelBus) WatchChampions(ctx context.Context, _ func(schemas.Champion, uint64)) error {
	<-ctx.Done()
	return nil
}

func (c *modelBus) Snapshots(ctx context.Context, _ string, _ int) (all []bus.Snapshot, err error) {
	err = c.ask(ctx, func() error {
		if c.state != nil {
			all = []bus.Snapshot{c.snapshot}
		}
		return nil
	})
	return all, err
}

func (c *modelBus) CheckSnapshot(context.Context, bus.Snapshot, bus.StreamInfo) error { return nil }

func (c *modelBus) SaveSnapshot(ctx context.Context, s bus.Snapshot, encode func(io.Writer) error) error {
	var data bytes.Buffer
	return cmp.Or(encode(&data), c.ask(ctx, func() error {
		if s.Sequence >= c.snapshot.Sequence {
			s.Name = strconv.FormatUint(c.messages, 10)
			c.snapshot, c.state = s, data.Bytes()
		}
		return nil
	}))
}

func (c *modelBus) LoadSnapshot(ctx context.Context, s bus.Snapshot, decode func(io.Reader) error) error {
	return c.ask(ctx, func() error {
		if s.Name != c.snapshot.Name { // another advisor has stored a newer one
			return schemas.ErrNotFound
		}
		return decode(bytes.NewReader(c.state))
	})
}
