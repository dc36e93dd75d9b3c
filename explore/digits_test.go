package explore_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"courier/explore"
)

// The runs in testdata/digits were measured with
//
//	courier explore --design full --replications 5 --epochs 3 --cpus 1,2 --model digits-mlp \
//	  --batch-sizes 4,8,16,32,64,128 -- courier workload digits --batch-size {batch} \
//	  --cpus {cpus} --epochs {epochs} --seed {replication}
//
// on an idle machine with two cores.
const digitsReplications = 5

var digitsSLOs = []time.Duration{850 * time.Millisecond, 650 * time.Millisecond, 535 * time.Millisecond}

func digitsOptions(design string, seed uint64) explore.Options {
	return explore.Options{
		Model:   "digits-mlp",
		Command: []string{"digits"},
		Factors: explore.Factors{
			BatchSizes: []int{4, 8, 16, 32, 64, 128}, CPUs: []int{1, 2},
		},
		Design:       design,
		Epochs:       3,
		Replications: digitsReplications,
		Cores:        2,
		SLOs:         digitsSLOs,
		Seed:         seed,
	}
}

// replayed returns a function that measures blocks by the stored runs. The seed chooses which
// stored replication stands for which.
func replayed(t *testing.T, seed uint64) func(context.Context, explore.Block) ([]explore.MeasuredRun, error) {
	t.Helper()
	stored, err := explore.ReadRecords(filepath.Join("testdata", "digits"))
	if err != nil {
		t.Fatal(err)
	}
	byBlock := map[string]explore.MeasuredRun{}
	for _, r := range stored {
		byBlock[r.Block.ID()] = r
	}
	order := rand.New(rand.NewPCG(seed, 7)).Perm(digitsReplications)
	return func(_ context.Context, b explore.Block) ([]explore.MeasuredRun, error) {
		source := b
		source.Replication = order[b.Replication-1] + 1
		r, found := byBlock[source.ID()]
		if !found {
			t.Fatalf("there is no stored run %s", source.ID())
		}
		r.Block = b
		return []explore.MeasuredRun{r}, nil
	}
}

// chosen returns the advised batch size for each SLO.
func chosen(r *explore.Findings) [3]int {
	var all [3]int
	for i, a := range r.Advice {
		all[i] = a.Chosen.BatchSize
	}
	return all
}

// The adaptive design finds the batch sizes of the full design for three SLOs with at most 60 % of
// its runs more often than as many runs in random order. With fewer runs the bounds are wider: where it
// does not find one, it advises a larger batch size, which is faster.
func TestStudy_FindsTheBestBatchSizesWithFewerRuns(t *testing.T) {
	measure := func(design string, seed uint64, runs int) *explore.Findings {
		study, err := explore.Open(t.TempDir(), digitsOptions(design, seed))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		replay, n := replayed(t, seed), 0
		var result *explore.Findings
		result, err = study.Run(ctx, func(ctx context.Context, b explore.Block) ([]explore.MeasuredRun, error) {
			if n++; n > runs {
				cancel()
			}
			return replay(ctx, b)
		}, nil)
		if result == nil { // cancelled: the advice of the runs so far
			if result, err = study.Advice(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err != nil && runs == 60 {
			t.Fatal(err)
		}
		return result
	}

	best := chosen(measure(explore.DesignFull, 1, 60))
	finds, randomFinds, most := 0, 0, 0
	for seed := range uint64(20) {
		r := measure(explore.DesignAdaptive, seed+1, 60)
		most = max(most, r.Runs)
		got := chosen(r)
		if got == best {
			finds++
		}
		for i := range got {
			if got[i] < best[i] || r.Runs*100 > 60*r.Design {
				t.Errorf("seed %d: batch sizes %v with %d of %d runs, want %v or larger ones with at most 60 %%",
					seed+1, got, r.Runs, r.Design, best)
			}
		}
		if chosen(measure(explore.DesignFull, seed+1, r.Runs)) == best {
			randomFinds++
		}
	}
	t.Logf("batch sizes %v; at most %d of 60 runs; found in %d of 20 seeds, in random order in %d",
		best, most, finds, randomFinds)
	if finds <= randomFinds {
		t.Errorf("found in %d of 20 seeds, in random order in %d; want more", finds, randomFinds)
	}
}
