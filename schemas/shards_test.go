package schemas_test

import (
	"strings"
	"testing"

	"courier/schemas"
)

// shardMaps are the shards of valid and invalid maps.
var shardMaps = []struct {
	name   string
	shards []schemas.Shard
	want   string // in the error; "": valid
}{
	{"none", nil, "no shards"},
	{"one", []schemas.Shard{{1, []string{"a:9000"}, ""}}, ""},
	{"two", []schemas.Shard{{1, []string{"a:9000"}, ""}, {2, []string{"b:9000"}, ""}}, ""},
	{"ports", []schemas.Shard{{1, []string{"a:9000"}, ""}, {1, []string{"a:9001"}, ""}}, ""},
	{
		"replicas",
		[]schemas.Shard{
			{1, []string{"a:9000", "b:9000"}, "1"}, {1, []string{"c:9000", "d:9000"}, "2"},
		},
		"",
	},
	{"weight 0", []schemas.Shard{{0, []string{"a:9000"}, ""}}, "shard 1: weight 0"},
	{"no server", []schemas.Shard{{1, nil, ""}}, "shard 1: weight 1 and 0 replicas"},
	{
		"no macro",
		[]schemas.Shard{{1, []string{"a:9000", "b:9000"}, ""}},
		`shard 1: macro shard is ""`,
	},
	{
		"the same macro",
		[]schemas.Shard{{1, []string{"a:9000", "b:9000"}, "1"}, {1, []string{"c:9000"}, "1"}},
		`shard 2: macro shard is "1"`,
	},
	{
		"a server of two shards",
		[]schemas.Shard{{1, []string{"a:9000"}, "1"}, {1, []string{"a:9000"}, "2"}},
		"shard 2: server a:9000 is listed twice",
	},
	{
		"a replica of two shards",
		[]schemas.Shard{
			{1, []string{"a:9000", "b:9000"}, "1"}, {1, []string{"c:9000", "b:9000"}, "2"},
		},
		"shard 2: server b:9000 is listed twice",
	},
	{
		"a replica twice",
		[]schemas.Shard{{1, []string{"a:9000", "a:9000"}, "1"}},
		"shard 1: server a:9000 is listed twice",
	},
}

func TestShardMap_ValidateRefusesImpossibleShards(t *testing.T) {
	for _, c := range shardMaps {
		err := (&schemas.ShardMap{Shards: c.shards}).Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}
