package evidence_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/regress/evidence"
)

// shifted are the batch sizes with runs after the history.
var shifted = map[string][]int{"cifar100": {128, 256, 512, 1024, 2048, 4096},
	"movielens-1m": {512, 1024, 2048, 4096, 8192, 16384}}

// sequence is a history, followed by 138 runs under other conditions.
type sequence struct {
	predictor *evidence.Predictor
	history   []evidence.Run
	order     []zeusSetting
	after     func(k zeusSetting) float64 // mean seconds per epoch
	random    *rand.Rand
	drift     evidence.DriftState
	runs      int
}

func newSequence(t testing.TB, s *study, seed uint64, after func(k zeusSetting) float64) *sequence {
	q := &sequence{after: after, random: rand.New(rand.NewPCG(seed, 13))}
	var runs []evidence.Run
	for _, d := range []string{"cifar100", "movielens-1m"} {
		for _, b := range shifted[d] {
			k := zeusSetting{d, b}
			for _, r := range s.trainings[k][:4] {
				runs = append(runs, runOf(r, "v100", draw(q.random, s.seconds["v100"][k][250], 5)))
			}
			for range 12 {
				q.order = append(q.order, k)
			}
		}
	}
	q.random.Shuffle(len(q.order), func(i, j int) { q.order[i], q.order[j] = q.order[j], q.order[i] })
	q.order = q.order[:138]
	q.predictor, q.history = fitted(t, runs), runs
	return q
}

func compareSettings(a, b zeusSetting) int {
	return cmp.Or(cmp.Compare(a.dataset, b.dataset), cmp.Compare(a.batch, b.batch))
}

// next applies the next run.
func (q *sequence) next(t testing.TB) {
	t.Helper()
	k := q.order[q.runs]
	run := evidence.Run{Configuration: configurationOf(k.dataset, k.batch, "v100"),
		StartedAt: time.Unix(int64(1000+q.runs), 0).UTC(),
		EndedAt:   time.Unix(int64(1001+q.runs), 0).UTC()}
	for i, x := range draw(q.random, q.after(k), 5) {
		run.Epochs = append(run.Epochs, evidence.EpochRecord{Number: i + 1, Seconds: x})
	}
	q.runs++
	run.ID = fmt.Sprint("news", q.runs)
	q.history = append(q.history, run)
	r, ok := q.predictor.Residual(&run)
	if !ok {
		t.Fatalf("%v has no residual", k)
	}
	q.drift = q.drift.Add(r)
}

func (q *sequence) corrections(t testing.TB) *evidence.Corrections {
	t.Helper()
	return q.drift.Corrections()
}

// errors returns the errors of the corrected medians, of the affected batch sizes and of the
// others, and the number of bounds that cover another run.
func (q *sequence) errors(t testing.TB, affected func(zeusSetting) bool) (slow, rest, held scoreMean) {
	t.Helper()
	by := q.corrections(t)
	for d, batches := range shifted {
		for _, b := range batches {
			k := zeusSetting{d, b}
			got := q.predictor.CorrectedTime(by, configurationOf(d, b, "v100"), 5)
			off := math.Abs(got.Median()/(5*q.after(k)) - 1)
			if affected(k) {
				slow.add(off)
			} else {
				rest.add(off)
			}
			took := 0.0
			for _, x := range draw(q.random, q.after(k), 5) {
				took += x
			}
			held.count(took <= got.Quantile(confidence))
		}
	}
	return slow, rest, held
}

func big(k zeusSetting) bool { return k.dataset == "cifar100" && k.batch >= 512 }

// A power limit slows large batches of one model by a factor of 1.2 to 1.5.
func TestFigures_PartialDrift(t *testing.T) {
	study := readStudy(t)
	var firstFactor, firstGood []int
	var slowAt30, restAt30, held, atFive, before scoreMean
	settled := 0
	for seed := range uint64(20) {
		q := newSequence(t, study, seed, func(k zeusSetting) float64 { return study.seconds["v100"][k][100] })
		slow, _, _ := q.errors(t, big)
		before.add(slow.value())
		found, good, last := 0, 0, 0
		for range q.order {
			q.next(t)
			slow, rest, holds := q.errors(t, big)
			if found == 0 && len(q.corrections(t).Factors()) > 0 {
				found = q.runs
			}
			if all := max(slow.value(), rest.value()); all < 0.08 && good == 0 {
				good = q.runs
			} else if all >= 0.08 {
				last = q.runs
			}
			if q.runs == found+5 {
				atFive.add(slow.value())
			}
			if q.runs == 30 {
				slowAt30.add(slow.value())
				restAt30.add(rest.value())
			}
			held.sum, held.n = held.sum+holds.sum, held.n+holds.n
		}
		if last < 36 {
			settled++
		}
		firstFactor, firstGood = append(firstFactor, found), append(firstGood, good)
	}
	slices.Sort(firstFactor)
	slices.Sort(firstGood)
	t.Logf("first factor after %v runs", firstFactor)
	t.Logf("error first under 8 %% after %v runs, for good within 36 in %d of 20", firstGood, settled)
	t.Logf("error before %.1f %%, five runs after the first factor %.1f %%",
		100*before.value(), 100*atFive.value())
	t.Logf("error at 30 runs %.1f %%, of other batch sizes %.1f %%; coverage %.3f",
		100*slowAt30.value(), 100*restAt30.value(), held.value())
	if atFive.value() > before.value()/2 || firstGood[len(firstGood)-1] > 36 {
		t.Error("want the error halved within five runs, and under 8 % within 36")
	}
	if slowAt30.value() > 0.05 || held.value() < 0.9 {
		t.Error("want an error of at most 5 % after 30 runs, and a coverage of 0.9 or more")
	}
}

