package trainer

import (
	"math"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestCorrectStale_LowersWeights(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	x := func(node string, batch uint32, s int64) Example {
		return Example{
			Model:    "m",
			Nodes:    []string{node},
			Features: schemas.Features{BatchSize: batch, CPUs: 1},
			Weight:   1,
			At:       at(s),
		}
	}
	all := []Example{
		x("a", 4, 1), x("a", 16, 2), x("b", 16, 3), x("b", 64, 4), x("a", 4, 11), x("a", 4, 12),
	}
	weights := func(examples []Example) (w []float64) {
		for _, e := range examples {
			w = append(w, e.Weight)
		}
		return w
	}
	for _, c := range []struct {
		name   string
		drifts []knownDrift
		want   []float64
	}{
		{"no drift", nil, []float64{1, 1, 1, 1, 1, 1}},
		{
			"all: what was measured since is left out, the rest weighs a quarter of what is new",
			[]knownDrift{{DriftScope{Kind: ScopeAll}, at(10), 1.5}},
			[]float64{1. / 6, 1. / 6, 1. / 6, 1, 1},
		},
		{
			"a node: the other's examples are true, and enough beside one",
			[]knownDrift{{DriftScope{ScopeNode, "b"}, at(10), 1.5}}, []float64{1, 1, 1, 1, 1},
		},
		{
			"nothing came since", []knownDrift{{DriftScope{Kind: ScopeAll}, at(20), 1.5}},
			[]float64{1, 1, 1, 1, 1, 1},
		},
	} {
		got := weights(correctStale(all, c.drifts))
		if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b float64) bool {
			return math.Abs(a-b) < 1e-12
		})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestCorrectStale_ScalesTimes(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	x := func(node string, batch uint32, s int64) Example {
		return Example{
			Model:    "m",
			Nodes:    []string{node},
			Features: schemas.Features{BatchSize: batch, CPUs: 1},
			Weight:   1,
			At:       at(s),
			Value:    10,
		}
	}
	all := []Example{x("a", 4, 1), x("b", 16, 2), x("a", 64, 11), x("b", 128, 15), x("a", 256, 21)}
	got := correctStale(all, []knownDrift{{
		DriftScope{Kind: ScopeAll}, at(10), 1.5,
	}, {DriftScope{ScopeNode, "b"}, at(20), 2}})
	want := []float64{15, 30, 10, 20, 10}
	for i := range want {
		if len(got) != len(want) || math.Abs(got[i].Value-want[i]) > 1e-12 || all[i].Value != 10 {
			t.Fatalf("values %+v, want %v", got, want)
		}
	}
}

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
