package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"
)

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
