package store

import (
	"context"
	"fmt"
	"strconv"
)

// readTTLs returns the TTL of each table that Reshard copies; "" if the table keeps its rows
// forever.
func (d *Database) readTTLs(ctx context.Context) (map[string]string, error) {
	var names []string
	for _, t := range copiedTables() {
		names = append(names, t.name)
	}
	var found []struct {
		Name string `ch:"name"`
		Full string `ch:"engine_full"`
	}
	err := d.Query(ctx, &found, "SELECT name, engine_full FROM system.tables "+
		"WHERE database = currentDatabase() AND has(?, name)", names)
	if err != nil {
		return nil, fmt.Errorf("read the retention: %w", err)
	}
	ttls := make(map[string]string)
	for _, t := range found {
		ttls[t.Name] = ""
		if m := ttlClause.FindStringSubmatch(t.Full); m != nil {
			ttls[t.Name] = m[1]
		}
	}
	return ttls, nil
}

// longestTTLs returns the TTL of each table. If it differs between the shards, for example because
// a change of the retention was interrupted, no shard may lose rows that it keeps now.
func longestTTLs(ctx context.Context, shards []*Database) (map[string]string, error) {
	longest := make(map[string]string)
	for _, d := range shards {
		ttls, err := d.readTTLs(ctx)
		if err != nil {
			return nil, err
		}
		for name, ttl := range ttls {
			if other, isKnown := longest[name]; isKnown {
				ttl = longerTTL(other, ttl)
			}
			longest[name] = ttl
		}
	}
	return longest, nil
}

// longerTTL returns the TTL that keeps rows longer, and "", which keeps them forever, if it cannot
// compare them.
func longerTTL(a, b string) string {
	daysOfA, daysOfB := ttlDays(a), ttlDays(b)
	switch {
	case a == b:
		return a
	case daysOfA == 0 || daysOfB == 0:
		return ""
	case daysOfA < daysOfB:
		return b
	}
	return a
}

// intervalDays are the units in which a TTL can be compared, in days.
var intervalDays = map[string]int{"Day": 1, "Week": 7, "Month": 30, "Year": 365}

// ttlDays returns the approximate days of a TTL, and 0 if it does not consist of one interval.
func ttlDays(ttl string) int {
	all := ttlInterval.FindAllStringSubmatch(ttl, -1)
	if len(all) != 1 {
		return 0
	}
	n, err := strconv.Atoi(all[0][2])
	if err != nil {
		return 0
	}
	return n * intervalDays[all[0][1]]
}

// setTTLs changes the TTLs of empty tables.
func (d *Database) setTTLs(ctx context.Context, wanted map[string]string) error {
	current, err := d.readTTLs(ctx)
	if err != nil {
		return err
	}
	for name, ttl := range wanted {
		if current[name] == ttl {
			continue
		}
		statement := "ALTER TABLE " + name + " REMOVE TTL"
		if ttl != "" {
			statement = "ALTER TABLE " + name + " MODIFY TTL " + ttl
		}
		if err := d.migrateStatement(ctx, statement); err != nil {
			return fmt.Errorf("set the retention of %s: %w", name, err)
		}
	}
	return nil
}
