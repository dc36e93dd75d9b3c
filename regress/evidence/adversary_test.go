package evidence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"courier/regress/evidence"

	"gonum.org/v1/gonum/floats"
)

// shapeOf are the epochs of a run without noise.
type shapeOf func(random *rand.Rand) []float64

func flat(n int) shapeOf {
	return func(*rand.Rand) []float64 { return slices.Repeat([]float64{10}, n) }
}

func compiling(n int) shapeOf {
	return func(*rand.Rand) []float64 { return append([]float64{100}, slices.Repeat([]float64{10}, n-1)...) }
}

func growing(n int) shapeOf {
	return func(*rand.Rand) []float64 {
		var s []float64
		for i := range n {
			s = append(s, .3+.2*float64(i))
		}
		return s
	}
}

func slowing(at, n int) shapeOf {
	return func(*rand.Rand) []float64 {
		return append(slices.Repeat([]float64{10}, at), slices.Repeat([]float64{15}, n-at)...)
	}
}

// noise of runs and epochs, as deviations of logarithms, and the correlation of epochs.
type noise struct{ run, epoch, correlation float64 }

// noisy returns a run of a shape.
func noisy(random *rand.Rand, model, id string, s []float64, n noise) evidence.Run {
	r := evidence.Run{ID: model + id, Configuration: configurationOf(model, 32, "x")}
	own, z := n.run*random.NormFloat64(), n.epoch*random.NormFloat64()
	for i, x := range s {
		r.Epochs = append(r.Epochs, evidence.EpochRecord{Number: i + 1, Seconds: x * math.Exp(own+z)})
		z = n.correlation*z + n.epoch*math.Sqrt(1-n.correlation*n.correlation)*random.NormFloat64()
	}
	return r
}

// elsewhere returns runs of other models.
func elsewhere(random *rand.Rand, models, runs int, n noise) (all []evidence.Run) {
	for m := range models {
		for k := range runs {
			all = append(all, noisy(random, fmt.Sprint("other", m), fmt.Sprint(k), flat(10)(random), n))
		}
	}
	return all
}

