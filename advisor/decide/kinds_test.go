package decide_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// training is a kind of training, whose runs and epochs vary by a few percent. No constant of the method was
// chosen by these kinds.
type training struct {
	name         string
	epochs       int
	startup      float64                                   // seconds
	startupNoise float64                                   // deviation of the logarithm
	run, noise   float64                                   // the same of a whole run, and of an epoch
	epoch        func(run, i, n int, r *rand.Rand) float64 // seconds; run and i from 0
	// Limits of the mean error, and of the share of kept bounds.
	mostError, leastHeld float64
	mayChange            bool // epochs change within a run, and with them the decision
}

func every(k int, usual, odd float64) func(int, int, int, *rand.Rand) float64 {
	return func(_, i, _ int, _ *rand.Rand) float64 {
		if i%k == k-1 {
			return odd
		}
		return usual
	}
}

func shaped(seconds func(i, n int) float64) func(int, int, int, *rand.Rand) float64 {
	return func(_, i, n int, _ *rand.Rand) float64 { return seconds(i, n) }
}

// slowingDown are runs of which every second takes twice as long from its half on, but not the first ones.
func slowingDown(run, i, n int, _ *rand.Rand) float64 {
	return []float64{60, 120}[min(2*i/n, run/2, run%2)]
}

// atTwoSpeeds are runs of which every third is slower.
func atTwoSpeeds(run, _, _ int, _ *rand.Rand) float64 { return []float64{60, 60, 84}[run%3] }

var (
	flat      = every(1, 60, 60)
	trainings = []training{
		{"plain", 12, 20, .1, .03, .04, flat, .05, .93, false},
		{"compiles first", 12, 20, .1, .03, .04, shaped(func(i, _ int) float64 {
			return []float64{360, 60}[min(i, 1)]
		}), .05, .93, false},
		{"resizes images", 12, 20, .1, .03, .04, shaped(func(i, n int) float64 {
			return []float64{30, 54, 90}[3*i/n]
		}), .05, .93, false},
		{"shorter by curriculum", 12, 20, .1, .03, .05, shaped(func(i, _ int) float64 {
			return 120 * math.Pow(.9, float64(i))
		}), .05, .93, false},
		{"evaluates every fourth", 24, 20, .1, .03, .04, every(4, 50, 220), .05, .93, false},
		{"evaluates every fifth", 60, 20, .1, .03, .04, every(5, 50, 150), .05, .93, false},
		{"long last epoch", 12, 20, .1, .03, .05, every(12, 60, 400), .05, .93, false},
		{"two phases", 10, 20, .1, .03, .04, shaped(func(i, n int) float64 {
			return []float64{30, 100}[2*i/n]
		}), .05, .93, false},
		{"grows", 20, 20, .1, .03, .04, shaped(func(i, _ int) float64 { return 25 + 3*float64(i) }), .05, .93, false},
		{"slow start", 8, 800, .05, .03, .05, flat, .05, .93, false},
		{"boosts", 200, 1, .1, .03, .1, shaped(func(i, n int) float64 {
			return 3 + 3*float64(i)/float64(n)
		}), .05, .93, false},
		{"one epoch", 1, 60, .04, .04, .04, flat, .08, .93, false},
		{"noisy", 15, 20, .3, .12, .15, flat, .17, .88, false},
		{"waits for others", 12, 120, .7, .03, .03, flat, .15, .87, false}, // 0.90 of 240 runs
		{"cold first run", 12, 300, .1, .03, .05, func(run, i, _ int, _ *rand.Rand) float64 {
			return []float64{250, 60}[min(run+i, 1)]
		}, .07, .93, false},
		// The first two runs with twice the data are not foreseen: what they are is known after them.
		{"twice the data", 12, 20, .1, .03, .04, func(run, _, _ int, _ *rand.Rand) float64 {
			return []float64{60, 120}[min(run/3, 1)]
		}, .2, .8, false},
		// Stalls cannot be foreseen, only that there will be some.
		{"stalls", 12, 20, .1, .03, .04, func(_, _, _ int, r *rand.Rand) float64 {
			return []float64{60, 180}[min(int(r.Float64()/.85), 1)]
		}, .2, .9, true},
		// The first slow run is not foreseen.
		{"slows down", 20, 20, .1, .03, .04, slowingDown, .3, .7, true},
		{"two speeds", 12, 20, .1, .02, .03, atTwoSpeeds, .2, .8, false},
		{"drifts", 12, 20, .1, .02, .03, func(run, _, _ int, _ *rand.Rand) float64 {
			return 60 * math.Pow(1.03, float64(run))
		}, .1, .85, false},
	}
)

