package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"courier/bus"
)

// examine looks at the events of the suspect hours of a table, and with Repair
// mends what differs.
func (v *Verifier) examine(ctx context.Context, log *tally, t *table, hours []*Hour) error {
	suspects := slices.DeleteFunc(slices.Clone(hours), func(h *Hour) bool { return !h.suspect })
	done := 0
	for _, part := range together(suspects, v.options.window) {
		v.options.Progress(t.name+" by event", uint64(done), uint64(len(suspects)))
		for _, h := range part { // what is known only now is counted anew
			h.LogEvents, h.LogChecksum, h.TableEvents, h.TableChecksum, h.Older = 0, 0, 0, 0, 0
		}
		if err := v.settle(ctx, log, t, part); err != nil {
			return err
		}
		done += len(part)
	}
	return nil
}

// together groups hours of at most so many events; one hour may have more.
func together(hours []*Hour, most uint64) (groups [][]*Hour) {
	have := uint64(0)
	for _, h := range hours {
		n := max(h.messages, h.rows)
		if len(groups) == 0 || have+n > most {
			groups, have = append(groups, nil), 0
		}
		have += n
		groups[len(groups)-1] = append(groups[len(groups)-1], h)
	}
	return groups
}

// settle looks at a group of hours, and mends and looks again.
func (v *Verifier) settle(ctx context.Context, log *tally, t *table, hours []*Hour) error {
	if err := v.look(ctx, log, t, hours, v.options.Repair); err != nil {
		return err
	}
	if !v.options.Repair {
		return nil
	}
	differ := slices.DeleteFunc(slices.Clone(hours), func(h *Hour) bool { return !h.Differs() })
	if len(differ) == 0 {
		return nil
	}
	after := make([]*Hour, len(differ))
	for i, h := range differ {
		after[i] = &Hour{At: h.At, from: h.from, last: h.last, messages: h.messages, rows: h.rows + h.Missing}
	}
	if err := v.look(ctx, log, t, after, false); err != nil {
		return err
	}
	for i, h := range differ {
		h.Mended = !after[i].Differs()
		v.log.Info("hour repaired", "table", t.name, "hour", h.At, "missing", h.Missing, "double", h.Double, "extra", h.Extra, "mended", h.Mended)
	}
	return nil
}