// Trainings that real clusters have: coverage of the bound at 0.95 and mean error of fresh runs, and of
// the rest after some epochs.
func TestTime_RealShapes(t *testing.T) {
	if underRace {
		t.Skip("a question of numbers, not of races")
	}
	usual := noise{.02, .02, 0}
	early := func(random *rand.Rand) []float64 { return flat(3 + random.IntN(18))(random) }
	stalled := func(*rand.Rand) []float64 {
		s := slices.Repeat([]float64{10}, 40)
		s[15] = 200
		return s
	}
	stalling := func(random *rand.Rand) []float64 {
		s := slices.Repeat([]float64{1}, 30)
		for i := range s {
			if random.IntN(10) == 0 {
				s[i] += 3
			}
		}
		return s
	}
	for _, tc := range []struct {
		name            string
		past            []shapeOf
		run             shapeOf
		epochs, done    int
		noise           noise
		covered, off, w float64 // coverage from, error up to, bound over median up to
	}{
		{"plain, one run", []shapeOf{flat(10)}, flat(10), 10, 0, usual, .97, .03, 1.2},
		{"plain, three runs", slices.Repeat([]shapeOf{flat(10)}, 3), flat(10), 10, 0, usual, .95, .025, 1.1},
		{"slow first epoch", slices.Repeat([]shapeOf{compiling(10)}, 3), compiling(10), 10, 0, usual, .94, .03, 1.1},
		{"slow first epoch, ten times as long", slices.Repeat([]shapeOf{compiling(3)}, 3), compiling(30), 30, 0,
			usual, .97, .04, 1.4},
		{"growing", slices.Repeat([]shapeOf{growing(20)}, 3), growing(20), 20, 0, usual, .94, .03, 1.1},
		{"growing, twice as long", slices.Repeat([]shapeOf{growing(10)}, 3), growing(20), 20, 0, usual, .94, .2, 2},
		{"growing although past runs did not", []shapeOf{func(r *rand.Rand) []float64 {
			return slices.Repeat([]float64{.3}, 20)
		}}, growing(20), 20, 10, usual, .9, .1, 1.4},
		{"five times as long from the start", slices.Repeat([]shapeOf{flat(10)}, 3), func(*rand.Rand) []float64 {
			return slices.Repeat([]float64{50}, 10)
		}, 10, 2, noise{.01, .01, 0}, .94, .6, 9},
		{"slow-down, three epochs later", slices.Repeat([]shapeOf{flat(100)}, 3), slowing(30, 100), 100, 33,
			usual, .94, .12, 1.4},
		{"slow-down, long ago", slices.Repeat([]shapeOf{flat(100)}, 3), slowing(30, 100), 100, 60,
			usual, .94, .03, 1.1},
		{"correlated epochs, fresh", slices.Repeat([]shapeOf{flat(20)}, 3), flat(20), 20, 0,
			noise{.02, .05, .9}, .92, .06, 1.2},
		{"correlated epochs, rest", slices.Repeat([]shapeOf{flat(20)}, 3), flat(20), 20, 10,
			noise{.02, .05, .9}, .93, .06, 1.2},
		{"correlated epochs, long rest", slices.Repeat([]shapeOf{flat(100)}, 3), flat(100), 100, 10,
			noise{.02, .05, .9}, .93, .06, 1.2},
		{"stalled epoch", slices.Repeat([]shapeOf{flat(40)}, 3), stalled, 40, 20, usual, .97, .02, 1.1},
		{"stalls, fresh", slices.Repeat([]shapeOf{stalling}, 2), stalling, 30, 0, usual, .92, .25, 1.8},
		{"the last run took half as long again", []shapeOf{flat(10), flat(10), flat(10), slowing(0, 10)},
			slowing(0, 10), 10, 0, usual, .9, .4, 2.5},
		{"the second of four runs did", []shapeOf{flat(10), slowing(0, 10), flat(10), flat(10)}, slowing(0, 10),
			10, 0, usual, .9, .4, 2.5},
		{"stalls, rest", slices.Repeat([]shapeOf{stalling}, 3), stalling, 30, 20, usual, .93, .25, 1.8},
		{"stalls, five past runs", slices.Repeat([]shapeOf{stalling}, 5), stalling, 30, 12, usual, .92, .2, 1.6},
		{"one long run after short ones", append(slices.Repeat([]shapeOf{flat(4)}, 9), flat(24)), flat(24), 24, 0,
			noise{.05, .02, 0}, .93, .05, 1.2},
		{"one longer run after short ones, between", append(slices.Repeat([]shapeOf{flat(4)}, 4), flat(24)), flat(8),
			8, 0, noise{.05, .02, 0}, .93, .06, 1.2},
		{"early stopping", slices.Repeat([]shapeOf{early}, 4), flat(20), 20, 0, usual, .95, .03, 1.15},
		{"one past run 60 times faster", []shapeOf{flat(10), flat(10), flat(10), flat(10), flat(10),
			func(r *rand.Rand) []float64 { return slices.Repeat([]float64{10. / 60}, 10) }},
			flat(10), 10, 0, usual, .97, .04, 1.3},
	} {
		held, off, n := 0.0, 0.0, 120.0
		var widths []float64
		for seed := range uint64(n) {
			random := rand.New(rand.NewPCG(seed, 9))
			runs := elsewhere(random, 5, 4, usual)
			for i, s := range tc.past {
				runs = append(runs, noisy(random, "m", fmt.Sprint(i), s(random), tc.noise))
			}
			p := fitted(t, runs)
			c := configurationOf("m", 32, "x")
			r := noisy(random, "m", "now", tc.run(random), tc.noise)
			var done []evidence.Span
			left := 0.0
			for i, e := range r.Epochs[:tc.epochs] {
				if i < tc.done {
					done = append(done, evidence.Span{Epochs: 1, Seconds: e.Seconds, Under: c})
				} else {
					left += e.Seconds
				}
			}
			rest := p.Rest(c, done, tc.epochs)
			d := rest.Seconds(tc.epochs - tc.done)
			if left <= d.Quantile(.95) {
				held++
			}
			off += math.Abs(d.Median()/left - 1)
			widths = append(widths, d.Quantile(.95)/d.Median())
		}
		slices.Sort(widths)
		held, off = held/n, off/n
		width := widths[len(widths)/2]
		t.Logf("%-40s coverage %.3f, error %.1f %%, bound/median %.3f", tc.name, held, 100*off, width)
		if held < tc.covered || off > tc.off || width > tc.w {
			t.Errorf("%s: coverage %.3f, error %.3f, bound/median %.3f; want at least %g, at most %g and %g",
				tc.name, held, off, width, tc.covered, tc.off, tc.w)
		}
	}
}

