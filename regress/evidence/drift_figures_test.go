package evidence_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
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

func big(k zeusSetting) bool { return k.dataset == "cifar100" && k.batch >= 512 }

// Without a change alarms are rare.
func TestFigures_FalseAlarms(t *testing.T) {
	study := readStudy(t)
	alarms := 0
	for seed := range uint64(40) {
		q := newSequence(t, study, seed, func(k zeusSetting) float64 { return study.seconds["v100"][k][250] })
		for range q.order {
			q.next(t)
			if len(q.drift.Factors()) > 0 {
				alarms++
				break
			}
		}
	}
	t.Logf("false alarms in %d of 40 sequences of 138 runs", alarms)
	if alarms > 4 {
		t.Error("want at most 4 alarms")
	}
}
