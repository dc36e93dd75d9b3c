package explore

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"

	"courier/schemas"
)

// Kinds of designs. The caller checks that a design is one of them.
const (
	DesignAdaptive   = "adaptive"
	DesignFull       = "full"
	DesignFractional = "fractional"
)

// Factors are the levels of each factor of a study, in the order of the flags.
type Factors struct {
	BatchSizes []int `json:"batch_sizes"`
	CPUs       []int `json:"cpus"`    // of each worker
	Workers    []int `json:"workers"` // of a job
	GPUs       []int `json:"gpus"`    // 0: no GPU
	Jobs       []int `json:"jobs"`    // concurrent jobs
}

// lists returns the levels of the factors in a constant order.
func (f *Factors) lists() [5][]int {
	return [5][]int{f.BatchSizes, f.CPUs, f.Workers, f.GPUs, f.Jobs}
}

// Cell is a combination of levels.
type Cell struct {
	BatchSize int `json:"batch_size"`
	CPUs      int `json:"cpus"`
	Workers   int `json:"workers"`
	GPUs      int `json:"gpus,omitempty"`
	Jobs      int `json:"jobs"`
}

func (c Cell) levels() [5]int { return [5]int{c.BatchSize, c.CPUs, c.Workers, c.GPUs, c.Jobs} }

// processes returns the CPUs of all workers of a job.
func (c Cell) processes() int { return c.CPUs * c.Workers }

// shape returns the workers and the CPUs of each for a table.
func (c Cell) shape() string { return schemas.ShortShape(uint32(c.Workers), uint32(c.CPUs)) }

// Cells returns all combinations in order.
func (f *Factors) Cells() (cells []Cell) {
	for _, batchSize := range f.BatchSizes {
		for _, cpus := range f.CPUs {
			for _, workers := range f.Workers {
				for _, gpus := range f.GPUs {
					for _, jobs := range f.Jobs {
						cells = append(cells, Cell{batchSize, cpus, workers, gpus, jobs})
					}
				}
			}
		}
	}
	return cells
}

// Block is one measurement of a cell.
type Block struct {
	Cell
	Replication int // from 1
}

// ID identifies a block in a study.
func (b Block) ID() string {
	return fmt.Sprintf("r%d-b%d-c%d-w%d-g%d-j%d",
		b.Replication, b.BatchSize, b.CPUs, b.Workers, b.GPUs, b.Jobs)
}

// blocksOf returns the blocks of a design with fixed cells, in random order within each replication.
func (o *Options) blocksOf() ([]Block, error) {
	cells := o.Factors.Cells()
	if o.Design == DesignFractional {
		var err error
		if cells, err = o.Factors.half(); err != nil {
			return nil, err
		}
	}
	var blocks []Block
	for r := 1; r <= o.Replications; r++ {
		order := slices.Clone(cells)
		random := rand.New(rand.NewPCG(o.Seed, uint64(r)))
		random.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		for _, c := range order {
			blocks = append(blocks, Block{Cell: c, Replication: r})
		}
	}
	return blocks, nil
}

// ends returns the lowest and highest level of each factor. The levels are sorted.
func (f *Factors) ends() Factors {
	end := func(levels []int) []int { return slices.Compact([]int{levels[0], levels[len(levels)-1]}) }
	return Factors{end(f.BatchSizes), end(f.CPUs), end(f.Workers), end(f.GPUs), end(f.Jobs)}
}

// half returns the half fraction 2^(k-1) of the factors with two levels. Its generator is the
// product of all of them, so that its resolution is k: with three factors, main effects are
// confounded with interactions of two.
func (f *Factors) half() ([]Cell, error) {
	ends := f.ends()
	varied := 0
	for _, levels := range ends.lists() {
		varied += len(levels) - 1
	}
	if varied < 3 {
		return nil, fmt.Errorf("--design fractional needs three factors with several levels, got %d: "+
			"use --design full", varied)
	}
	var cells []Cell
	for _, c := range ends.Cells() {
		high := 0
		for i, levels := range ends.lists() {
			if len(levels) == 2 && c.levels()[i] == levels[1] {
				high |= 1 << i
			}
		}
		if bits.OnesCount(uint(high))%2 == varied%2 { // the product of the signs is positive
			cells = append(cells, c)
		}
	}
	return cells, nil
}
