package evidence_test

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"courier/regress/evidence"
)

// repeated are the runs of one system, benchmark and batch size of MLPerf.
type repeated struct {
	benchmark, system string
	batch             int
	runs              [][]evidence.EpochRecord
}

// rising are the benchmarks whose metric rises, with its scale; -1 is an error rate.
var rising = map[string]float64{"resnet": 1, "ssd": 1, "retinanet": 1, "dlrm": 1, "dlrm_dcnv2": 1,
	"gnn": 1, "rgat": 1, "ncf": 1, "unet3d": 1, "deepcam": 1, "openfold": 1, "gnmt": .01, "rnnt": -1}

// mlperf returns groups of five or more successful runs; an epoch is the interval between two
// evaluations. At most most groups of a benchmark are drawn.
func mlperf(t testing.TB, most int) (all []repeated) {
	type evaluation struct{ seconds, accuracy float64 }
	evaluations := map[string][]evaluation{}
	for _, row := range table(t, "mlperf/evals.csv.gz") {
		s, err1 := strconv.ParseFloat(row["seconds"], 64)
		a, err2 := strconv.ParseFloat(row["accuracy"], 64)
		if err1 == nil && err2 == nil {
			evaluations[row["run"]] = append(evaluations[row["run"]], evaluation{s, a})
		}
	}
	groups := map[[3]string][][]evidence.EpochRecord{}
	for _, row := range table(t, "mlperf/runs.csv.gz") {
		scale, isRising := rising[row["benchmark"]]
		if row["status"] != "success" || row["global_batch_size"] == "" || !isRising {
			continue
		}
		evals := evaluations[row["run"]]
		slices.SortFunc(evals, func(a, b evaluation) int { return cmp.Compare(a.seconds, b.seconds) })
		var epochs []evidence.EpochRecord
		last := 0.0
		for _, e := range evals {
			if e.seconds <= last+.01 {
				continue
			}
			a := scale * e.accuracy
			if scale < 0 {
				a = 1 - e.accuracy
			}
			epochs = append(epochs, evidence.EpochRecord{Number: len(epochs) + 1,
				Seconds: e.seconds - last, Accuracy: max(0, min(1, a)), HasAccuracy: true})
			last = e.seconds
		}
		if len(epochs) >= 3 {
			key := [3]string{row["benchmark"], row["round"] + "/" + row["submitter"] + "/" + row["system"],
				row["global_batch_size"]}
			groups[key] = append(groups[key], epochs)
		}
	}
	of := map[string][]repeated{}
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(a, b [3]string) int {
		return slices.Compare(a[:], b[:])
	}) {
		runs := groups[key]
		var lengths []float64
		for _, r := range runs {
			lengths = append(lengths, float64(len(r)))
		}
		slices.Sort(lengths)
		middle := lengths[len(lengths)/2]
		runs = slices.DeleteFunc(runs, func(r []evidence.EpochRecord) bool {
			n := float64(len(r))
			return n < .4*middle || n > 2.5*middle
		})
		if batch := number(t, key[2]); len(runs) >= 5 {
			of[key[0]] = append(of[key[0]], repeated{key[0], key[1], int(batch), runs})
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		groups := of[name]
		r.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		all = append(all, groups[:min(len(groups), most)]...)
	}
	return all
}

func (g *repeated) configuration() evidence.Configuration {
	return evidence.Configuration{Model: g.benchmark, NodeType: g.system, BatchSize: g.batch, CPUs: 1}
}

