package store

import (
	"context"
	"time"

	"courier/bus"
)

// knownSamples detects samples that cannot be in their table yet, so that not every batch needs
// a lookup. A duplicate has the timestamp of its original. Therefore a sample that is later than
// all rows of its node is new.
//
// This holds while this store alone writes the stream. After a gap in the log, where another
// store may have written, knownSamples reads the state of the table again.
type knownSamples struct {
	next   uint64               // first sequence of the next batch
	start  time.Time            // latest row of the table when it was read
	latest map[string]time.Time // by node, of the samples since then
}

// startBatch prepares for a batch, and reads the state of the table if there is a gap.
func (k *knownSamples) startBatch(ctx context.Context, d *Database, b *bus.Batch) error {
	if k.latest != nil && b.First == k.next {
		k.next = b.Last + 1
		return nil
	}
	var rows []struct {
		At        time.Time `ch:"at"`
		Confirmed bool      `ch:"confirmed"`
	}
	query, _ := d.withUnconfirmed("SELECT max(at) AS at FROM node_sample", nil)
	if err := d.Query(ctx, &rows, query); err != nil {
		return err
	}
	*k = knownSamples{next: b.Last + 1, latest: map[string]time.Time{}}
	for _, r := range rows {
		if r.At.After(k.start) {
			k.start = r.At
		}
	}
	return nil
}

// maybeStored returns the rows of g that may be in the table.
func (k *knownSamples) maybeStored(g *tableRows) *tableRows {
	maybe := &tableRows{table: g.table}
	for i := range g.rows {
		r := &g.rows[i]
		if r.at.After(k.latest[r.key]) && r.at.After(k.start) {
			k.latest[r.key] = r.at
			continue
		}
		maybe.append(*r)
	}
	return maybe
}
