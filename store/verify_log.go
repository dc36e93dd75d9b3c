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

// tally is what the log has of each hour of each table.
type tally struct {
	stream   string
	first    uint64 // first sequence that the log keeps, position+1 if none up to there
	position uint64 // last sequence that is compared
	events   uint64
	tables   map[string]map[int64]*Hour // by table and hour
}

// hourOf returns the hour of an instant, counted from 1970.
func hourOf(at time.Time) int64 { return at.Unix() / 3600 }

// hash returns the first eight bytes of an event_id's MD5: what ClickHouse calls
// halfMD5. It needs no guard against malice, and both sides have it built in.
func hash(id string) uint64 {
	sum := md5.Sum([]byte(id))
	return binary.BigEndian.Uint64(sum[:8])
}

// read hands the events of a stream from one sequence to another to handle, as
// far as the log has them. It waits for a server that goes away.
func (v *Verifier) read(ctx context.Context, stream string, from, last uint64, handle func(bus.Record) error) error {
	if from > last {
		return nil
	}
	return v.bus.Read(ctx, bus.FollowOptions{Stream: stream, From: from, Until: last}, handle)
}

// tally reads all that the log keeps of a stream up to a position.
func (v *Verifier) tally(ctx context.Context, stream string, position uint64) (*tally, error) {
	l := &tally{stream: stream, first: position + 1, position: position, tables: make(map[string]map[int64]*Hour)}
	for _, t := range v.tables {
		l.tables[t.name] = make(map[int64]*Hour)
	}
	const often = 1000 // messages between two reports of progress
	read := uint64(0)
	err := v.read(ctx, stream, 1, position, func(r bus.Record) error {
		l.first = min(l.first, r.Sequence)
		if read++; read%often == 0 {
			v.options.Progress(stream, r.Sequence-l.first, position-l.first+1)
		}
		if name, _, ok := schemas.RowOf(r.Event); ok {
			l.add(name, &r)
		}
		return nil
	})
	return l, err
}

// add counts one event.
func (l *tally) add(table string, r *bus.Record) {
	hours, hour := l.tables[table], hourOf(r.Event.Stamped().At)
	h := hours[hour]
	if h == nil {
		h = &Hour{At: time.Unix(hour*3600, 0).UTC(), from: r.Sequence}
		hours[hour] = h
	}
	h.messages++
	h.LogEvents++
	h.LogChecksum += Checksum(hash(r.Event.ID()))
	h.last = r.Sequence
	l.events++
}

// outside counts the events of a table that happened before or after a life.
func (l *tally) outside(table string, life span) (events uint64) {
	for hour, h := range l.tables[table] {
		if !life.has(hour) {
			events += h.messages
		}
	}
	return events
}

// join puts the log's hours and the table's together, and marks those that differ.
func (l *tally) join(table string, hours map[int64]*Hour, life span) (all []*Hour) {
	for hour, h := range l.tables[table] {
		if !life.has(hour) {
			continue
		}
		in := hours[hour]
		if in == nil {
			in = &Hour{At: h.At}
			hours[hour] = in
		}
		in.LogEvents, in.LogChecksum, in.messages, in.from, in.last = h.LogEvents, h.LogChecksum, h.messages, h.from, h.last
	}
	for _, hour := range slices.Sorted(maps.Keys(hours)) {
		h := hours[hour]
		h.suspect = h.LogEvents != h.TableEvents || h.LogChecksum != h.TableChecksum || h.rows != h.TableEvents+h.Older
		all = append(all, h)
	}
	return all
}
