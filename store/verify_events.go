package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"courier/bus"
	"courier/schemas"
)

func (v *Verifier) compareEvents(ctx context.Context, log *logHours, t *eventTable, hours []*Hour) error {
	isFine := func(h *Hour) bool { return !h.suspect }
	suspects := slices.DeleteFunc(slices.Clone(hours), isFine)
	done := 0
	for _, group := range groupHours(suspects, v.options.windowRows) {
		v.options.Progress(t.name+" by event", uint64(done), uint64(len(suspects)))
		for _, h := range group { // count again, event by event
			h.LogEvents, h.LogChecksum = 0, 0
			h.TableEvents, h.TableChecksum, h.Older = 0, 0, 0
		}
		if err := v.compareHours(ctx, log, t, group); err != nil {
			return err
		}
		done += len(group)
	}
	return nil
}

// groupHours groups hours so that a group has at most maxEvents events, unless a single hour
// has more.
func groupHours(hours []*Hour, maxEvents uint64) (groups [][]*Hour) {
	size := uint64(0)
	for _, h := range hours {
		n := max(h.messages, h.rows)
		if len(groups) == 0 || size+n > maxEvents {
			groups, size = append(groups, nil), 0
		}
		size += n
		groups[len(groups)-1] = append(groups[len(groups)-1], h)
	}
	return groups
}