// More epochs take longer: neither their bound is closer, nor are they more probable in any time, also where a
// start-up that few runs have shown is most of the time.
func TestTime_MoreEpochsAreNeverMoreProbable(t *testing.T) {
	for name, shape := range map[string]shapeOf{"flat": flat(20), "growing": growing(20), "compiling": compiling(20)} {
		for k := range 16 {
			count, startup := 2+k%4, []float64{0, .3, 20, 200}[k/4]
			random := rand.New(rand.NewPCG(uint64(count), 15))
			var runs []evidence.Run
			for i := range count {
				r := noisy(random, "m", fmt.Sprint(i), shape(random), noise{.05, .05, 0})
				r.StartupSeconds = startup * math.Exp(.05*random.NormFloat64())
				runs = append(runs, r)
			}
			p, c := fitted(t, runs), configurationOf("m", 32, "x")
			whole, last := p.Time(c, 20), p.Time(c, 1)
			for _, n := range []int{2, 3, 5, 8, 13, 20, 25} {
				d := p.Time(c, n)
				for _, f := range []float64{1, 1.1, 2} {
					x := f * whole.Median()
					if d.Quantile(.95) < last.Quantile(.95) || d.Probability(x) > last.Probability(x)+.001 {
						t.Errorf("%s, %d runs, start-up %g: %d epochs %+v, fewer %+v", name, count, startup, n, d, last)
					}
				}
				last = d
			}
		}
	}
}

// A model whose runs vary much, beside 500 runs of others that repeat very well.
func TestTime_KeepsItsOwnSpread(t *testing.T) {
	if underRace {
		t.Skip("a question of numbers, not of races")
	}
	random := rand.New(rand.NewPCG(1, 10))
	others := elsewhere(random, 10, 50, noise{.003, .003, 0})
	for _, tc := range []struct {
		runs    int
		covered float64
	}{{1, .84}, {3, .92}, {5, .93}} {
		held, n := 0.0, 60.0
		for seed := range uint64(n) {
			random := rand.New(rand.NewPCG(seed, 11))
			runs := slices.Clone(others)
			for i := range tc.runs {
				runs = append(runs, noisy(random, "m", fmt.Sprint(i), flat(10)(random), noise{.08, .003, 0}))
			}
			took := 0.0
			for _, e := range noisy(random, "m", "now", flat(10)(random), noise{.08, .003, 0}).Epochs {
				took += e.Seconds
			}
			if took <= fitted(t, runs).Time(configurationOf("m", 32, "x"), 10).Quantile(.95) {
				held++
			}
		}
		t.Logf("%d runs: coverage %.3f", tc.runs, held/n)
		if held/n < tc.covered {
			t.Errorf("%d runs: coverage %.3f, want at least %g", tc.runs, held/n, tc.covered)
		}
	}
}

