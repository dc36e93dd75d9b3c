package schemas_test

import (
	"strings"
	"testing"

	"courier/schemas"
)

func TestShardMap_Validate(t *testing.T) {
	shard := func(weight uint32, macro string, replicas ...string) schemas.Shard {
		return schemas.Shard{Weight: weight, Macro: macro, Replicas: replicas}
	}
	for _, test := range []struct {
		name   string
		shards []schemas.Shard
		want   string // part of the error; "" for none
	}{
		{"one server each", []schemas.Shard{shard(1, "", "a:1"), shard(2, "", "b:1")}, ""},
		{"replicas", []schemas.Shard{shard(1, "1", "a:1", "b:1"), shard(1, "2", "c:1", "d:1")}, ""},
		{"none", nil, "no shards"},
		{"no weight", []schemas.Shard{shard(0, "", "a:1")}, "weight 0"},
		{"no server", []schemas.Shard{shard(1, "")}, "0 replicas"},
		{"replicas without a macro", []schemas.Shard{shard(1, "", "a:1", "b:1")}, "macro shard"},
		{"two shards with a macro", []schemas.Shard{
			shard(1, "1", "a:1", "b:1"), shard(1, "1", "c:1", "d:1"),
		}, "macro shard"},
		{"a server in two shards", []schemas.Shard{
			shard(1, "", "a:1"), shard(1, "", "a:1"),
		}, "a:1 is listed twice"},
		{"a server twice in a shard", []schemas.Shard{
			shard(1, "1", "a:1", "a:1"),
		}, "a:1 is listed twice"},
	} {
		m := schemas.ShardMap{Version: 1, Shards: test.shards}
		err := m.Validate()
		switch {
		case test.want == "" && err == nil:
		case err == nil, test.want == "", !strings.Contains(err.Error(), test.want):
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
	}
}
