package explore

import (
	"fmt"
	"slices"
	"testing"
)

func TestBlocksOf_HasTheCellsOfTheDesign(t *testing.T) {
	three := Factors{BatchSizes: []int{8, 32, 128}, CPUs: []int{1, 2}, Jobs: []int{1, 2, 4}}
	for _, c := range []struct {
		design string
		want   int
	}{{DesignFull, 18}, {DesignAdaptive, 18}, {DesignFractional, 4}} {
		o := Options{Factors: three, Design: c.design, Epochs: 1, Command: []string{"x"}}.withDefaults()
		o.Replications = 1
		blocks, err := o.blocksOf()
		if err != nil || len(blocks) != c.want {
			t.Errorf("%s has %d cells, %v; want %d", c.design, len(blocks), err, c.want)
		}
	}
}

// In a half fraction, each factor has as many cells at its low level as at its high one, and so have
// each two factors at equal and at different ends.
func TestHalf_IsBalanced(t *testing.T) {
	f := Factors{
		BatchSizes: []int{8, 128}, CPUs: []int{1, 2}, Workers: []int{1, 4}, GPUs: []int{0, 1}, Jobs: []int{1, 2},
	}
	cells, err := f.half()
	if err != nil || len(cells) != 16 {
		t.Fatalf("half() = %d cells, %v; want 16", len(cells), err)
	}
	sign := func(c Cell, i int) int {
		if c.levels()[i] == f.lists()[i][0] {
			return -1
		}
		return 1
	}
	for i := range len(f.lists()) {
		for k := range i + 1 {
			sum := 0
			for _, c := range cells {
				if i == k {
					sum += sign(c, i)
				} else {
					sum += sign(c, i) * sign(c, k)
				}
			}
			if sum != 0 {
				t.Errorf("factors %d and %d have a sum of signs of %d, want 0", i, k, sum)
			}
		}
	}
}

// Every replication has each cell once, in an order of its own that only the seed determines.
func TestBlocksOf_RandomisesEachReplication(t *testing.T) {
	o := Options{
		Factors: Factors{BatchSizes: []int{1, 2, 4, 8, 16, 32}}, Design: DesignFull, Replications: 3, Seed: 5,
	}.withDefaults()
	blocks, err := o.blocksOf()
	if err != nil {
		t.Fatal(err)
	}
	again, err := o.blocksOf()
	if err != nil || !slices.Equal(blocks, again) {
		t.Errorf("the order differs for one seed: %v", err)
	}
	orders := map[string]bool{}
	for r := range 3 {
		var sizes []int
		for _, b := range blocks[6*r : 6*r+6] {
			if b.Replication != r+1 {
				t.Errorf("block %+v is in replication %d, want %d", b, b.Replication, r+1)
			}
			sizes = append(sizes, b.BatchSize)
		}
		orders[fmt.Sprint(sizes)] = true
		slices.Sort(sizes)
		if !slices.Equal(sizes, o.Factors.BatchSizes) {
			t.Errorf("replication %d has batch sizes %v, want each once", r+1, sizes)
		}
	}
	if len(orders) != 3 {
		t.Errorf("%d different orders, want 3", len(orders))
	}
}