// split fits some runs of each group, and returns the others.
func split(t testing.TB, groups []repeated, history int, seed uint64) (
	p *evidence.Predictor, past, left [][][]evidence.EpochRecord,
) {
	r := rand.New(rand.NewPCG(seed, 3))
	var known []evidence.Run
	for i := range groups {
		g := &groups[i]
		runs := slices.Clone(g.runs)
		r.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		for _, epochs := range runs[:history] {
			known = append(known, evidence.Run{Configuration: g.configuration(), Epochs: epochs})
		}
		past, left = append(past, runs[:history]), append(left, runs[history:])
	}
	fitted, err := evidence.Fit(context.Background(), known, evidence.Options{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = evidence.Compile(fitted); err != nil {
		t.Fatal(err)
	}
	return p, past, left
}

func secondsOf(epochs []evidence.EpochRecord, n int) (sum float64) {
	for _, e := range epochs[:min(n, len(epochs))] {
		sum += e.Seconds
	}
	return sum
}

// Repeated runs of strangers, with a fixed number of epochs.
func TestMLPerfTimes(t *testing.T) {
	groups := mlperf(t, 12)
	for _, tc := range []struct {
		history                        int
		maxError, least, worst, widest float64
	}{
		{1, .02, .93, .90, 1.2},
		{2, .012, .94, .88, 1.06},
		{3, .012, .94, .90, 1.05},
		{5, .012, .94, .90, 1.05},
	} {
		p, past, left := split(t, groups, tc.history, 1)
		type sums struct{ n, held, err float64 }
		of, all := map[string]sums{}, sums{}
		var widths []float64
		for i := range groups {
			g, n := &groups[i], math.MaxInt
			for _, r := range slices.Concat(past[i], left[i]) {
				n = min(n, len(r))
			}
			d := p.Time(g.configuration(), n)
			bound := d.Quantile(.95)
			widths = append(widths, bound/d.Median())
			for _, r := range left[i] {
				y, s := secondsOf(r, n), of[g.benchmark]
				held := 0.0
				if y <= bound {
					held = 1
				}
				s.n, s.held, s.err = s.n+1, s.held+held, s.err+math.Abs(d.Median()/y-1)
				of[g.benchmark] = s
				all.n, all.held, all.err = all.n+1, all.held+held, all.err+math.Abs(d.Median()/y-1)
			}
		}
		slices.Sort(widths)
		worst, of1 := 1.0, ""
		for name, s := range of {
			if s.n >= 25 && s.held/s.n < worst {
				worst, of1 = s.held/s.n, name
			}
		}
		covered, off, width := all.held/all.n, all.err/all.n, widths[len(widths)/2]
		t.Logf("%d runs, %.0f cases: error %.2f %%, coverage %.3f, worst %.3f (%s), bound/median %.3f",
			tc.history, all.n, 100*off, covered, worst, of1, width)
		if off > tc.maxError || covered < tc.least || worst < tc.worst || width > tc.widest {
			t.Errorf("%d runs: want error up to %g, coverage from %g, worst from %g, bound/median up to %g",
				tc.history, tc.maxError, tc.least, tc.worst, tc.widest)
		}
	}
}

// Runs that stop at a target accuracy: promises at 0.95 for times from 0.9 to 1.6 of the median.
func TestMLPerfTargets(t *testing.T) {
	groups := mlperf(t, 12)
	p, past, left := split(t, groups, 3, 1)
	asked, promised, kept := 0.0, 0.0, 0.0
	for i := range groups {
		g, target, longest := &groups[i], 1.0, 0
		var totals []float64
		for _, r := range slices.Concat(past[i], left[i]) {
			target, longest = min(target, r[len(r)-1].Accuracy), max(longest, len(r))
			totals = append(totals, secondsOf(r, len(r)))
		}
		slices.Sort(totals)
		target -= 1e-6
		most := int(math.Ceil(1.5 * float64(longest)))
		a := p.Passage(g.configuration(), target)
		for _, factor := range []float64{.9, 1, 1.1, 1.25, 1.6} {
			slo := factor * totals[len(totals)/2]
			var stop evidence.Stop
			if a.Promisable {
				stop = a.Stop(func(n int) float64 {
					return p.Time(g.configuration(), n).Probability(slo)
				}, most, .95)
			}
			for _, r := range left[i] {
				asked++
				if stop.Probability < .95 {
					continue
				}
				promised++
				for k := range r[:min(len(r), stop.Epochs)] {
					if r[k].Accuracy >= target {
						if secondsOf(r, k+1) <= slo {
							kept++
						}
						break
					}
				}
			}
		}
	}
	t.Logf("%.0f questions: promised %.3f, kept %.3f", asked, promised/asked, kept/promised)
	if promised/asked < .25 || kept/promised < .95 {
		t.Errorf("promised %.3f, kept %.3f; want 0.25 and 0.95 or more", promised/asked, kept/promised)
	}
}
