package store

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mend makes rows of a span anew and returns those that differ even so, and those of the span that
// are busy.
func (u *rolled) mend(
	ctx context.Context, p part, rows []wrongRow,
) (left, busy []wrongRow, err error) {
	const turns = 3
	left = rows
	for turn := 0; turn < turns && len(left) > 0; turn++ {
		const chunk = 1000 // keys of up to 100 bytes; a statement may have 256 KiB
		for some := range slices.Chunk(left, chunk) {
			keys := make(map[string]bool, len(some))
			for _, r := range some {
				keys[r.Key] = true
			}
			err := u.repeatedly(ctx, func() (bool, error) {
				err := u.replace(ctx, p, keys)
				return len(keys) == 0, err
			})
			if err != nil {
				return nil, nil, err
			}
		}
		if left, busy, err = u.wrong(ctx, p); err != nil {
			return nil, nil, err
		}
	}
	return left, busy, nil
}

// replace makes the rows of those keys anew that are at rest, and takes them out of
// keys. A batch that comes meanwhile adds its part beside: the rows that are
// deleted are named by their places on the disk, and what is inserted is made of the
// table up to the position. Dead in between, the next repair finds rows missing.
func (u *rolled) replace(ctx context.Context, p part, keys map[string]bool) error {
	position, err := u.position(ctx)
	if err != nil {
		return err
	}
	places, last, err := u.places(ctx, p, keys)
	if err != nil {
		return err
	}
	moving, err := u.moving(ctx, p, position)
	if err != nil {
		return err
	}
	rest, doomed := make(map[string]bool), []rowPlace(nil)
	for k := range keys {
		if !moving[k] {
			rest[k] = true
			doomed = append(doomed, places[k]...)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	if err := u.database.remove(ctx, u.name, doomed); err != nil {
		return err
	}
	if len(doomed) > 0 { // a merge may have put them elsewhere: those keys wait
		again, _, err := u.places(ctx, p, rest)
		if err != nil {
			return err
		}
		for k, rows := range again {
			if slices.ContainsFunc(rows, func(r rowPlace) bool { return r.First <= last }) {
				delete(rest, k)
			}
		}
	}
	if len(rest) == 0 {
		return nil
	}
	err = u.database.attach(ctx, u.name, "repaired", func(side string) error { // no roll-up of this one may see it
		return u.database.exec(ctx, "rebuild "+u.name, fmt.Sprintf("INSERT INTO %s SELECT * FROM (%s) WHERE %s%s",
			side, u.definition, u.touched(p, rest), u.only(fmt.Sprintf("%s AND sequence <= %d", p.table, position))))
	})
	if err == nil {
		for k := range rest {
			delete(keys, k)
		}
	}
	return err
}

// touched is the condition that a row is of one of the keys.
func (u *rolled) touched(p part, keys map[string]bool) string {
	return fmt.Sprintf("%s AND %s IN (%s)", p.rollUp, u.key, strings.Join(slices.Sorted(maps.Keys(keys)), ", "))
}

// places returns where the roll-up has rows of keys, and the last block among them.
func (u *rolled) places(ctx context.Context, p part, keys map[string]bool) (all map[string][]rowPlace, last uint64, err error) {
	var rows []struct {
		Key string `ch:"name"`
		rowPlace
	}
	err = u.database.Query(ctx, &rows, fmt.Sprintf("SELECT toString(%s) AS name, %s FROM %s WHERE %s", u.key, placeSQL, u.name, u.touched(p, keys)))
	all = make(map[string][]rowPlace)
	for _, r := range rows {
		all[r.Key] = append(all[r.Key], r.rowPlace)
		last = max(last, r.Last)
	}
	return all, last, err
}
