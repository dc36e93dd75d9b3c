package store

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"courier/schemas"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/go-cmp/cmp"
)

// A repeated batch inserts the rows that are missing; a new batch inserts its own stored rows again,
// for which ClickHouse knows the token. Neither inserts a duplicate of an earlier row.
func TestTableRows_LeavesOutDuplicates(t *testing.T) {
	t.Parallel()
	stored := []storedRow{
		{EventID: "stored", Sequence: 1},
		{EventID: "duplicate", Sequence: 1},
	}
	g := &tableRows{}
	for i, id := range []string{"stored", "duplicate", "new"} {
		g.append(eventRow{id: id, sequence: uint64(i + 1), row: id})
	}

	missing := rowValues(g.missing(stored))
	if diff := cmp.Diff([]any{"new"}, missing); diff != "" {
		t.Errorf("missing rows (-want +got):\n%s", diff)
	}
	rows := g.withoutDuplicates(stored)
	if diff := cmp.Diff([]any{"stored", "new"}, rows); diff != "" {
		t.Errorf("rows of a new batch (-want +got):\n%s", diff)
	}
}

// The shard of a key depends on nothing but the key and the weights.
func TestShard_OwnsSubjects(t *testing.T) {
	m := &schemas.ShardMap{Shards: []schemas.Shard{{Weight: 1}, {Weight: 1}}}
	for subject, owner := range map[string]int{
		"node.node-0.sample":          1,
		"node.node-1.sample":          0,
		"job.node-1.started":          0,
		"regressor.node-0.trained":    1,
		"node.node-1":                 0,
		"node.node-6.sample.trailing": 0,
	} {
		for i := range m.Shards {
			s := &shard{shards: m, index: i}
			if got := s.owns(subject); got != (i == owner) {
				t.Errorf("shard %d owns %s: %v, want shard %d to own it", i, subject, got, owner)
			}
		}
	}
	if !(*shard)(nil).owns("node.any.sample") {
		t.Error("a single server does not own a node")
	}
}

// The texts are those of ClickHouse 26.7 after a full disk.
func TestUnreadableTable(t *testing.T) {
	const part = "Empty marks file '/store/cda/202611_1_17_5/data.cmrk4': 0, must be: 3560: (while reading " +
		"from part /store/cda/202611_1_17_5/ in table courier.node_sample " +
		"(cdafba22-cc67-495a-b2e6-64d622807393) located on disk default of type local, from mark 0 with " +
		"max_rows_to_read = 25, offset = 0): While executing MergeTreeSelect"
	for _, c := range []struct {
		what string
		err  error
		want string
	}{
		{"a part", &clickhouse.Exception{Code: 246, Message: part}, "node_sample"},
		{
			"a part, in a mutation",
			&clickhouse.Exception{
				Code: 341,
				Message: "Exception happened during execution of mutations 'mutation_707.txt' with part " +
					"'all_1_702_164_700' reason: 'Code: 246. DB::Exception: " + part + " (CORRUPTED_DATA)'",
			},
			"node_sample",
		},
		{
			"another mutation",
			&clickhouse.Exception{
				Code: 341,
				Message: "Exception happened reason: 'Code: 243. DB::Exception: Cannot reserve 1.00 MiB in " +
					"table courier.job_run (x)'",
			},
			"",
		},
		{
			"a full disk",
			&clickhouse.Exception{Code: 243, Message: "Cannot reserve 1.00 MiB, not enough space"},
			"",
		},
		{"no table named", &clickhouse.Exception{Code: 246, Message: "corrupted"}, ""},
		{"not an error of the server", errors.New(part), ""},
		{"nothing", nil, ""},
	} {
		err := c.err
		if err != nil {
			err = fmt.Errorf("lookup: %w", err)
		}
		if got := unreadableTable(err); got != c.want {
			t.Errorf("%s: unreadableTable() = %q, want %q", c.what, got, c.want)
		}
	}
}

// Windows cover the range without overlap and respect the row limit, which a single hour may exceed.
func TestDivide(t *testing.T) {
	tests := []struct {
		name string
		life hourRange
		rows map[int64]uint64
		want []hourRange
	}{
		{"no rows", hourRange{5, 9}, nil, []hourRange{{5, 9}}},
		{"all fit", hourRange{0, math.MaxInt64}, map[int64]uint64{7: 4, 8: 6}, []hourRange{{0, math.MaxInt64}}},
		{"two windows", hourRange{0, 20}, map[int64]uint64{7: 4, 8: 6, 10: 1}, []hourRange{{0, 10}, {10, 20}}},
		{"a full hour", hourRange{0, 20}, map[int64]uint64{7: 4, 8: 25, 9: 3}, []hourRange{{0, 8}, {8, 9}, {9, 20}}},
		{"only full hours", hourRange{8, 10}, map[int64]uint64{8: 11, 9: 30}, []hourRange{{8, 9}, {9, 10}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, divide(test.life, test.rows, 10),
				cmp.AllowUnexported(hourRange{})); diff != "" {
				t.Errorf("divide(%v) (-want +got):\n%s", test.rows, diff)
			}
		})
	}
}
