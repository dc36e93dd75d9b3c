package evidence_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"courier/regress/evidence"
)

// recovery describes how served predictions recover from a drift, run by run.
type recovery struct {
	before  float64   // error of the shifted configurations
	halved  int       // runs until it was half of that
	good    int       // runs until it and that of the others were under 8 %
	last    int       // the last run after which they were not
	held    scoreMean // bounds that one more run would keep
	end     float64   // error after all runs
	factors []evidence.Factor
}

// recover applies a sequence to a state. isShifted selects the configurations whose error is halved.
func (q *sequence) recover(t *testing.T, runs int, isShifted func(zeusSetting) bool) (r recovery) {
	c := &runSimulation{t: t}
	for i := range q.history {
		q.history[i].StartedAt = time.Unix(int64(i), 0).UTC()
		q.history[i].EndedAt = time.Unix(int64(i+1), 0).UTC()
	}
	for n := range runs + 1 {
		if n > 0 {
			q.next(t)
		}
		c.update(q.history)
		var shifted, rest scoreMean
		p, err := evidence.Compile(c.state.Regressor)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range slices.Compact(slices.SortedFunc(slices.Values(q.order), compareSettings)) {
			got := p.Time(configurationOf(k.dataset, k.batch, "v100"), 5)
			of := &rest
			if isShifted(k) {
				of = &shifted
			}
			of.add(math.Abs(got.Median()/(5*q.after(k)) - 1))
			took := 0.0
			for _, s := range draw(q.random, q.after(k), 5) {
				took += s
			}
			if n > 0 {
				r.held.count(took <= got.Quantile(confidence))
			}
		}
		most := shifted.value()
		if rest.n > 0 {
			most = max(most, rest.value())
		}
		switch {
		case n == 0:
			r.before = shifted.value()
		case r.halved == 0 && shifted.value() <= r.before/2:
			r.halved = n
		}
		if n > 0 && r.good == 0 && most < 0.08 {
			r.good = n
		}
		if most >= 0.08 {
			r.last = n
		}
		r.end = most
		r.factors = append(r.factors, c.state.Factors()...)
	}
	return r
}

// After a drift the error of served predictions is halved within twelve runs and below 8 % within 24.
func TestFigures_ServedUnderDrift(t *testing.T) {
	study := readStudy(t)
	all := func(zeusSetting) bool { return true }
	for _, kind := range []struct {
		name    string
		after   func(k zeusSetting) float64
		shifted func(zeusSetting) bool
	}{
		{"large batches at 100 W", func(k zeusSetting) float64 { return study.seconds["v100"][k][100] }, big},
		{"all times 1.45", func(k zeusSetting) float64 { return 1.45 * study.seconds["v100"][k][250] }, all},
	} {
		var halved, good, last []int
		var held, end scoreMean
		for seed := range uint64(6) {
			r := newSequence(t, study, seed, kind.after).recover(t, 60, kind.shifted)
			halved, good, last = append(halved, r.halved), append(good, r.good), append(last, r.last)
			held.sum, held.n = held.sum+r.held.sum, held.n+r.held.n
			end.add(r.end)
		}
		t.Logf("%s: error halved after %v runs, under 8 %% after %v, over it last after %v; "+
			"after 60 runs %.1f %%, coverage %.3f",
			kind.name, halved, good, last, 100*end.value(), held.value())
		never := slices.Min(halved) == 0 || slices.Min(good) == 0
		if never || slices.Max(halved) > 12 || slices.Max(good) > 24 {
			t.Errorf("%s: want it halved within 12 runs and under 8 %% within 24", kind.name)
		}
		if held.value() < 0.92 || end.value() > 0.05 {
			t.Errorf("%s: want a coverage of 0.92, and 5 %% at the end", kind.name)
		}
	}
}

// The interval of a published factor contains the true one.
func TestFigures_IntervalsOfFactors(t *testing.T) {
	study := readStudy(t)
	var held, wide scoreMean
	for seed := range uint64(12) {
		q := newSequence(t, study, seed, func(k zeusSetting) float64 {
			return 1.45 * study.seconds["v100"][k][250]
		})
		for _, f := range q.recover(t, 12, big).factors {
			held.count(f.Low <= 1.45 && 1.45 <= f.High)
			wide.add(f.High/f.Low - 1)
		}
	}
	t.Logf("%.0f intervals hold the factor in %.3f, %.0f %% wide",
		held.n, held.value(), 100*wide.value())
	if held.n < 50 || held.value() < 0.9 || wide.value() > 0.25 {
		t.Error("want 0.9 or more, and at most 25 %")
	}
}
