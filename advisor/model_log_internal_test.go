package advisor

import (
	"cmp"
	"context"
	"hash/fnv"
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
// time of storage, one copy of a message ID within the window of duplicates, and the ticket.
type modelLog struct {
	mu        sync.Mutex
	seed      uint64
	messages  uint64 // sent so far
	created   time.Time
	streams   map[string]*modelStream
	ticket    schemas.Ticket
	revision  uint64
	snapshots []modelSnapshot
	listeners map[*modelListener]bool
	onStored  func(schemas.Event) // called with the lock held
}

type modelStream struct {
	records []bus.Record
	byID    map[string]int // indices in records
	grown   chan struct{}  // closed and replaced when the stream grows
}

type modelSnapshot struct {
	bus.Snapshot
	data []byte
}

type modelListener struct {
	process *modelBus
	handle  func(person string, e schemas.Event)
}

func newModelLog(seed uint64) *modelLog {
	l := &modelLog{
		seed: seed, created: time.Now(), streams: map[string]*modelStream{}, listeners: map[*modelListener]bool{},
	}
	for _, name := range []string{schemas.StreamJob, schemas.StreamNode, schemas.StreamAdvice} {
		l.streams[name] = &modelStream{byID: map[string]int{}, grown: make(chan struct{})}
	}
	return l
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

// window is the time within which JOB drops a second message with the same ID.
const window = 2 * time.Minute

// store stores an event. If onlyFirst is set and the subject has one, it is refused.
func (l *modelLog) store(e schemas.Event, onlyFirst bool) (sequence uint64, isNew, isRefused bool, err error) {
	data, err := schemas.Marshal(e)
	if err != nil {
		return 0, false, false, err
	}
	parsed, err := schemas.ParseAll(e.Subject(), data)
	if err != nil {
		return 0, false, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[modelStreamOf(e)]
	if i, found := s.byID[e.ID()]; found && time.Since(s.records[i].StoredAt) < window {
		return s.records[i].Sequence, false, false, nil
	}
	sameSubject := func(r bus.Record) bool { return r.Subject == e.Subject() }
	if i := slices.IndexFunc(s.records, sameSubject); onlyFirst && i >= 0 {
		return s.records[i].Sequence, false, true, nil
	}
	r := bus.Record{
		Event: parsed[0], Subject: e.Subject(), Sequence: uint64(len(s.records) + 1), StoredAt: time.Now().UTC(),
	}
	if numbered, ok := r.Event.(interface{ SetSequence(uint64) }); ok {
		numbered.SetSequence(r.Sequence)
	}
	s.byID[e.ID()] = len(s.records)
	s.records = append(s.records, r)
	l.onStored(r.Event)
	close(s.grown)
	s.grown = make(chan struct{})
	return r.Sequence, true, false, nil
}

func modelStreamOf(e schemas.Event) string {
	switch e.(type) {
	case *schemas.Sample:
		return schemas.StreamNode
	case *schemas.Advice, *schemas.Risk:
		return schemas.StreamAdvice
	}
	return schemas.StreamJob
}

// from returns the records of a stream from a sequence on, and a channel that is closed when it grows.
func (l *modelLog) from(stream string, sequence uint64) ([]bus.Record, chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.streams[stream]
	return s.records[min(uint64(len(s.records)), sequence-1):], s.grown
}

// modelBus is the connection of a process to the log. A partition or a pause stops its messages, and a
// killed process sends and receives nothing more.
type modelBus struct {
	log *modelLog

	mu        sync.Mutex
	isCut     bool
	isPaused  bool
	losesAcks bool
	isKilled  bool
	changed   chan struct{} // closed and replaced when one of these changes
}

func newModelBus(l *modelLog) *modelBus { return &modelBus{log: l, changed: make(chan struct{})} }

func (c *modelBus) set(flag *bool, value bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*flag = value
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *modelBus) is(flag *bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *flag
}

var errModelCut = &schemas.Error{Code: schemas.CodeUnavailable, Message: "partition"}

// runs waits until the process runs: it is not paused. It returns false if it was killed.
func (c *modelBus) runs() bool {
	for {
		c.mu.Lock()
		isPaused, isKilled, changed := c.isPaused, c.isKilled, c.changed
		c.mu.Unlock()
		if isKilled || !isPaused {
			return !isKilled
		}
		<-changed
	}
}

// pass waits until a message has passed the network. A message that cannot pass before ctx ends is not
// sent, nor is one of a process that wakes up after that.
func (c *modelBus) pass(ctx context.Context) error {
	<-time.After(c.log.latency())
	for {
		if !c.runs() {
			return errModelCut
		}
		c.mu.Lock()
		isCut, changed := c.isCut, c.changed
		c.mu.Unlock()
		if ctx.Err() != nil {
			return errModelCut
		}
		if !isCut {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// ask lets the log do something, and waits for its answer. The answer is lost in a partition, and also if
// the process loses acknowledgements.
func (c *modelBus) ask(ctx context.Context, do func() error) error {
	ctx, cancel := context.WithTimeout(ctx, schemas.SubmitTimeout)
	defer cancel()
	if err := c.pass(ctx); err != nil {
		if bus.ReconnectBuffer >= 0 && c.is(&c.isCut) {
			go func() { // the client sends it later
				if c.pass(context.WithoutCancel(ctx)) == nil {
					_ = do()
				}
			}()
		}
		return err
	}
	err := do()
	if c.is(&c.losesAcks) {
		<-ctx.Done()
		return errModelCut
	}
	return cmp.Or(c.pass(ctx), err)
}

func (c *modelBus) Connected() bool { return c.runs() && !c.is(&c.isCut) }

func (c *modelBus) Publish(ctx context.Context, e schemas.Event) (sequence uint64, err error) {
	if err := e.Validate(); err != nil {
		return 0, err
	}
	err = c.ask(ctx, func() (err error) {
		sequence, _, _, err = c.log.store(e, false)
		return err
	})
	return sequence, err
}

func (c *modelBus) PublishOnce(ctx context.Context, e schemas.Event) (sequence uint64, first bool, err error) {
	if err := e.Validate(); err != nil {
		return 0, false, err
	}
	err = c.ask(ctx, func() (err error) {
		sequence, first, _, err = c.log.store(e, true)
		return err
	})
	return sequence, first, err
}

func (c *modelBus) Claim(ctx context.Context, e *schemas.Started) (uint64, error) {
	sequence, err := c.Publish(ctx, e)
	if err != nil {
		return 0, err
	}
	stored, _ := c.log.from(schemas.StreamJob, sequence)
	if first, ok := stored[0].Event.(*schemas.Started); !ok || !first.At.Equal(e.At) {
		return 0, &schemas.Error{Code: schemas.CodeConflict, Message: "started by another runner"}
	}
	return sequence, nil
}

func (c *modelBus) Follow(ctx context.Context, o bus.FollowOptions, handle func(bus.Record) error) error {
	stored, _ := c.log.from(o.Stream, 1)
	next, last := max(1, o.From), uint64(len(stored))
	if o.LastPerSubject {
		next = max(1, last-min(last, modelNodes)+1)
	}
	for {
		if next > last && o.CaughtUp != nil {
			o.CaughtUp()
			o.CaughtUp = nil
		}
		records, grown := c.log.from(o.Stream, next)
		if len(records) == 0 {
			select {
			case <-grown:
			case <-ctx.Done():
				return nil
			}
			continue
		}
		if c.pass(ctx) != nil {
			<-ctx.Done() // killed, or stopped
			return nil
		}
		for _, r := range records {
			if err := handle(r); err != nil {
				return err
			}
			next = r.Sequence + 1
			if next > last && o.CaughtUp != nil {
				break
			}
		}
	}
}

func (c *modelBus) Last(ctx context.Context, stream, filter string) (all []bus.Record, err error) {
	err = c.ask(ctx, func() error {
		last := map[string]bus.Record{}
		stored, _ := c.log.from(stream, 1)
		for _, r := range stored {
			if matched, _ := path.Match(filter, r.Subject); matched {
				last[r.Subject] = r
			}
		}
		all = slices.SortedFunc(maps.Values(last), func(x, y bus.Record) int {
			return cmp.Compare(x.Sequence, y.Sequence)
		})
		return nil
	})
	return all, err
}

func (c *modelBus) LastSequence(ctx context.Context, stream string) (last uint64, err error) {
	info, err := c.StreamInfo(ctx, stream)
	return info.Last, err
}

func (c *modelBus) Ticket(ctx context.Context) (t schemas.Ticket, revision uint64, err error) {
	err = c.ask(ctx, func() error {
		c.log.mu.Lock()
		defer c.log.mu.Unlock()
		t, revision = c.log.ticket, c.log.revision
		return nil
	})
	return t, revision, err
}

func (c *modelBus) TakeTicket(ctx context.Context, t schemas.Ticket, revision uint64) error {
	return c.ask(ctx, func() error {
		c.log.mu.Lock()
		defer c.log.mu.Unlock()
		if c.log.revision != revision {
			return &schemas.Error{Code: schemas.CodeConflict, Message: "another ticket"}
		}
		c.log.ticket, c.log.revision = t, revision+1
		return nil
	})
}

// notify sends an event to all listeners that it reaches.
func (c *modelBus) notify(ctx context.Context, e schemas.Event) error {
	if err := c.pass(ctx); err != nil {
		return err
	}
	c.log.mu.Lock()
	listeners := slices.Collect(maps.Keys(c.log.listeners))
	c.log.mu.Unlock()
	for _, l := range listeners {
		if l.process.is(&l.process.isCut) {
			continue
		}
		go func() {
			if l.process.runs() {
				l.handle("", e)
			}
		}()
	}
	return nil
}

func (c *modelBus) ListenPersons(
	ctx context.Context, _ []string, handle func(person string, e schemas.Event),
) error {
	l := &modelListener{c, handle}
	c.log.mu.Lock()
	c.log.listeners[l] = true
	c.log.mu.Unlock()
	<-ctx.Done()
	c.log.mu.Lock()
	delete(c.log.listeners, l)
	c.log.mu.Unlock()
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

func (c *modelBus) Artifact(context.Context, string) ([]byte, error) { return nil, schemas.ErrNotFound }
