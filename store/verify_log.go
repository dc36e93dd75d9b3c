package store

import (
	"context"
	"crypto/md5"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"courier/bus"
	"courier/schemas"
)

// logHours counts the events of a stream by table and hour.
type logHours struct {
	stream   string
	first    uint64 // first sequence in the log; position+1 if the log has none up to position
	position uint64 // last sequence to compare
	events   uint64
	tables   map[string]map[int64]*Hour // by table and hour
}

// hourOf returns the hour of a time, counted from 1970.
func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// hash returns the first eight bytes of an event_id's MD5, which is halfMD5 in ClickHouse. It
// protects against mistakes, not against attacks.
func hash(id string) uint64 {
	sum := md5.Sum([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])
}

// readLog passes the events from one sequence of a stream to another to handle. It omits events
// that the log has dropped, and waits for an unreachable server.
func (v *Verifier) readLog(
	ctx context.Context, stream string, from, last uint64, handle func(bus.Record) error,
) error {
	if from > last {
		return nil
	}
	o := bus.FollowOptions{Stream: stream, From: from, Until: last}
	return v.bus.Read(ctx, o, handle)
}

// readLogHours counts the events of a stream up to a position.
func (v *Verifier) readLogHours(
	ctx context.Context, stream string, position uint64,
) (*logHours, error) {
	l := &logHours{
		stream:   stream,
		first:    position + 1,
		position: position,
		tables:   make(map[string]map[int64]*Hour),
	}
	for _, t := range v.tables {
		l.tables[t.name] = make(map[int64]*Hour)
	}

	const progressInterval = 1000 // messages
	read := uint64(0)
	err := v.readLog(ctx, stream, 1, position, func(r bus.Record) error {
		l.first = min(l.first, r.Sequence)
		if read++; read%progressInterval == 0 {
			v.options.Progress(stream, r.Sequence-l.first, position-l.first+1)
		}
		if name, _, ok := schemas.RowOf(r.Event); ok && v.database.shard.owns(r.Subject) {
			l.add(name, &r)
		}
		return nil
	})
	return l, err
}

// add counts an event.
func (l *logHours) add(table string, r *bus.Record) {
	hours, hour := l.tables[table], hourOf(r.Event.Stamped().At)
	h := hours[hour]
	if h == nil {
		h = &Hour{At: hourStart(hour), from: r.Sequence}
		hours[hour] = h
	}
	h.messages++
	h.LogEvents++
	h.LogChecksum += Checksum(hash(r.Event.ID()))
	h.last = r.Sequence
	l.events++
}

// eventsOutside counts the events of a table outside of a range.
func (l *logHours) eventsOutside(table string, kept hourRange) (events uint64) {
	for hour, h := range l.tables[table] {
		if !kept.contains(hour) {
			events += h.messages
		}
	}
	return events
}

// join adds the log's counts to the hours of a table, and marks the hours that differ.
func (l *logHours) join(table string, hours map[int64]*Hour, kept hourRange) (all []*Hour) {
	for hour, logged := range l.tables[table] {
		if !kept.contains(hour) {
			continue
		}
		h := hours[hour]
		if h == nil {
			h = &Hour{At: logged.At}
			hours[hour] = h
		}
		h.LogEvents, h.LogChecksum = logged.LogEvents, logged.LogChecksum
		h.messages, h.from, h.last = logged.messages, logged.from, logged.last
	}
	for _, hour := range slices.Sorted(maps.Keys(hours)) {
		h := hours[hour]
		h.suspect = h.LogEvents != h.TableEvents ||
			h.LogChecksum != h.TableChecksum ||
			h.rows != h.TableEvents+h.Older
		all = append(all, h)
	}
	return all
}
