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
	name   string           // of the stream in event IDs
	kinds  []string         // of its events, as kindOf names them
	stored storedRecords    // what is read of the records from before the start
	apply  func(bus.Record) // keeps the state that the REST routes answer with; may be nil

	several bool // a message may hold several events
}

// storedRecords says which records from before the start reach apply of a feed.
type storedRecords int

const (
	storedNone           storedRecords = iota
	storedLastPerSubject               // the last of each subject
	storedAll
)

// newFeeds lists the streams that the gateway follows. Their order is that of cursors.
func (g *Gateway) newFeeds() []feed {
	feeds := []feed{
		{stream: schemas.StreamNode, kinds: []string{"sample"}, stored: storedLastPerSubject, apply: g.applyNode, several: true},
		{stream: schemas.StreamJob, kinds: []string{"job", "advice"}}, // logs of before ADVICE have advice here
		{stream: schemas.StreamAdvice, kinds: []string{"advice"}},
		{stream: schemas.StreamRegressor, kinds: []string{"regressor"}, stored: storedAll, apply: g.applyRegressor},
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

// boundsPause is between two attempts to read where a stream ends.
const boundsPause = 200 * time.Millisecond

// follow hands the records of a feed to its state and, from the end of what was stored
// before, to the live clients. It returns nil when ctx ends.
func (g *Gateway) follow(ctx context.Context, i int) error {
	f := &g.feeds[i]
	head, err := g.lastPosition(ctx, f.stream)
	if err != nil {
		return nil // ctx has ended
	}
	o := bus.FollowOptions{Stream: f.stream, LastPerSubject: f.stored == storedLastPerSubject}
	live := f.stored == storedNone
	at := position{} // of the last record
	begin := func() {
		live = true
		if at.compare(head) > 0 { // stored after head was read
			head = at
		}
		g.hub.start(i, endOf(head.sequence))
	}
	if live {
		o.From = head.unhandled()
		begin()
	} else {
		o.CaughtUp = begin
	}

	return g.bus.Follow(ctx, o, func(r bus.Record) error {
		at = at.next(r.Sequence, f.several)
		if f.apply != nil {
			f.apply(r)
		}
		if live {
			g.announce(i, at, r)
		}
		return nil
	})
}

// lastPosition returns the end of a stream. It waits until NATS answers; the error is that
// of ctx.
func (g *Gateway) lastPosition(ctx context.Context, stream string) (position, error) {
	tick := time.NewTicker(boundsPause)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, requestTimeout)
		_, last, err := g.bus.Bounds(asking, stream)
		cancel()
		if err == nil {
			return endOf(last), nil
		}
		g.log.Debug("end of stream not known yet", "stream", stream, "error", err)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return position{}, ctx.Err()
		}
	}
}
