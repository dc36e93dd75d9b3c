package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// feed is a stream that the gateway follows for its live clients.
type feed struct {
	stream string
	name   string           // name of the stream in event IDs
	kinds  []string         // kinds of its events, as returned by kindOf
	stored storedRecords    // older records that apply receives at the start
	apply  func(bus.Record) // updates the state for REST responses; may be nil

	batched bool // a message may contain several events
}

// storedRecords selects the older records that apply of a feed receives at the start.
type storedRecords int

const (
	storedNone           storedRecords = iota
	storedLastPerSubject               // the last record of each subject
	storedAll
)

// newFeeds returns the feeds, in the order of the positions in a cursor.
func (g *Gateway) newFeeds() []feed {
	feeds := []feed{
		{
			stream:  schemas.StreamNode,
			kinds:   []string{"sample"},
			stored:  storedLastPerSubject,
			apply:   g.applyNode,
			batched: true,
		},
		{
			stream: schemas.StreamJob,
			kinds:  []string{"job", "advice"},
		}, // JOB of old releases contains advice
		{stream: schemas.StreamAdvice, kinds: []string{"advice"}},
		{
			stream: schemas.StreamRegressor,
			kinds:  []string{"regressor"},
			stored: storedAll,
			apply:  g.applyRegressor,
		},
	}
	for i := range feeds {
		feeds[i].name = strings.ToLower(feeds[i].stream)
	}
	return feeds
}

// kinds returns every kind of live event.
func (g *Gateway) kinds() []string {
	var all []string
	for _, f := range g.feeds {
		all = append(all, f.kinds...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// boundsPause is the pause between attempts to get the end of a stream.
const boundsPause = 200 * time.Millisecond

// follow passes the records of a feed to apply and, after the older records, to the live clients.
// It returns nil when ctx ends.
func (g *Gateway) follow(ctx context.Context, i int) error {
	f := &g.feeds[i]
	head, err := g.lastPosition(ctx, f.stream)
	if err != nil {
		return nil // ctx has ended
	}
	o := bus.FollowOptions{Stream: f.stream, LastPerSubject: f.stored == storedLastPerSubject}
	live := f.stored == storedNone
	at := position{} // position of the last record
	begin := func() {
		live = true
		if at.compare(head) > 0 { // stored since the call of lastPosition
			head = at
		}
		g.hub.start(i, endOf(head.sequence))
	}
	if live {
		o.From = head.resumeSequence()
		begin()
	} else {
		o.CaughtUp = begin
	}

	return g.bus.Follow(ctx, o, func(r bus.Record) error {
		at = at.next(r.Sequence, f.batched)
		if f.apply != nil {
			f.apply(r)
		}
		if live {
			g.announce(i, at, r)
		}
		return nil
	})
}

// lastPosition returns the end of a stream. It retries until NATS answers and returns only the
// error of ctx.
func (g *Gateway) lastPosition(ctx context.Context, stream string) (position, error) {
	tick := time.NewTicker(boundsPause)
	defer tick.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, requestTimeout)
		_, last, err := g.bus.Bounds(attempt, stream)
		cancel()
		if err == nil {
			return endOf(last), nil
		}
		g.log.Debug("stream end not known yet, retrying", "stream", stream, "error", err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return position{}, ctx.Err()
		}
	}
}