// compareHours compares a group of hours event by event, one slice at a time.
func (v *Verifier) compareHours(ctx context.Context, log *logHours, t *eventTable, hours []*Hour) error {
	events, maxEvents := uint64(0), v.options.windowRows
	byNumber := make(map[int64]*Hour, len(hours))
	var numbers []string
	for _, h := range hours {
		events += max(h.messages, h.rows)
		byNumber[hourOf(h.At)] = h
		numbers = append(numbers, fmt.Sprint(hourOf(h.At)))
	}

	w := window{
		hourRange: hourRange{hourOf(hours[0].At), hourOf(hours[len(hours)-1].At) + 1},
		slices:    max(1, (events+maxEvents-1)/maxEvents),
	}
	for i := range w.slices {
		c := &eventComparison{
			Verifier: v,
			log:      log,
			table:    t,
			hours:    byNumber,
			slices:   w.slices,
			slice:    i,
			events:   make(map[hourEvent]*eventState),
			unseen:   &tableRows{table: t},
		}
		c.where = fmt.Sprintf("%s AND %s IN (%s) AND %s",
			w.condition("at"), hourSQL, strings.Join(numbers, ","), w.sliceCondition(i))
		if err := c.run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// eventComparison compares one slice of a group of hours event by event.
type eventComparison struct {
	*Verifier
	log           *logHours
	table         *eventTable
	where         string // SQL condition for the rows
	hours         map[int64]*Hour
	slices, slice uint64

	events   map[hourEvent]*eventState
	logStart uint64     // first sequence that the log still has
	unseen   *tableRows // logged events without a row in their hour
}

// hourEvent identifies an event within an hour.
type hourEvent struct {
	hour int64
	hash uint64
}

// eventState records where an event was found.
type eventState struct {
	sequence uint64 // of its first row
	rows     uint64
	isLogged bool
}

func (c *eventComparison) run(ctx context.Context) error {
	if err := c.scanTable(ctx); err != nil {
		return err
	}
	if err := c.scanLog(ctx); err != nil {
		return err
	}
	if err := c.resolveUnseen(ctx); err != nil {
		return err
	}
	duplicates, extras := c.countRows()
	err := c.listIDs(ctx, duplicates, func(h *Hour) *[]string { return &h.DoubleIDs })
	if err != nil {
		return err
	}
	return c.listIDs(ctx, extras, func(h *Hour) *[]string { return &h.ExtraIDs })
}

func (c *eventComparison) scanTable(ctx context.Context) error {
	var rows []struct {
		Hour     int64  `ch:"hour"`
		Hash     uint64 `ch:"hash"`
		Copies   uint64 `ch:"copies"`
		Sequence uint64 `ch:"place"`
	}
	query := distinctEvents(c.table, c.where, c.log.position)
	if err := c.database.Query(ctx, &rows, query); err != nil {
		return err
	}
	for _, r := range rows {
		state := &eventState{sequence: r.Sequence, rows: r.Copies}
		c.events[hourEvent{r.Hour, r.Hash}] = state
	}
	return nil
}

func (c *eventComparison) scanLog(ctx context.Context) error {
	from, last := uint64(0), uint64(0)
	for _, h := range c.hours {
		if h.messages > 0 {
			if from == 0 || h.from < from {
				from = h.from
			}
			last = max(last, h.last)
		}
	}
	c.logStart = c.log.first
	if from == 0 {
		return nil // the log has no event of these hours
	}

	// If the first message is later than before, the log has dropped messages since then.
	c.logStart = last + 1
	return c.readLog(ctx, c.log.stream, from, last, func(r bus.Record) error {
		if c.logStart > last { // the first message
			if c.logStart = r.Sequence; r.Sequence == from {
				c.logStart = c.log.first
			}
		}
		return c.addLogged(ctx, r)
	})
}

func (c *eventComparison) addLogged(ctx context.Context, r bus.Record) error {
	name, row, ok := schemas.RowOf(r.Event)
	if !ok || name != c.table.name || !c.database.shard.owns(r.Subject) {
		return nil
	}
	e := hourEvent{hourOf(r.Event.Stamped().At), hash(r.Event.ID())}
	h := c.hours[e.hour]
	if h == nil || e.hash%c.slices != c.slice {
		return nil
	}
	if state := c.events[e]; state != nil {
		if !state.isLogged {
			state.isLogged = true
			h.LogEvents++
			h.LogChecksum += Checksum(e.hash)
		}
		return nil
	}

	c.events[e] = &eventState{isLogged: true}
	c.unseen.add(&r, row)
	const maxUnseen = 5000 // events per lookup
	if len(c.unseen.rows) < maxUnseen {
		return nil
	}
	return c.resolveUnseen(ctx)
}

// resolveUnseen counts the unseen events that the table has in no hour.
func (c *eventComparison) resolveUnseen(ctx context.Context) error {
	g := c.unseen
	if len(g.rows) == 0 {
		return nil
	}
	c.unseen = &tableRows{table: c.table}
	stored, err := c.database.findStored(ctx, g)
	if err != nil {
		return err
	}

	// The store drops a duplicate with a different timestamp; so does this.
	seen := make(map[string]bool)
	isDuplicate := func(r eventRow) bool {
		duplicate := seen[r.id]
		seen[r.id] = true
		return duplicate
	}
	missing := slices.DeleteFunc(g.missing(stored), isDuplicate)
	for i := range missing {
		h := c.hours[hourOf(missing[i].at)]
		h.LogEvents++
		h.LogChecksum += Checksum(hash(missing[i].id))
		h.Missing++
		appendLimited(&h.MissingIDs, missing[i].id)
	}
	return nil
}

// countRows counts the rows of the table. It returns, by hour, the hashes of events with
// duplicate rows, and of rows that the log does not have.
func (c *eventComparison) countRows() (duplicates, extras map[int64][]uint64) {
	duplicates, extras = make(map[int64][]uint64), make(map[int64][]uint64)
	for e, state := range c.events {
		h := c.hours[e.hour]
		if state.rows == 0 {
			continue // only in the log
		}
		if state.rows > 1 {
			h.Double += state.rows - 1
			duplicates[e.hour] = append(duplicates[e.hour], e.hash)
		}
		if !state.isLogged && state.sequence < c.logStart {
			h.Older++
			continue
		}
		h.TableEvents++
		h.TableChecksum += Checksum(e.hash)
		if !state.isLogged {
			h.Extra++
			extras[e.hour] = append(extras[e.hour], e.hash)
		}
	}
	return duplicates, extras
}

// listIDs adds the event_ids of the first few hashes of each hour to a list of the hour.
func (c *eventComparison) listIDs(
	ctx context.Context, hashes map[int64][]uint64, list func(*Hour) *[]string,
) error {
	for hour, all := range hashes {
		slices.Sort(all)
		var numbers []string
		for _, n := range all[:min(len(all), maxListed)] {
			numbers = append(numbers, fmt.Sprint(n))
		}
		ids, err := values[string](ctx, c.database, fmt.Sprintf("SELECT DISTINCT event_id FROM %s "+
			"WHERE %s AND halfMD5(event_id) IN (%s) ORDER BY event_id",
			c.table.name, hourRange{hour, hour + 1}.condition("at"), strings.Join(numbers, ",")))
		if err != nil {
			return err
		}
		appendLimited(list(c.hours[hour]), ids...)
	}
	return nil
}
