package evidence_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"courier/regress/evidence"
)

// The evaluation of a fit finds about the errors of runs that it has not learned from.
func TestEvaluate_AgreesWithUnseenRuns(t *testing.T) {
	runs := newWorld(readStudy(t), 1, nil).runs(1, math.MaxInt)
	h, _ := fit(t, runs)
	times, accuracies := h.HeldOut()
	t.Logf("times %+v, accuracies %+v", times, accuracies)
	if times.Runs != len(runs) || accuracies.Runs == 0 || times.Error > 0.025 || accuracies.Error > 0.01 {
		t.Errorf("times = %+v, accuracies = %+v, want %d runs, errors of at most 0.025 and 0.01",
			times, accuracies, len(runs))
	}
}

// Every curve of epoch time over batch size in the study, of all GPUs, optimizers and
// power limits: held-out batch sizes are predicted by the others.
func TestFigures_LeftOutBatchSizesOfAllCurves(t *testing.T) {
	var off, held scoreMean
	curves := 0
	for _, gpu := range []string{"v100", "p100", "rtx6000", "a40"} {
		byName := map[string]map[int]float64{}
		for _, row := range table(t, "zeus/summary_power_"+gpu+".csv") {
			name := row["dataset"] + row["optimizer"] + row["power_limit"]
			if byName[name] == nil {
				byName[name] = map[int]float64{}
			}
			byName[name][int(number(t, row["batch_size"]))] = number(t, row["time_per_epoch"])
		}
		for _, curve := range byName {
			if len(curve) < 5 {
				continue
			}
			curves++
			for left := range curve {
				leftOutOfCurve(t, curve, left, &off, &held)
			}
		}
	}
	t.Logf("%d curves, %g batch sizes: error %.2f %%, coverage %.3f",
		curves, off.n, 100*off.value(), held.value())
	if curves < 50 || off.value() > 0.05 || held.value() < 0.9 {
		t.Error("want an error of at most 5 %, and a coverage of 0.9 or more")
	}
}

func leftOutOfCurve(t *testing.T, curve map[int]float64, left int, off, held *scoreMean) {
	t.Helper()
	var runs []evidence.Run
	for b, seconds := range curve {
		if b == left {
			continue
		}
		random := rand.New(rand.NewPCG(uint64(b), uint64(left)))
		for i := range 4 {
			r := evidence.Run{ID: fmt.Sprint(b, i), Configuration: configurationOf("a", b, "x")}
			for e, x := range draw(random, seconds, 5) {
				r.Epochs = append(r.Epochs, evidence.EpochRecord{Number: e + 1, Seconds: x})
			}
			runs = append(runs, r)
		}
	}
	got := fitted(t, runs).Time(configurationOf("a", left, "x"), 5)
	if !got.Support.Promisable() {
		return
	}
	took := 0.0
	for _, x := range draw(rand.New(rand.NewPCG(uint64(left), 0)), curve[left], 5) {
		took += x
	}
	off.add(math.Abs(got.Median()/took - 1))
	held.count(took <= got.Quantile(confidence))
}

// Configurations with a single run are not scored.
func TestFit_EvaluatesNoSingleRuns(t *testing.T) {
	var runs []evidence.Run
	for _, b := range []int{8, 16, 32, 64, 128, 256} {
		runs = append(runs, runsOf(configurationOf("a", b, "x"), 1000/float64(b)+1)...)
	}
	h, _ := fit(t, runs)
	if times, accuracies := h.HeldOut(); times.Runs+accuracies.Runs != 0 {
		t.Errorf("%+v, %+v, want no runs", times, accuracies)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := evidence.Fit(ctx, runs, evidence.Options{}); err == nil {
		t.Error("no error of a fit after the context ended")
	}
}

// A fit that remembers others is the same, and changes none of them.
func TestFit_AMemoryChangesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	var memory evidence.Memory
	var runs []evidence.Run
	var before []byte
	for i := range 12 {
		model := string(rune('a' + i%3))
		runs = append(runs, curveOf(fmt.Sprint(i), 16<<(i/3), 6, 1+random.Float64()))
		runs[i].Model = model
		h, err := evidence.Fit(context.Background(), runs, evidence.Options{Memory: &memory})
		if err != nil {
			t.Fatal(err)
		}
		alone, _ := fit(t, runs)
		got, want := encoded(t, h), encoded(t, alone)
		if string(got) != string(want) {
			t.Fatalf("after %d runs: a fit with a memory is\n%s\nwant\n%s", i+1, got, want)
		}
		if string(got) == string(before) {
			t.Errorf("run %d changed nothing", i)
		}
		before = got
	}
}

func encoded(t *testing.T, h *evidence.Regressor) []byte {
	t.Helper()
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