// verdict sums up the predictions of the third and later runs.
type verdict struct {
	runs, held, promised, kept, errors float64
	back                               float64 // decisions that a later one takes back
	late                               float64 // broken promises
	ahead                              float64 // shares of the SLO left at their warnings
	unwarned                           float64 // broken promises without a warning before the SLO was over
}

// judge submits a training again and again, and learns from each run.
func (k *training) judge(t *testing.T, seed uint64, v *verdict) {
	const runs = 8
	r, now := rand.New(rand.NewPCG(seed, 7)), evidenceBegin
	var history []advisortest.Run
	var files map[string]advisortest.Files
	for n := range runs {
		run := k.draw(n, now, r)
		var fitted decide.Regressors
		if files != nil {
			fitted = advisortest.LoadFiles(t, files)
		}
		end := k.follow(t, &run, fitted, n, v)
		history = append(history, run)
		var err error
		if files, err = advisortest.Fit(t.Context(), history, files); err != nil {
			t.Fatal(err)
		}
		now = end.Add(time.Hour)
	}
}

// draw returns a run that starts at an instant.
func (k *training) draw(n int, now time.Time, r *rand.Rand) advisortest.Run {
	run := advisortest.Run{
		Model: "m", Node: "n", Hardware: evidenceNode, BatchSize: 32, CPUs: 1, StartedAt: now,
		Load:           schemas.Load{ConcurrentJobs: 1, Processes: 1},
		StartupSeconds: k.startup * math.Exp(k.startupNoise*r.NormFloat64()),
	}
	whole := math.Exp(k.run * r.NormFloat64())
	for i := range k.epochs {
		seconds := k.epoch(n, i, k.epochs, r) * whole * math.Exp(k.noise*r.NormFloat64())
		run.Epochs = append(run.Epochs, advisortest.Epoch{Seconds: seconds, Accuracy: 0.5})
	}
	return run
}

// follow submits a run, and predicts it after each of its epochs. It returns its end.
func (k *training) follow(t *testing.T, run *advisortest.Run, fitted decide.Regressors, n int, v *verdict) time.Time {
	state, now, sequence := cluster.New(), run.StartedAt, uint64(0)
	apply := func(e schemas.Event, at time.Time) {
		sequence++
		state.Apply(e, sequence, at)
	}
	apply(&schemas.Sample{
		Node: "n", Cores: evidenceNode.Cores, CPUModel: evidenceNode.CPUModel, IntervalSeconds: 2,
	}, now)
	ask := func(slo time.Duration) (schemas.JobRequest, *schemas.Advice) {
		q := schemas.JobRequest{
			JobID: fmt.Sprint("job-", n), Model: "m", CPUs: schemas.CPUs{1}, BatchSizes: []int{32},
			Epochs: k.epochs, Nodes: []string{"n"}, SLO: schemas.Duration(slo),
		}.WithDefaults()
		return q, decide.Decide(decide.Ask(state, q, now), fitted, now)
	}
	const learned = 2 // runs before those that count
	q, advice := ask(24 * time.Hour)
	first := advice.Chosen
	if n >= learned {
		share := []float64{1.06, 1.15, 1.3}[n%3]
		q, advice = ask(time.Duration(share * *first.PredictedSeconds * float64(time.Second)))
	}
	stamp := schemas.JobStamp{JobID: q.JobID, Run: 1}
	submitted := &schemas.Submitted{JobStamp: stamp, Request: q, Advice: *advice}
	submitted.At = now
	apply(submitted, now)
	started := &schemas.Started{JobStamp: stamp, Setting: schemas.Setting{
		Model: "m", BatchSize: 32, CPUs: 1, Epochs: uint32(k.epochs), Nodes: []string{"n"},
	}, NodeCores: evidenceNode.Cores}
	started.At = now
	apply(started, now)

	at, decision, changes := now.Add(time.Duration(run.StartupSeconds*1e9)), advice.Decision, 0.0
	ahead, expectedEnd := 0.0, at.AddDate(1, 0, 0) // share of the SLO that is left at the first warning
	predict := func(at time.Time) {
		asked := decide.AskRunning(state, state.Job(q.JobID), at)
		a := decide.Decide(asked, fitted, at)
		a.CauseSequence = sequence
		if a.Decision != decision {
			decision = a.Decision
			changes++
		}
		left := q.SLO.Seconds() - at.Sub(now).Seconds()
		if risk := decide.Warn(state.Job(q.JobID), asked, a); risk != nil {
			risk.CauseSequence = sequence
			apply(risk, at)
			if !risk.Cleared && ahead == 0 {
				ahead = left / q.SLO.Seconds()
			}
		}
		apply(a, at)
		expectedEnd = at.Add(time.Duration(*a.Chosen.PredictedSeconds * 1e9))
		checkAgreement(t, k.name, a.Chosen, left)
	}
	for i, e := range run.Epochs {
		for _, share := range []float64{0.5, 0.8, 0.95} { // the job is predicted again when it should have ended
			if during := at.Add(time.Duration(share * e.Seconds * 1e9)); during.After(expectedEnd) {
				predict(during)
			}
		}
		at = at.Add(time.Duration(e.Seconds * 1e9))
		epoch := &schemas.Epoch{JobStamp: stamp, Setting: started.Setting, Epoch: uint32(i + 1),
			DurationSeconds: e.Seconds, NodeCores: evidenceNode.Cores}
		epoch.EventID, epoch.At = schemas.EpochID(q.JobID, 1, uint32(i+1)), at
		apply(epoch, at)
		if n >= learned && i+1 < k.epochs {
			predict(at)
		}
	}
	if n < learned {
		return at
	}
	took := at.Sub(now)
	v.runs++
	v.errors += math.Abs(*first.PredictedSeconds/took.Seconds() - 1)
	v.back += max(0, changes-1)
	count := func(n *float64, is bool) {
		if is {
			*n++
		}
	}
	isPromised, isLate := advice.Decision == schemas.MeetsSLO, took > time.Duration(q.SLO)
	count(&v.held, *first.UpperBoundSeconds >= took.Seconds())
	count(&v.promised, isPromised)
	count(&v.kept, isPromised && !isLate)
	count(&v.late, isPromised && isLate)
	count(&v.unwarned, isPromised && isLate && ahead <= 0)
	if isPromised && isLate {
		v.ahead += ahead
	}
	return at
}