// look compares a group of hours event by event, a slice at a time.
func (v *Verifier) look(ctx context.Context, log *tally, t *table, hours []*Hour, repair bool) error {
	n, most := uint64(0), v.options.window
	for _, h := range hours {
		n += max(h.messages, h.rows)
	}
	w := window{slices: max(1, (n+most-1)/most)}
	for i := range w.slices {
		l := &lookout{Verifier: v, tally: log, table: t, repair: repair, hours: make(map[int64]*Hour), events: make(map[event]*found), slices: w.slices, slice: i,
			batch: &group{table: t}}
		var numbers []string
		w.span = span{hourOf(hours[0].At), hourOf(hours[len(hours)-1].At) + 1}
		for _, h := range hours {
			l.hours[hourOf(h.At)] = h
			numbers = append(numbers, fmt.Sprint(hourOf(h.At)))
		}
		l.where = fmt.Sprintf("%s AND %s IN (%s) AND %s AND %s", w.within("at"), hourSQL, strings.Join(numbers, ","), w.slice(i), t.of(log.stream))
		if err := l.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lookout compares one slice of a group of hours event by event.
type lookout struct {
	*Verifier
	tally         *tally
	table         *table
	repair        bool
	where         string // the table's rows
	hours         map[int64]*Hour
	slices, slice uint64

	events map[event]*found // of table and log
	start  uint64           // first sequence that the log has still
	batch  *group           // events of the log that are not in their hour of the table
}

// event is an event_id in an hour.
type event struct {
	hour int64
	hash uint64
}

// found is where an event is.
type found struct {
	place  uint64 // its row's sequence
	copies uint64 // of its row
	logged bool   // it is in the log
}

func (l *lookout) run(ctx context.Context) error {
	if err := l.readTable(ctx); err != nil {
		return err
	}
	if err := l.readLog(ctx); err != nil {
		return err
	}
	if err := l.bring(ctx); err != nil {
		return err
	}
	doubles, extras := l.count()
	for list, hashes := range map[bool]map[int64][]uint64{true: doubles, false: extras} {
		if err := l.name(ctx, hashes, list); err != nil {
			return err
		}
	}
	if l.repair && len(doubles) > 0 {
		return l.single(ctx)
	}
	return nil
}

// readTable remembers the table's events.
func (l *lookout) readTable(ctx context.Context) error {
	var rows []struct {
		Hour   int64  `ch:"hour"`
		Hash   uint64 `ch:"hash"`
		Copies uint64 `ch:"copies"`
		Place  uint64 `ch:"place"`
	}
	if err := l.database.Query(ctx, &rows, distinct(l.table, l.where, l.tally.position)); err != nil {
		return err
	}
	for _, r := range rows {
		l.events[event{r.Hour, r.Hash}] = &found{place: r.Place, copies: r.Copies}
	}
	return nil
}

// readLog marks what the log has, and brings in what only the log has.
func (l *lookout) readLog(ctx context.Context) error {
	from, last := uint64(0), uint64(0)
	for _, h := range l.hours {
		if h.messages > 0 {
			if from == 0 || h.from < from {
				from = h.from
			}
			last = max(last, h.last)
		}
	}
	l.start = l.tally.first
	if from == 0 {
		return nil // no event of these hours is in the log
	}
	l.start = last + 1
	return l.read(ctx, l.tally.stream, from, last, func(r bus.Record) error {
		if l.start > last { // the first: has the log dropped what was there?
			if l.start = r.Sequence; r.Sequence == from {
				l.start = l.tally.first
			}
		}
		return l.take(ctx, r)
	})
}

// take marks one event of the log.
func (l *lookout) take(ctx context.Context, r bus.Record) error {
	row, ok := l.table.rowOf(r.Event)
	if !ok {
		return nil
	}
	e := event{hourOf(r.Event.Stamped().At), hash(r.Event.ID())}
	h := l.hours[e.hour]
	if h == nil || e.hash%l.slices != l.slice {
		return nil
	}
	f := l.events[e]
	if f != nil {
		if !f.logged {
			f.logged = true
			h.LogEvents++
			h.LogChecksum += Checksum(e.hash)
		}
		return nil
	}
	l.events[e] = &found{logged: true}
	l.batch.add(l.tally.stream, &r, row)
	const chunk = 5000 // events that are looked up and brought in at once
	if len(l.batch.items) < chunk {
		return nil
	}
	return l.bring(ctx)
}

// bring counts the events of the batch that the table has nowhere, and writes them.
func (l *lookout) bring(ctx context.Context) error {
	g := l.batch
	if len(g.items) == 0 {
		return nil
	}
	l.batch = &group{table: l.table}
	at, err := l.database.places(ctx, g)
	if err != nil {
		return err
	}
	seen := make(map[string]bool)
	missing := slices.DeleteFunc(g.missing(at), func(i item) bool { // a copy with another time, which the store drops
		again := seen[i.id]
		seen[i.id] = true
		return again
	})
	for i := range missing {
		h := l.hours[hourOf(missing[i].at)]
		h.LogEvents++
		h.LogChecksum += Checksum(hash(missing[i].id))
		h.Missing++
		note(&h.MissingIDs, missing[i].id)
	}
	if len(missing) == 0 || !l.repair {
		return nil
	}
	return l.database.restore(ctx, l.table, missing, "repaired")
}

// count counts what the table has, and returns by hour the hashes of what is
// double, and of what the log lacks.
func (l *lookout) count() (doubles, extras map[int64][]uint64) {
	doubles, extras = make(map[int64][]uint64), make(map[int64][]uint64)
	for e, f := range l.events {
		h := l.hours[e.hour]
		if f.copies == 0 {
			continue // only in the log
		}
		if f.copies > 1 {
			h.Double += f.copies - 1
			doubles[e.hour] = append(doubles[e.hour], e.hash)
		}
		if !f.logged && f.place < l.start {
			h.Older++
			continue
		}
		h.TableEvents++
		h.TableChecksum += Checksum(e.hash)
		if !f.logged {
			h.Extra++
			extras[e.hour] = append(extras[e.hour], e.hash)
		}
	}
	return doubles, extras
}

// name writes the first few events of each hour down by their names.
func (l *lookout) name(ctx context.Context, hashes map[int64][]uint64, double bool) error {
	for hour, list := range hashes {
		slices.Sort(list)
		var numbers []string
		for _, n := range list[:min(len(list), mostIDs)] {
			numbers = append(numbers, fmt.Sprint(n))
		}
		var names []struct {
			ID string `ch:"event_id"`
		}
		err := l.database.Query(ctx, &names, fmt.Sprintf("SELECT DISTINCT event_id FROM %s WHERE %s AND halfMD5(event_id) IN (%s) ORDER BY event_id",
			l.table.name, span{hour, hour + 1}.within("at"), strings.Join(numbers, ",")))
		if err != nil {
			return err
		}
		h := l.hours[hour]
		for _, n := range names {
			if double {
				note(&h.DoubleIDs, n.ID)
			} else {
				note(&h.ExtraIDs, n.ID)
			}
		}
	}
	return nil
}
