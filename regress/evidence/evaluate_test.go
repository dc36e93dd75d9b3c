package evidence_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"courier/regress/evidence"
)

// The evaluation of a fit finds about the errors of runs that it has not learned from.
func TestEvaluate_AgreesWithUnseenRuns(t *testing.T) {
	study := readStudy(t)
	w := newWorld(study, 1, nil)
	runs := w.runs(1, math.MaxInt)
	h, _ := fit(t, runs)
	all, err := evidence.Evaluate(context.Background(), runs, h)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 {
		t.Fatalf("%d evaluations, want 3", len(all))
	}
	for _, e := range all {
		t.Logf("%s: %+v", e.Model, e)
		n := 0
		for _, b := range study.batches[e.Model] {
			n += len(w.history[zeusSetting{e.Model, b}])
		}
		if e.Measured.Runs != n || e.Unmeasured.Runs != n ||
			e.AccuracyMeasured.Runs == 0 || e.AccuracyUnmeasured.Runs == 0 {
			t.Errorf("%s: %+v, want %d runs", e.Model, e, n)
		}
		if e.Measured.RelativeError > 0.03 || e.Measured.Coverage < 0.85 || e.Measured.LogDensity < 1.5 {
			t.Errorf("%s: measured = %+v, want error <= 0.03, coverage >= 0.85, log density >= 1.5",
				e.Model, e.Measured)
		}
		if e.Unmeasured.RelativeError < e.Measured.RelativeError ||
			e.Unmeasured.LogDensity > e.Measured.LogDensity {
			t.Errorf("%s: unmeasured %+v is better than measured %+v", e.Model, e.Unmeasured, e.Measured)
		}
		x, off := e.AccuracyMeasured.AbsoluteError, e.AccuracyUnmeasured.AbsoluteError
		if x > 0.02 || x > off+0.002 {
			t.Errorf("%s: accuracy error = %g, want at most 0.02 and the unmeasured one, %g",
				e.Model, x, off)
		}
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

// Configurations with a single run are scored as unmeasured only.
func TestEvaluate_SingleRuns(t *testing.T) {
	var runs []evidence.Run
	for i, b := range []int{8, 16, 32, 64, 128, 256} {
		r := runsOf(configurationOf("a", b, "x"), 1000/float64(b)+1)[0]
		r.ID = strconv.Itoa(i)
		runs = append(runs, r)
	}
	h, _ := fit(t, runs)
	all, err := evidence.Evaluate(context.Background(), runs, h)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 || all[0].Measured.Runs != 0 || all[0].Unmeasured.Runs != 6 {
		t.Errorf("%+v, want six unmeasured runs", all)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := evidence.Evaluate(ctx, runs, h); err == nil {
		t.Error("no error after the context ended")
	}
	if _, err := evidence.Fit(ctx, runs, evidence.Options{}); err == nil {
		t.Error("no error of a fit after the context ended")
	}
}
