package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// streams checks the streams of the log, and the clock of this machine against that of the server.
func (e *Examination) streams(ctx context.Context, b *bus.Bus) {
	for _, s := range schemas.Streams() {
		asked := time.Now()
		info, err := b.StreamInfo(ctx, s.Name)
		if err != nil {
			e.unread("stream "+s.Name, err)
			continue
		}
		answered := time.Now()
		e.add(streamCheck(s.Name, info))
		if s.Name == schemas.StreamJob {
			e.add(clockCheck(asked, info.At, answered))
		}
	}
}

// nearlyFull is the share of its maximum size from which a stream will soon drop its oldest events.
const nearlyFull = 0.9

func streamCheck(name string, info bus.StreamInfo) Check {
	c := Check{"stream " + name, OK, schemas.FormatCount(info.Messages, "message"), ""}
	if info.Messages > 0 {
		c.Found += " since " + info.FirstAt.UTC().Format("2006-01-02 15:04Z")
	}
	if used := float64(info.Bytes) / float64(info.MaxBytes); info.MaxBytes > 0 && used > nearlyFull {
		c.Result = Warn
		c.Found += fmt.Sprintf(", %.0f %% of its maximum size", 100*used)
		c.Do = "raise it with nats stream edit, or the oldest events are dropped"
	}
	return c
}

// Differences of clocks from which predictions suffer, and from which deadlines are wrong.
const (
	warnClock = time.Second
	failClock = 10 * time.Second
)

// clockCheck compares the clock of the server with that of this machine before and after the request.
func clockCheck(asked, server, answered time.Time) Check {
	apart := max(asked.Sub(server), server.Sub(answered))
	c := Check{"clock", OK, "this machine and the NATS server agree", ""}
	if apart >= warnClock {
		c.Result = Warn
		c.Found = fmt.Sprintf("this machine and the NATS server differ by %s", apart.Round(100*time.Millisecond))
		c.Do = "synchronize both with NTP"
	}
	if apart >= failClock {
		c.Result = Fail
	}
	return c
}

// lateStore is how long an event may wait for the store, which writes a batch each second.
const lateStore = time.Minute

// store checks that a store writes the tables, and how far they are behind the log.
func (e *Examination) store(ctx context.Context, b *bus.Bus) {
	writers, err := activeWriters(ctx, b)
	if err != nil {
		e.unread("store", err)
		return
	}
	messages := map[string]uint64{} // by stream, which the writers of all shards read
	var oldest time.Time
	for _, d := range writers {
		backlog, err := b.Backlog(ctx, d)
		if err != nil {
			e.unread("store", err)
			return
		}
		messages[d.Stream] = max(messages[d.Stream], backlog.Messages)
		if oldest.IsZero() || !backlog.Oldest.IsZero() && backlog.Oldest.Before(oldest) {
			oldest = backlog.Oldest
		}
	}
	var behind uint64
	for _, n := range messages {
		behind += n
	}
	e.add(storeCheck(len(writers), behind, oldest, time.Now()))
}

// activeWriters returns the durables of all sets of tables that a store writes: the tables of a single
// server, and those of each ClickHouse cluster. If a store writes any of a set, all of the set are
// returned.
func activeWriters(ctx context.Context, b *bus.Bus) (active []schemas.Durable, err error) {
	maps, _, err := b.ShardMaps(ctx)
	if err != nil {
		return nil, err
	}
	sets := [][]schemas.Durable{schemas.StoreDurables()}
	for _, m := range maps {
		sets = append(sets, m.Durables())
	}
	for _, set := range sets {
		for _, d := range set {
			isHeld, err := b.IsHeld(ctx, d.Name)
			if err != nil {
				return nil, err
			}
			if isHeld {
				active = append(active, set...)
				break
			}
		}
	}
	return active, nil
}

// storeCheck judges the number of messages that the writers have not written, and when the oldest of
// them was stored; zero: there is none. Without a writer, SQL has no current events, which may be
// intended.
func storeCheck(writers int, messages uint64, oldest, now time.Time) Check {
	if writers == 0 {
		return Check{
			"store", Warn, "no store writes tables", "start courier store, or see its log, if SQL is wanted",
		}
	}
	c := Check{"store", OK, schemas.FormatCount(messages, "message") + " not in the tables yet", ""}
	if waited := now.Sub(oldest); !oldest.IsZero() && waited > lateStore {
		c.Result = Warn
		c.Found += ", for " + schemas.FormatSeconds(waited.Seconds())
		c.Do = "start courier store, or see its log; without it SQL has no new events"
	}
	return c
}

// letters checks for messages that could not be decoded.
func (e *Examination) letters(ctx context.Context, b *bus.Bus) {
	all, err := b.Letters(ctx)
	if err != nil {
		e.unread("dead letters", err)
		return
	}
	open := slices.DeleteFunc(all, func(l bus.Letter) bool { return l.Replayed != nil })
	c := Check{"dead letters", OK, "none", ""}
	if len(open) > 0 {
		last := open[len(open)-1]
		c = Check{
			"dead letters", Warn, fmt.Sprintf("%d, the last of %s: %s", len(open), last.OriginSubject, last.Reason),
			"correct the sender; nats stream view DEAD shows them, courier dead replay publishes them again",
		}
	}
	e.add(c)
}