// No run of another model moves the bound of a model with four runs by more than 5 %, whatever it
// reports, nor does any number of them.
func TestTime_OtherModelsHaveBoundedInfluence(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 12))
	c := configurationOf("m", 32, "x")
	var own []evidence.Run
	for i := range 4 {
		own = append(own, noisy(random, "m", fmt.Sprint(i), flat(10)(random), noise{.02, .02, 0}))
	}
	own = append(own, elsewhere(random, 3, 4, noise{.02, .02, 0})...)
	before := fitted(t, own).Time(c, 10).Quantile(.95)
	for _, tc := range []struct {
		name  string
		other []float64
		count int
	}{
		{"60 times faster", []float64{10. / 60}, 1},
		{"60 times slower", []float64{600}, 1},
		{"1e-8 s", []float64{1e-8}, 1},
		{"1e300 s", []float64{1e300}, 1},
		{"NaN", []float64{math.NaN()}, 1},
		{"infinite", []float64{math.Inf(1)}, 1},
		{"negative", []float64{-1}, 1},
		{"2,000 equal ones", []float64{10}, 2000},
	} {
		runs := slices.Clone(own)
		for k := range tc.count {
			r := evidence.Run{ID: fmt.Sprint("odd", k), Configuration: configurationOf(
				fmt.Sprint("other", k%3), 32, "x")}
			for i := range 10 {
				r.Epochs = append(r.Epochs, evidence.EpochRecord{Number: i + 1, Seconds: tc.other[0]})
			}
			runs = append(runs, r)
		}
		if after := fitted(t, runs).Time(c, 10).Quantile(.95); math.Abs(after/before-1) > .05 {
			t.Errorf("%s: the bound of another model moved from %g to %g, want at most 5 %%",
				tc.name, before, after)
		}
	}
}

// The probability of an imported model that nobody runs does not change while other models run and become
// slower.
func TestTime_StaysWhileOtherModelsRun(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 13))
	c := configurationOf("m", 32, "x")
	var runs []evidence.Run
	for i := range 15 {
		runs = append(runs, noisy(random, "m", fmt.Sprint(i), flat(10)(random), noise{.04, .02, 0}))
	}
	runs = append(runs, elsewhere(random, 3, 4, noise{.02, .02, 0})...)
	alone := fitted(t, runs).Time(c, 10)
	slo := alone.Quantile(.97)
	for round := range 20 {
		for k := range 3 {
			id := fmt.Sprint("later", round, k)
			r := noisy(random, fmt.Sprint("other", k), id, flat(10)(random), noise{.02, .02, 0})
			for i := range r.Epochs {
				r.Epochs[i].Seconds *= 1 + .05*float64(round)
			}
			runs = append(runs, r)
		}
		if p := fitted(t, runs).Time(c, 10).Probability(slo); math.Abs(p-.97) > .01 {
			t.Errorf("after %d runs of other models the probability is %.3f, want 0.97 as before", 3*(round+1), p)
		}
	}
}

// What is not believed says why, to the owner of the run, and the other epochs count.
func TestFit_SetsImplausibleRunsAside(t *testing.T) {
	c := configurationOf("m", 32, "x")
	run := func(id string, seconds ...float64) evidence.Run {
		r := evidence.Run{ID: id, Configuration: c}
		for i, s := range seconds {
			r.Epochs = append(r.Epochs, evidence.EpochRecord{Number: i + 1, Seconds: s})
		}
		return r
	}
	h, p := fit(t, []evidence.Run{run("good", 10, 10, 10), run("tiny", 10, 1e-8, 10), run("all", 1e-8, 1e-8),
		run("short", 10, 1e-3, 10)})
	reasons := map[string]string{}
	for _, a := range h.SetAside {
		reasons[a.Run] = a.Reason
	}
	for id, want := range map[string]bool{"good": false, "tiny": true, "all": true, "short": true} {
		if (reasons[id] != "") != want {
			t.Errorf("run %s is set aside with %q, want a reason: %v", id, reasons[id], want)
		}
	}
	if d := p.Time(c, 3); math.Abs(d.Median()/30-1) > .01 {
		t.Errorf("three epochs take %g s, want 30", d.Median())
	}
}

