package bus

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// collector gathers a batch.
type collector struct {
	*batcher
	batch Batch
	at    time.Time // of the last message
	count int
}

func (r *batcher) collect(repeated bool) *collector {
	return &collector{batcher: r, batch: Batch{Stream: r.d.Stream, Repeated: repeated}}
}

func (c *collector) add(ctx context.Context, subject string, data []byte, sequence uint64, at time.Time) error {
	if c.count == 0 {
		c.batch.First = sequence
	}
	c.batch.Last, c.at = sequence, at
	c.count++
	c.batch.Bytes += len(data)
	var err error
	c.batch.Records, err = c.records(ctx, c.batch.Records, c.d.Stream, c.d.Name, data, Record{Subject: subject, Sequence: sequence, StoredAt: at})
	return err
}

// fill adds what the stream holds from a sequence up to, not including, another.
// There is a hole where a process died between taking messages and recording
// its intent: the server keeps them back for the dead one until AckWait has
// passed, and acknowledging what follows would acknowledge them as well.
func (c *collector) fill(ctx context.Context, from, until uint64) error {
	if from >= until {
		return nil
	}
	return c.storedRange(ctx, c.d.Stream, from, until, func(msg *stored) error {
		if msg.Sequence == until {
			return nil
		}
		return c.add(ctx, msg.Subject, msg.Data, msg.Sequence, msg.Time)
	})
}

func (c *collector) intent() intent {
	return intent{First: c.batch.First, Last: c.batch.Last, At: c.at, Count: c.count}
}

// gathered is a batch and where its last message is acknowledged, "" if there is none,
// which may be one that was handled before.
type gathered struct {
	*collector
	ack string
}

// place is how far a stream was gathered: the last message's sequence, and when it
// was stored.
type place struct {
	sequence uint64
	at       time.Time
}

// anew says that the log has lost its end, or was thrown away, and counts again:
// this message lies before the last that was gathered, and was stored after it.
type anew struct{ sequence uint64 }

func (a anew) Error() string { return fmt.Sprintf("the log counts again from %d", a.sequence) }

func (p place) before(message place) bool {
	return message.sequence <= p.sequence && !p.at.IsZero() && message.at.After(p.at)
}

// placeOf reads a message's place in its stream from the subject on which it is
// acknowledged, without the garbage that Metadata of nats.go makes for each:
// $JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<deliveries>.<sequence>.<the consumer's>.<instant>.<pending>[.<token>]
func placeOf(ack string) (p place, err error) {
	before := 5
	if strings.Count(ack, ".") > 8 {
		before = 7
	}
	rest := ack
	for range before {
		_, rest, _ = strings.Cut(rest, ".")
	}
	sequence, rest, _ := strings.Cut(rest, ".")
	_, rest, _ = strings.Cut(rest, ".")
	instant, _, _ := strings.Cut(rest, ".")
	if p.sequence, err = strconv.ParseUint(sequence, 10, 64); err != nil || !strings.HasPrefix(ack, "$JS.ACK.") {
		return p, fmt.Errorf("a message is acknowledged at %q, which tells no place", ack)
	}
	nanoseconds, err := strconv.ParseInt(instant, 10, 64)
	p.at = time.Unix(0, nanoseconds)
	return p, err
}

// gather gathers one batch by size or age, of what lies behind a place.
func (r *batcher) gather(ctx context.Context, p *puller, after place) (gathered, error) {
	g := gathered{collector: r.collect(false)}
	g.batch.Records = make([]Record, 0, r.usual)
	defer func() { r.usual = len(g.batch.Records) }()
	until := time.Now().Add(r.o.MaxAge)
	// What is in hand is finished although ctx ends: it has a bound of its own.
	finishing, cancel := finishContext(ctx)
	defer cancel()
	for !g.full() {
		msg, err := p.next(ctx, until)
		if msg == nil || err != nil {
			return g, err
		}
		at, err := placeOf(msg.Reply)
		if err != nil {
			return g, fmt.Errorf("read a message's place in %s: %w", r.d.Stream, err)
		}
		g.ack = msg.Reply
		if after.before(at) {
			return g, anew{at.sequence}
		}
		had := max(after.sequence, g.batch.Last)
		if at.sequence <= had {
			continue // handled already, or a redelivery of what is in hand
		}
		if err := g.fill(finishing, had+1, at.sequence); err != nil {
			return g, err
		}
		if err := g.add(finishing, msg.Subject, msg.Data, at.sequence, at.at); err != nil {
			return g, err
		}
	}
	return g, nil
}

// mostBytes is as much as a batch takes in of the log: events need three times as much
// in memory, and another batch waits meanwhile.
const mostBytes = 32 << 20

// full says that a batch has as many messages, events or bytes as it may have.
func (c *collector) full() bool {
	return max(c.count, len(c.batch.Records)) >= c.o.MaxMessages || c.batch.Bytes >= mostBytes
}