// checkAgreement checks that median, bound and probability of a running job say the same about its SLO.
func checkAgreement(t *testing.T, name string, c *schemas.Alternative, left float64) {
	t.Helper()
	for _, x := range []struct{ probability, seconds float64 }{
		{0.5, *c.PredictedSeconds}, {schemas.DefaultConfidence, *c.UpperBoundSeconds},
	} {
		const rounding = 1e-3
		if (*c.Probability > x.probability) != (x.seconds < left) && math.Abs(x.seconds-left) > rounding*left {
			t.Errorf("%s: %.1f s are left, probability %.3f, but it takes %.1f s with probability %v",
				name, left, *c.Probability, x.seconds, x.probability)
		}
	}
}

// Trainings of many kinds are predicted from their third run on: as well as their own noise permits, with
// bounds that hold, with decisions that are hardly ever taken back while they run, and with a warning of each
// promise that is not kept.
func TestDecide_KindsOfTrainings(t *testing.T) {
	const seeds, mostBack, leastAhead = 8, 0.05, 0.3
	var all verdict
	for i := range trainings {
		k, v := &trainings[i], verdict{}
		for seed := range uint64(seeds) {
			k.judge(t, seed, &v)
		}
		e, held, back := v.errors/v.runs, v.held/v.runs, v.back/v.runs
		text := fmt.Sprintf("%-23s error %4.1f %%, bounds held %.3f, taken back %.2f, "+
			"promised %2.0f, kept %2.0f of %.0f, late without a warning %.0f",
			k.name, 100*e, held, back, v.promised, v.kept, v.runs, v.unwarned)
		t.Log(text)
		if e > k.mostError || held < k.leastHeld || !k.mayChange && back > mostBack || v.unwarned > 0 {
			t.Errorf("%s; want error <= %v, held >= %v, taken back <= %v, and warnings", text, k.mostError,
				k.leastHeld, mostBack)
		}
		all.promised, all.kept = all.promised+v.promised, all.kept+v.kept
		all.late, all.ahead = all.late+v.late, all.ahead+v.ahead
	}
	if kept := all.kept / all.promised; kept < schemas.DefaultConfidence {
		t.Errorf("%.3f of %.0f promises were kept", kept, all.promised)
	}
	if ahead := all.ahead / all.late; ahead < leastAhead {
		t.Errorf("%.2f of the SLO was left at the warnings of %.0f late jobs, want %v", ahead, all.late, leastAhead)
	}
	t.Logf("%.2f of the SLO was left at the warnings of %.0f late jobs", all.ahead/all.late, all.late)
}
