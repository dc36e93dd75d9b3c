package evidence_test

import (
	"context"
	"math"
	"testing"

	"courier/regress/evidence"
)

func TestSmallestEpochs_ReachesTheTarget(t *testing.T) {
	runs := []evidence.Run{curveOf("1", 32, 12, 1), curveOf("2", 32, 12, 1), curveOf("3", 32, 12, 1)}
	_, p := fit(t, runs)
	c := configurationOf("a", 32, "x")
	for _, target := range []float64{0.1, 0.5, 0.9, 1} {
		n := p.SmallestEpochs(c, target, 0.9, 60)
		reaches := func(epochs int) bool {
			a := p.Accuracy(c, epochs)
			return a.Reaches(target) >= 0.9
		}
		if n == 0 || !reaches(n) || reaches(n-1) {
			t.Errorf("SmallestEpochs(%g) = %d, want the first epoch that reaches it", target, n)
		}
		if few := p.SmallestEpochs(c, target, 0.9, n-1); few != 0 {
			t.Errorf("SmallestEpochs(%g) = %d with a limit of %d, want 0", target, few, n-1)
		}
	}
	if n := p.SmallestEpochs(c, 1.1, 0.5, 60); n != 0 {
		t.Errorf("%d epochs to an accuracy that was never measured, want 0", n)
	}
}

// curveOf returns a run whose accuracy rises by 0.1 per epoch up to a limit.
func curveOf(id string, batch, epochs int, most float64) evidence.Run {
	r := evidence.Run{ID: id, Configuration: configurationOf("a", batch, "x")}
	for e := 1; e <= epochs; e++ {
		r.Epochs = append(r.Epochs, evidence.EpochRecord{Number: e, Seconds: 1,
			Accuracy: min(math.Round(float64(e))/10, most), HasAccuracy: true})
	}
	return r
}

// A run that ended early has not failed to reach a level; a long one has.
func TestAccuracy_EndedEarlyIsNoFailure(t *testing.T) {
	reaches := func(epochs int, most float64) float64 {
		runs := []evidence.Run{curveOf("1", 32, 10, 1), curveOf("2", 32, 10, 1), curveOf("3", 32, 10, 1),
			curveOf("4", 32, epochs, most), curveOf("5", 32, epochs, most)}
		_, p := fit(t, runs)
		a := p.Accuracy(configurationOf("a", 32, "x"), 12)
		return a.Reaches(0.9)
	}
	if short, long := reaches(3, 1), reaches(20, 0.5); short < 0.9 || long > 0.75 {
		t.Errorf("P(0.9) = %g after two short runs and %g after two long ones, want >= 0.9 and <= 0.75",
			short, long)
	}
}

func TestAccuracy_IsUnknownBeforeTheFirstLevel(t *testing.T) {
	r := evidence.Run{ID: "1", Configuration: configurationOf("a", 32, "x"), Epochs: []evidence.EpochRecord{
		{Number: 10, Accuracy: 0.5, HasAccuracy: true}, {Number: 20, Accuracy: 0.6, HasAccuracy: true}}}
	_, p := fit(t, []evidence.Run{r})
	c := configurationOf("a", 32, "x")
	if a := p.Accuracy(c, 3); a.Known || a.Median != 0 {
		t.Errorf("accuracy after 3 epochs is %+v, want unknown", a)
	}
	if a := p.Accuracy(c, 15); !a.Known || a.Median != 0.5 || a.Beyond {
		t.Errorf("accuracy after 15 epochs is %+v, want 0.5", a)
	}
	if a := p.Accuracy(c, 30); !a.Beyond || a.Reaches(0.7) != 0 {
		t.Errorf("accuracy after 30 epochs is %+v, want one beyond all runs, and no chance of 0.7", a)
	}
}

// With LastEpoch a level counts from the epoch after which a run stays there.
func TestAccuracy_LastEpochCounts(t *testing.T) {
	r := curveOf("1", 32, 10, 1)
	r.Epochs[2].Accuracy = 0.9 // and back to 0.4
	for _, last := range []bool{false, true} {
		h, err := evidence.Fit(context.Background(), []evidence.Run{r}, evidence.Options{LastEpoch: last})
		if err != nil {
			t.Fatal(err)
		}
		p, err := evidence.Compile(h)
		if err != nil {
			t.Fatal(err)
		}
		a := p.Accuracy(configurationOf("a", 32, "x"), 4)
		if got := a.Reaches(0.8) > 0.5; got == last {
			t.Errorf("report at the last epoch only: %v; P(0.8) = %g, want below 0.5 only then",
				last, a.Reaches(0.8))
		}
	}
}

// The interval contains the median and the accuracies of runs with other curves.
func TestAccuracy_IntervalSpansTheRuns(t *testing.T) {
	var runs []evidence.Run
	for i, most := range []float64{0.8, 0.8, 0.8, 0.9, 0.9, 0.7} {
		r := curveOf(string(rune('a'+i)), 32, 12, most)
		runs = append(runs, r)
	}
	_, p := fit(t, runs)
	a := p.Accuracy(configurationOf("a", 32, "x"), 12)
	low, high := a.Interval(0.9)
	if low > 0.7 || high < 0.9 || a.Median < low || a.Median > high {
		t.Errorf("accuracy = %g with the interval %g to %g, want one that includes 0.7 to 0.9",
			a.Median, low, high)
	}
	if narrow, wide := a.Interval(0.2); narrow < low || wide > high {
		t.Errorf("interval at 0.2 = %g to %g, want it within the one at 0.9, %g to %g",
			narrow, wide, low, high)
	}
	if a.ModelRuns != 6 || a.Longest != 12 || a.Highest() != 0.9 {
		t.Errorf("%d runs of up to %d epochs, the highest %g; want 6, 12 and 0.9", a.ModelRuns, a.Longest, a.Highest())
	}
	unknown := p.Accuracy(configurationOf("other", 32, "x"), 12)
	if low, high := unknown.Interval(0.9); low != 0 || high != 0 || unknown.Highest() != 0 {
		t.Errorf("accuracy interval of a model without runs = %g to %g, want none", low, high)
	}
}