// Epochs that are reported in blocks, such as rounds of boosting, and epochs that are missing count.
func TestFit_LearnsBlocksAndGaps(t *testing.T) {
	c := configurationOf("m", 32, "x")
	blocks := evidence.Run{ID: "b", Configuration: c, Epochs: []evidence.EpochRecord{
		{Number: 20, Count: 20, Seconds: 2}, {Number: 40, Count: 20, Seconds: 2}, {Number: 60, Count: 20, Seconds: 2}}}
	gaps := evidence.Run{ID: "g", Configuration: c, Epochs: []evidence.EpochRecord{
		{Number: 1, Seconds: .1}, {Number: 2, Seconds: .1}, {Number: 4, Seconds: .1}, {Number: 5, Seconds: .1}}}
	first := evidence.Run{ID: "f", Configuration: c, Epochs: []evidence.EpochRecord{
		{Number: 2, Seconds: .1}, {Number: 3, Seconds: .1}, {Number: 60, Count: 57, Seconds: 5.7}}}
	for name, runs := range map[string][]evidence.Run{
		"blocks": {blocks}, "gaps": {gaps}, "a first epoch with the start-up": {first},
	} {
		_, p := fit(t, runs)
		for _, n := range []int{1, 5, 60} {
			if d := p.Time(c, n); math.Abs(d.Median()/(.1*float64(n))-1) > .01 {
				t.Errorf("%s: %d epochs take %g s, want %g", name, n, d.Median(), .1*float64(n))
			}
		}
	}
}

// The rest of a running job follows from the past and from its own epochs.
func TestRest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 13))
	c := configurationOf("m", 32, "x")
	var runs []evidence.Run
	for i := range 3 {
		runs = append(runs, noisy(random, "m", fmt.Sprint(i), compiling(20)(random), noise{.02, .02, 0}))
	}
	other := c
	other.BatchSize = 64
	runs = append(runs, noisy(random, "m", "64", slices.Repeat([]float64{5}, 20), noise{.02, .02, 0}))
	runs[3].Configuration = other
	p := fitted(t, runs)
	spans := func(under evidence.Configuration, seconds ...float64) (all []evidence.Span) {
		for _, s := range seconds {
			all = append(all, evidence.Span{Epochs: 1, Seconds: s, Under: under})
		}
		return all
	}
	fresh, none := p.Epochs(c, 20), p.Rest(c, nil, 20)
	if fresh != none {
		t.Errorf("without own epochs the rest is %+v, want %+v", none, fresh)
	}
	median := func(done []evidence.Span, total int) float64 {
		e, n := p.Rest(c, done, total), 0
		for _, s := range done {
			n += s.Epochs
		}
		d := e.Seconds(total - n)
		return d.Median()
	}
	after := spans(c, 100, 10, 10, 10, 10)
	if got := median(after, 20); math.Abs(got/150-1) > .03 {
		t.Errorf("15 usual epochs take %g s, want 150", got)
	}
	if got := median(spans(c, 100, 12, 12, 12, 12, 12, 12, 12, 12, 12), 20); math.Abs(got/120-1) > .04 {
		t.Errorf("10 epochs of a run that takes 12 s each take %g s, want 120", got)
	}
	if got := median(spans(c, 100, 10, 10, 10, 10, 10, 10, 200, 10, 10), 20); math.Abs(got/100-1) > .02 {
		t.Errorf("after one stalled epoch the rest is %g s, want about 100", got)
	}
	if got := median(spans(other, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6), 20); math.Abs(got/120-1) > .06 {
		t.Errorf("10 epochs of a run that was a fifth slower with another batch size take %g s, want 120", got)
	}
	blocks := []evidence.Span{{Epochs: 1, Seconds: 100, Under: c}, {Epochs: 4, Seconds: 40, Under: c}}
	if got := median(blocks, 20); math.Abs(got/median(after, 20)-1) > .02 {
		t.Errorf("after a block of epochs the rest is %g s, want about %g", got, median(after, 20))
	}
}

