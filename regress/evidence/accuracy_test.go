package evidence_test

import (
	"math"
	"slices"
	"testing"

	"courier/regress/evidence"
)

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
		return p.Reaches(configurationOf("a", 32, "x"), 0.9, 12)
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
	if a := p.Accuracy(c, 3); a.Known || a.Mean != 0 {
		t.Errorf("accuracy after 3 epochs is %+v, want unknown", a)
	}
	if a := p.Accuracy(c, 15); !a.Known || a.Mean != 0.5 {
		t.Errorf("accuracy after 15 epochs is %+v, want 0.5", a)
	}
	if a := p.Accuracy(c, 30); a.Mean != 0.6 || p.Reaches(c, 0.7, 30) != 0 {
		t.Errorf("accuracy after 30 epochs is %+v, want the last one, 0.6, and no chance of 0.7", a)
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
	if low > 0.7 || high < 0.9 || a.Mean < low || a.Mean > high {
		t.Errorf("accuracy = %g with the interval %g to %g, want one that includes 0.7 to 0.9",
			a.Mean, low, high)
	}
	if narrow, wide := a.Interval(0.2); narrow < low || wide > high {
		t.Errorf("interval at 0.2 = %g to %g, want it within the one at 0.9, %g to %g",
			narrow, wide, low, high)
	}
	if a.ModelRuns != 6 || a.Longest != 12 || a.Highest != 0.9 {
		t.Errorf("%d runs of up to %d epochs, the highest %g; want 6, 12 and 0.9", a.ModelRuns, a.Longest, a.Highest)
	}
	unknown := p.Accuracy(configurationOf("other", 32, "x"), 12)
	if low, high := unknown.Interval(0.9); low != 0 || high != 0 || unknown.Highest != 0 {
		t.Errorf("accuracy interval of a model without runs = %g to %g, want none", low, high)
	}
}

// The displayed accuracy is the mean of the runs that lasted as long.
func TestAccuracy_IsTheMeanOfTheRuns(t *testing.T) {
	var runs []evidence.Run
	sum := 0.0
	for i := range 13 {
		r := curveOf(string(rune('a'+i)), 32, 12, 0.8+float64(i)/100)
		sum += r.Epochs[11].Accuracy / 13
		runs = append(runs, r)
	}
	runs = append(runs, curveOf("short", 32, 5, 0.4))
	_, p := fit(t, runs)
	a := p.Accuracy(configurationOf("a", 32, "x"), 12)
	if math.Abs(a.Mean-sum) > 1e-9 {
		t.Errorf("accuracy of 13 runs is %g, want their mean %g", a.Mean, sum)
	}
}

// After the end of its runs, the accuracy of a batch size continues as that of longer runs with another one,
// so that those of few epochs do not lose because they were short.
func TestAccuracy_ContinuesAsThatOfLongerRuns(t *testing.T) {
	_, p := fit(t, []evidence.Run{curveOf("1", 16, 4, 1), curveOf("2", 32, 8, 1), curveOf("3", 64, 4, 0.3)})
	want := map[int]float64{16: 0.8, 32: 0.8, 64: 0.8 - 0.1/2}
	for batch, mean := range want {
		a := p.Accuracy(configurationOf("a", batch, "x"), 12)
		low, high := a.Interval(0.8)
		if math.Abs(a.Mean-mean) > 1e-9 || low > mean-0.02 && batch != 32 || high < mean {
			t.Errorf("batch size %d has accuracy %g from %g to %g, want %g", batch, a.Mean, low, high, mean)
		}
	}
}

// Runs that stop at their own target are no failures of a higher one, and a target is reached with
// a probability that agrees with the displayed accuracy.
func TestReaches_AgreesWithTheDisplayedAccuracy(t *testing.T) {
	var runs []evidence.Run
	for i := range 6 {
		runs = append(runs, curveOf(string(rune('a'+i)), 32, 8, 1))
	}
	_, p := fit(t, runs)
	c := configurationOf("a", 32, "x")
	if got := p.Passage(c, 0.8).Reach; got < 0.98 {
		t.Errorf("six runs that stopped at 0.8 reach it with %g, want 0.98 or more", got)
	}
	if x := p.Passage(c, 0.9); x.Known() || x.Promisable {
		t.Errorf("a target above all runs has the passage %+v, want none", x)
	}
	for epochs := 1; epochs <= 8; epochs++ {
		a := p.Accuracy(c, epochs)
		below, above := p.Reaches(c, a.Mean-1e-6, epochs), p.Reaches(c, a.Mean+1e-6, epochs)
		if below < 0.5 || above > 0.5 {
			t.Errorf("%d epochs: P(just below the accuracy) = %g and P(just above) = %g, want 0.5 between",
				epochs, below, above)
		}
	}
}

// In the Zeus study, longer runs of one batch size tell more about the accuracies of others than their last ones,
// and which of them is best.
func TestAccuracy_ShortRunsOfZeus(t *testing.T) {
	s := readStudy(t)
	w := newWorld(s, 1, nil)
	var of [2]struct{ errors, held, regret, n float64 } // of the prediction, and of the last accuracy
	for _, d := range s.datasets {
		low, epochs := w.known(d)
		short := max(low, epochs/4)
		for _, long := range s.batches[d] {
			var runs []evidence.Run
			for _, b := range s.batches[d] {
				for _, r := range w.history[zeusSetting{d, b}] {
					run := runOf(r, "v100", slices.Repeat([]float64{1}, epochs))
					if b != long {
						run.Epochs = run.Epochs[:short]
					}
					runs = append(runs, run)
				}
			}
			_, p := fit(t, runs)
			for i, until := range []int{epochs, short} {
				best, most, chosen := 0.0, 0.0, 0.0
				for _, b := range s.batches[d] {
					truth := w.accuracy(d, b, epochs)
					a := p.Accuracy(configurationOf(d, b, "v100"), until)
					if low, high := a.Interval(0.9); b == long {
						a = p.Accuracy(configurationOf(d, b, "v100"), epochs)
					} else {
						of[i].errors, of[i].n = of[i].errors+math.Abs(a.Mean-truth), of[i].n+1
						if low <= truth && truth <= high {
							of[i].held++
						}
					}
					if best = max(best, truth); a.Mean > most {
						most, chosen = a.Mean, truth
					}
				}
				of[i].regret += best - chosen
			}
		}
	}
	t.Logf("mean error %.4f, %.4f by the last accuracy; interval of 0.9 held %.3f; sum of regrets %.4f, %.4f",
		of[0].errors/of[0].n, of[1].errors/of[1].n, of[0].held/of[0].n, of[0].regret, of[1].regret)
	if of[0].errors > of[1].errors/2 || of[0].held < 0.9*of[0].n || of[0].regret > of[1].regret/2 {
		t.Error("want at most half of the error and of the regret by the last accuracy, and intervals that hold 0.9")
	}
}
