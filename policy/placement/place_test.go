package placement_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"courier/policy/placement"
)

func node(cpuRatio float64, remaining ...float64) placement.Node {
	n := placement.Node{CPURatio: cpuRatio}
	for _, seconds := range remaining {
		n.Jobs = append(n.Jobs, placement.Job{RemainingSeconds: seconds})
	}
	return n
}

func TestPlace_ChoosesTheLeastRemainingWorkTimesCrowd(t *testing.T) {
	unknown := math.NaN()
	for _, test := range []struct {
		name  string
		nodes []placement.Node
		want  int
	}{
		{"no node", nil, -1},
		{"an empty node", []placement.Node{node(0.5, 10), node(0)}, 1},
		{"the first of equal nodes", []placement.Node{node(0), node(0)}, 0},
		{"one long job beside three short ones", []placement.Node{node(0.5, 100), node(0.5, 10, 10, 10)}, 1},
		{"the crowd counts", []placement.Node{node(0.5, 10, 10, 10), node(0.5, 40)}, 1},
		{"seconds are rounded up", []placement.Node{node(0.5, 1.1), node(0.5, 1.9)}, 0},
		{"a part of a second counts", []placement.Node{node(0.5, 2.1), node(0.5, 2)}, 1},
		{"a busy node is left out", []placement.Node{node(0.91, 10), node(0.9, 100)}, 1},
		{"all nodes are busy", []placement.Node{node(0.95, 100), node(1, 10)}, 1},
		{"an unknown time is long", []placement.Node{node(0.5, unknown), node(0.5, 1e6)}, 1},
		{"two unknown times", []placement.Node{node(0.5, unknown, 1), node(0.5, unknown)}, 1},
		{"a late job is short", []placement.Node{node(0.5, 1), node(0.5, -5)}, 1},
	} {
		if got := placement.Place(test.nodes, placement.PlaceOptions{}); got != test.want {
			t.Errorf("%s: node %d, want %d", test.name, got, test.want)
		}
	}
}

func TestPlace_LeavesOutNodesAboveAlpha(t *testing.T) {
	nodes := []placement.Node{node(0.6, 10), node(0.4, 100)}
	if got := placement.Place(nodes, placement.PlaceOptions{MaxCPURatio: 0.5}); got != 1 {
		t.Errorf("node %d, want the one below the limit", got)
	}
}

// randomNodes returns nodes with up to six jobs; some remaining times are extreme.
func randomNodes(random *rand.Rand) []placement.Node {
	nodes := make([]placement.Node, 1+random.IntN(6))
	for i := range nodes {
		var remaining []float64
		for range random.IntN(7) {
			seconds := 200 * random.Float64()
			if random.IntN(20) == 0 {
				seconds = []float64{math.NaN(), math.Inf(1), -1, 0, 1e300}[random.IntN(5)]
			}
			remaining = append(remaining, seconds)
		}
		nodes[i] = node(1.1*random.Float64(), remaining...)
	}
	return nodes
}

// The order of nodes with different scores does not matter, an empty idle node always wins, and a job
// more never makes a node more attractive.
func TestPlace_KeepsItsPropertiesOnRandomNodes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		nodes := randomNodes(random)
		got := placement.Place(nodes, placement.PlaceOptions{})
		if got < 0 || got >= len(nodes) {
			t.Fatalf("node %d of %d", got, len(nodes))
		}

		reversed := slices.Clone(nodes)
		slices.Reverse(reversed)
		other := reversed[placement.Place(reversed, placement.PlaceOptions{})]
		chosen := nodes[got]
		if len(other.Jobs) != len(chosen.Jobs) {
			t.Fatalf("%+v is chosen, and %+v in reverse order", chosen, other)
		}

		for i := range nodes {
			if len(nodes[i].Jobs) == 0 && nodes[i].CPURatio <= 0.9 && len(chosen.Jobs) > 0 {
				t.Fatalf("%+v is chosen although %+v is empty", chosen, nodes[i])
			}
			if i != got {
				nodes[i].Jobs = append(slices.Clone(nodes[i].Jobs), placement.Job{RemainingSeconds: 10})
			}
		}
		if again := placement.Place(nodes, placement.PlaceOptions{}); again != got {
			t.Fatalf("node %d, and %d with more jobs on the others", got, again)
		}
	}
}

func TestPlace_DoesNotModifyTheNodes(t *testing.T) {
	nodes := []placement.Node{node(1, 3, 1, 2), node(0.2, 5, 4)}
	placement.Place(nodes, placement.PlaceOptions{})
	if want := []placement.Node{node(1, 3, 1, 2), node(0.2, 5, 4)}; !reflect.DeepEqual(nodes, want) {
		t.Errorf("nodes = %+v, want %+v", nodes, want)
	}
}

// BenchmarkPlace places a job beside 1,000 running ones.
func BenchmarkPlace(b *testing.B) {
	nodes := make([]placement.Node, 100)
	for i := range nodes {
		nodes[i] = node(0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, float64(i))
	}
	for b.Loop() {
		placement.Place(nodes, placement.PlaceOptions{})
	}
}