// longerCourses are courses of epochs by their number from 0.
var longerCourses = map[string]func(i float64) float64{
	"square": func(i float64) float64 { return .2 + .02*i*i },
	"linear": func(i float64) float64 { return .3 + .13*i },
	"alike":  func(float64) float64 { return .5 },
	"faster": func(i float64) float64 { return max(.2, 1.5*math.Pow(.87, i)) },
}

// A job that runs longer than every run before keeps the uncertainty of what nobody measured, also with a
// batch size that never ran, and however well its first epochs are predicted. It follows its own trend
// afterwards.
func TestRest_OfALongerRun(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 14))
	for name, course := range longerCourses {
		seconds := func(epochs, batch int) (all []float64) {
			for i := range epochs {
				usual := course(float64(i)) * (30 + 2000/float64(batch))
				all = append(all, usual*math.Exp(.02*random.NormFloat64()))
			}
			return all
		}
		var runs []evidence.Run
		for _, batch := range []int{16, 32, 64, 128, 256} {
			for i := range 3 {
				r := noisy(random, "m", fmt.Sprint(batch, i), seconds(10, batch), noise{.01, .01, 0})
				r.Configuration = configurationOf("m", batch, "x")
				runs = append(runs, r)
			}
		}
		p := fitted(t, runs)
		for _, batch := range []int{64, 96} {
			c := configurationOf("m", batch, "x")
			for _, total := range []int{16, 24} {
				var done []evidence.Span
				covered, widest, atStart := 0, 0.0, 0.0
				all := seconds(total, batch)
				for k := range all {
					e := p.Rest(c, done, total)
					ratio := e.Seconds(total-k).Quantile(.95) / floats.Sum(all[k:])
					if ratio >= 1 {
						covered++
					}
					widest = max(widest, ratio)
					d := e.Seconds(total - k)
					width := d.Quantile(.95) / d.Median()
					if k == 0 {
						atStart = width
					}
					if k == 1 && width > 1.3*atStart { // the first epoch is not compared
						t.Errorf("%s, batch size %d, %d epochs: bound/median %.3g, %.3g after an epoch",
							name, batch, total, atStart, width)
					}
					done = append(done, evidence.Span{Epochs: 1, Seconds: all[k], Under: c})
				}
				if 10*covered < 9*total {
					t.Errorf("%s, batch size %d, %d epochs after runs of 10: %d bounds hold",
						name, batch, total, covered)
				}
				if name == "alike" && widest > 1.15 {
					t.Errorf("batch size %d, %d epochs alike: a bound of %.3g times the time",
						batch, total, widest)
				}
			}
		}
	}
}

// Without past runs a job's own epochs give an estimate, which is never promised.
func TestRestAlone(t *testing.T) {
	var done []evidence.Span
	for i, s := range []float64{30, 10, 10.2, 9.8, 10} {
		done = append(done, evidence.Span{Epochs: 1, Seconds: s})
		e := evidence.RestAlone(done, 12)
		d := e.Seconds(12 - len(done))
		want := 10 * float64(12-len(done))
		if e.Support.Promisable() || !e.Known() || i > 0 && math.Abs(d.Median()/want-1) > .06 {
			t.Errorf("after %d epochs: %v, %g s, want an estimate of %g s", i+1, e.Support, d.Median(), want)
		}
	}
	unobserved := []evidence.Span{{Epochs: 3}}
	for _, done := range [][]evidence.Span{nil, unobserved} {
		if e := evidence.RestAlone(done, 12); e.Known() {
			t.Errorf("after %v the estimate is %+v, want none", done, e)
		}
	}
	late := evidence.RestAlone(append(unobserved, evidence.Span{Epochs: 1, Seconds: 10}), 12)
	if d := late.Seconds(8); math.Abs(d.Median()/80-1) > .02 {
		t.Errorf("after three unobserved epochs the rest is %g s, want 80", d.Median())
	}
}
