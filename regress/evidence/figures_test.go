package evidence_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"courier/regress/evidence"
)

const repetitions = 12

// leftOut are the held-out batch sizes: two in the middle of each dataset.
var leftOut = map[zeusSetting]bool{
	{"cifar100", 64}: true, {"cifar100", 512}: true, {"movielens-1m", 128}: true,
	{"movielens-1m", 1024}: true, {"squad", 16}: true, {"squad", 32}: true,
}

func fitted(t testing.TB, runs []evidence.Run) *evidence.Predictor {
	t.Helper()
	h, err := evidence.Fit(context.Background(), runs, evidence.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := evidence.Compile(h)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func scoresOf(t *testing.T, unseen map[zeusSetting]bool, limit int) *scores {
	t.Helper()
	study, s := readStudy(t), newScores()
	for repetition := range uint64(repetitions) {
		w := newWorld(study, repetition+1, unseen)
		p := fitted(t, w.runs(repetition+1, limit))
		for _, q := range w.questions(repetition + 1) {
			q.answer(p)
			s.add(w, q)
		}
	}
	return s
}

// figureBound is a figure and its required range.
type figureBound struct {
	name           string
	got, low, high float64
}

// check fails for figures outside the ranges required of the benchmark.
func (s *scores) check(t *testing.T, bars ...figureBound) {
	t.Helper()
	shared := []figureBound{
		{"promises kept", s.kept.value(), 0.95, 1},
		{"kept less stated", s.kept.value() - s.stated.value(), -0.015, 0.015},
		{"safe alternatives refused", s.refused.value(), 0, 0.06},
		{"bound coverage", s.held.value(), 0.92, 0.995},
		{"promises below the median", float64(s.belowMedian), 0, 0},
		{"fixed value less the rule's", s.value["fixed"].value() - s.ruleValue["fixed"].value(), -0.003, 1},
		{"fixed regret in points", s.regret["fixed"].value(), 0, 0.4},
		{"accuracy error over that of the mean", s.accuracy.value() / s.past.value(), 0, 1.001},
		{"promised targets reached", s.reached.value(), 0.95, 1},
		{"time error", s.time.value(), 0, 0.022},
	}
	for d := range s.heldBy {
		shared = append(shared, figureBound{"coverage of " + d, s.heldBy[d].value(), 0.85, 1},
			figureBound{"targets reached of " + d, s.reachedBy[d].value(), 0.85, 1})
	}
	for _, b := range append(shared, bars...) {
		if !(b.got >= b.low && b.got <= b.high) {
			t.Errorf("%s: %.4f, want %g to %g", b.name, b.got, b.low, b.high)
		}
	}
}

func TestFigures_MeasuredBatchSizes(t *testing.T) {
	s := scoresOf(t, nil, math.MaxInt)
	s.log(t, "measured")
	s.check(t, figureBound{"free value", s.value["free"].value(), 0.985, 1},
		figureBound{"free regret in points", s.regret["free"].value(), 0, 0.7})
}

func TestFigures_LeftOutBatchSizes(t *testing.T) {
	s := scoresOf(t, leftOut, math.MaxInt)
	s.log(t, "two batch sizes left out")
	s.check(t, figureBound{"free value", s.value["free"].value(), 0.97, 1},
		figureBound{"free regret in points", s.regret["free"].value(), 0, 0.9},
		figureBound{"time error of left-out batch sizes", s.timeUnseen.value(), 0, 0.05},
		figureBound{"coverage of left-out batch sizes", s.heldUnseen.value(), 0.92, 1})
}

// With one or two runs of each batch size promises are rarer, but kept.
func TestFigures_FewRuns(t *testing.T) {
	for _, runs := range []int{1, 2} {
		s := scoresOf(t, nil, runs)
		s.log(t, fmt.Sprintf("%d runs of each", runs))
		for _, b := range []figureBound{{"kept", s.kept.value(), 0.95, 1}, {"coverage", s.held.value(), 0.92, 1},
			{"below the median", float64(s.belowMedian), 0, 0}} {
			if !(b.got >= b.low && b.got <= b.high) {
				t.Errorf("%d runs: %s %.4f, want %g to %g", runs, b.name, b.got, b.low, b.high)
			}
		}
	}
}
