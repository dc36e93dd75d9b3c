package trainer

import (
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestChanges_Between(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0).UTC() }
	k := newChangeLog()
	sample := func(node string, cores uint32, s int64, news bool) {
		k.sample(&schemas.Sample{Stamp: schemas.Stamp{At: at(s)}, Node: node, Cores: cores}, news)
	}
	sample("a", 8, 0, false)
	k.job(&schemas.Setting{Model: "m", Nodes: []string{"a"}}, 8, at(1))
	sample("b", 4, 1000, true)
	sample("a", 2, 1010, true)
	k.job(&schemas.Setting{Model: "new", Nodes: []string{"a", "b"}}, 2, at(1020))
	for _, c := range []struct {
		name        string
		from, until int64
		want        []string
	}{
		{"before anything", -500, -400, nil},
		{"at first", 0, 10, []string{"first job of model m"}},
		{
			"while all are heard", 1000, 1030,
			[]string{
				"node b joined", "node a came back after 16m50s",
				"node a has 2 cores instead of 8", "first job of model new",
			},
		},
		{
			"when one has fallen silent", 1068, 1200,
			[]string{
				"node a came back after 16m50s", "node a has 2 cores instead of 8",
				"first job of model new", "node a has been silent since 1970-01-01T00:16:50Z",
			},
		},
	} {
		got := k.between(at(c.from), at(c.until))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