// Refits every twelve runs learn from adjusted runs and replace the corrections.
func TestFigures_PartialDriftWithRefits(t *testing.T) {
	study := readStudy(t)
	var slow, rest, held scoreMean
	promisable := true
	for seed := range uint64(10) {
		q := newSequence(t, study, seed, func(k zeusSetting) float64 { return study.seconds["v100"][k][100] })
		for range q.order {
			q.next(t)
			if q.runs%12 == 0 {
				adjusted := q.drift.Adjust(q.predictor, q.history)
				q.predictor, q.drift = fitted(t, adjusted), q.drift.Refitted()
			}
			if q.runs < 36 {
				continue
			}
			s, r, h := q.errors(t, big)
			slow.sum, slow.n = slow.sum+s.sum, slow.n+s.n
			rest.sum, rest.n = rest.sum+r.sum, rest.n+r.n
			held.sum, held.n = held.sum+h.sum, held.n+h.n
		}
		for d, batches := range shifted {
			for _, b := range batches {
				got := q.predictor.Time(configurationOf(d, b, "v100"), 5)
				promisable = promisable && got.Support == evidence.Measured
			}
		}
	}
	t.Logf("from run 36 on: error %.1f %%, of other batch sizes %.1f %%, coverage %.3f",
		100*slow.value(), 100*rest.value(), held.value())
	if slow.value() > 0.05 || rest.value() > 0.05 || held.value() < 0.9 || !promisable {
		t.Error("want errors of at most 5 %, a coverage of 0.9, and all configurations measured")
	}
}

// A uniform slowdown is corrected after two runs of two models; without a change alarms are rare.
func TestFigures_UniformDriftAndNone(t *testing.T) {
	study := readStudy(t)
	nobody := func(zeusSetting) bool { return false }
	var uniform scoreMean
	var firsts []int
	alarms := 0
	for seed := range uint64(40) {
		q := newSequence(t, study, seed, func(k zeusSetting) float64 { return study.seconds["v100"][k][250] })
		for range q.order {
			q.next(t)
			if len(q.corrections(t).Factors()) > 0 {
				alarms++
				break
			}
		}
		if seed >= 20 {
			continue
		}
		q = newSequence(t, study, seed, func(k zeusSetting) float64 {
			return 1.45 * study.seconds["v100"][k][250]
		})
		first := 0
		for range q.order[:20] {
			q.next(t)
			if _, all, _ := q.errors(t, nobody); all.value() < 0.08 && first == 0 {
				first = q.runs
			}
		}
		_, all, _ := q.errors(t, nobody)
		uniform.add(all.value())
		firsts = append(firsts, first)
	}
	slices.Sort(firsts)
	t.Logf("false alarms in %d of 40 sequences of 138 runs", alarms)
	t.Logf("times 1.45: error under 8 %% after %v runs, after 20 runs %.1f %%",
		firsts, 100*uniform.value())
	if alarms > 4 || firsts[len(firsts)-1] > 10 || firsts[0] == 0 || uniform.value() > 0.05 {
		t.Error("want at most 4 alarms, and uniform drift corrected within ten runs")
	}
}

// The recovered runs in random order are predicted out of fold, with corrections by the residuals
// of earlier runs.
func TestFigures_RecoveredRunsOnline(t *testing.T) {
	runs := recovered(t)
	for _, factor := range []float64{1, 1.08, 1.3} {
		var off, covered, late scoreMean
		for shuffle := range uint64(6) {
			fold := folds(runs, shuffle)
			predictors := make([]*evidence.Predictor, 5)
			for k := range predictors {
				predictors[k] = fitted(t, outside(runs, fold, k))
			}
			order := rand.New(rand.NewPCG(shuffle, 3)).Perm(len(runs))
			var drift evidence.DriftState
			for n, i := range order {
				r := runs[i]
				r.Epochs = slices.Clone(r.Epochs)
				r.Epochs[0].Seconds *= factor
				p := predictors[fold[r.Configuration]]
				by := drift.Corrections()
				got := p.CorrectedTime(by, r.Configuration, r.Epochs[0].Number)
				took := r.Epochs[0].Seconds
				off.add(math.Abs(got.Median()/took - 1))
				covered.count(took <= got.Quantile(0.9))
				if n >= 10 {
					late.count(took <= got.Quantile(0.9))
				}
				residual, ok := p.Residual(&r)
				if !ok {
					t.Fatal("no residual")
				}
				drift = drift.Add(residual)
			}
		}
		t.Logf("times %g: MAPE %.1f %%, coverage at 0.9 %.3f, after ten runs %.3f",
			factor, 100*off.value(), covered.value(), late.value())
		if covered.value() < 0.8 || late.value() < 0.85 {
			t.Errorf("times %g: coverage %.3f, want 0.80; after ten runs %.3f, want 0.85",
				factor, covered.value(), late.value())
		}
	}
}
