package elastic_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/policy"
	"courier/simulate/elastic"
)

func small(t testing.TB) ([]elastic.TraceJob, elastic.Throughputs) {
	t.Helper()
	trace, err := elastic.ReadTraceFile("testdata/trace.csv")
	if err != nil {
		t.Fatal(err)
	}
	return trace, tables(t, "testdata/throughputs")
}

func tables(t testing.TB, dir string) elastic.Throughputs {
	t.Helper()
	rates, err := elastic.ReadThroughputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return rates
}

func run(t testing.TB, trace []elastic.TraceJob, rates elastic.Throughputs, name string,
	o elastic.Options) *elastic.TraceScore {
	t.Helper()
	r, err := elastic.Run(context.Background(), trace, rates, name, o)
	if err != nil {
		t.Fatal(err)
	}
	v, err := elastic.Verify(trace, rates, o, r.Schedule)
	if err != nil {
		t.Fatalf("%s: invalid schedule: %v", name, err)
	}
	isOther := func(got, want float64) bool { return math.Abs(got-want) > 1e-5*(1+want) }
	if r.Kept != len(v.Kept) || r.Moments != v.Moments ||
		isOther(3600*r.HeldGPUHours, v.HeldSeconds) || isOther(3600*r.PauseGPUHours, v.PauseSeconds) {
		t.Errorf("%s: %d kept, %d moments, %g h held, %g h paused, want %d, %d, %g s, %g s as of the schedule",
			name, r.Kept, r.Moments, r.HeldGPUHours, r.PauseGPUHours,
			len(v.Kept), v.Moments, v.HeldSeconds, v.PauseSeconds)
	}
	return r
}

func cluster(gpus int, charge policy.Charge) elastic.Options {
	return elastic.Options{GPUs: gpus, Slot: time.Minute, Charge: charge}
}

var charges = []policy.Charge{
	policy.ChargeAll, policy.ChargeRounds, policy.ChargeChanged, policy.ChargeNone,
}

func TestRun_EveryPolicyKeepsTheRules(t *testing.T) {
	trace, rates := small(t)
	for _, name := range elastic.Policies() {
		for _, charge := range charges {
			r := run(t, trace, rates, name, cluster(16, charge))
			if r.Jobs != len(trace) || r.Kept+r.Broken+r.Refused != r.Jobs || r.Kept == 0 {
				t.Errorf("%s, charge %s: kept %d, broken %d, refused %d of %d jobs", name, charge,
					r.Kept, r.Broken, r.Refused, r.Jobs)
			}
			if charge == policy.ChargeNone && r.PauseGPUHours != 0 {
				t.Errorf("%s: %g GPU hours paused without pauses", name, r.PauseGPUHours)
			}
		}
	}
}

// With exact rates, the deadline policy breaks at most 0.6 % of the promises, also on small clusters,
// where jobs hold whole numbers of few GPUs, whatever jobs arrive and whichever of them pause at a
// moment.
func TestRun_DeadlineKeepsItsPromises(t *testing.T) {
	rates := tables(t, "testdata/throughputs")
	random := rand.New(rand.NewPCG(21, 13))
	kept, broken, refused := 0, 0, 0
	for seed := range uint64(48) {
		gpus := 4 << (seed % 4)
		trace := randomTrace(random, rates, gpus, seed)
		r := run(t, trace, rates, "deadline", cluster(gpus, charges[seed/4%4]))
		kept, broken, refused = kept+r.Kept, broken+r.Broken, refused+r.Refused
	}
	t.Logf("kept %d, broken %d, refused %d", kept, broken, refused)
	if float64(broken) > 0.006*float64(kept+broken) {
		t.Errorf("%d of %d promises are broken, want at most 0.6 %%", broken, kept+broken)
	}
	if kept < 1000 || refused < 300 {
		t.Errorf("%d jobs are kept and %d refused: the test shows nothing", kept, refused)
	}
}

// randomTrace returns 60 jobs. A job has a random row of the tables, as many iterations as it runs in
// a random time on 1, 2 or 4 GPUs, and a deadline after 0.5 to 1.5 of this time, as in the traces of
// ElasticFlow (Gu et al., ASPLOS 2023, section 6.1).
func randomTrace(arrivals *rand.Rand, rates elastic.Throughputs, gpus int, seed uint64) []elastic.TraceJob {
	type row struct {
		model string
		batch int
	}
	var rows []row
	for _, model := range slices.Sorted(maps.Keys(rates)) {
		for _, batch := range slices.Sorted(maps.Keys(rates[model])) {
			rows = append(rows, row{model, batch})
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	trace := make([]elastic.TraceJob, 60)
	at := time.Duration(0)
	for i := range trace {
		at += time.Duration(arrivals.ExpFloat64() * float64(2*time.Hour) / float64(gpus))
		held := 1 << arrivals.IntN(3)
		run := time.Duration(600+arrivals.IntN(10_000)) * time.Second
		r := rows[random.IntN(len(rows))]
		curve := rates[r.model][r.batch]
		rate := curve[0].Rate
		for _, p := range curve {
			if p.Units <= held {
				rate = p.Rate
			}
		}
		trace[i] = elastic.TraceJob{
			ID:         fmt.Sprint(i),
			Submitted:  at,
			Deadline:   at + time.Duration((0.5+random.Float64())*float64(run)),
			Iterations: math.Floor(rate * run.Seconds()),
			Model:      r.model,
			BatchSize:  r.batch,
		}
	}
	return trace
}

func TestRun_DeadlineKeepsMoreThanTheBaselines(t *testing.T) {
	trace, rates := small(t)
	best := run(t, trace, rates, "deadline", cluster(16, policy.ChargeAll))
	for _, name := range elastic.Policies()[1:] {
		if r := run(t, trace, rates, name, cluster(16, policy.ChargeAll)); r.Kept >= best.Kept {
			t.Errorf("%s keeps %d jobs, deadline %d", name, r.Kept, best.Kept)
		}
	}
}

func TestRun_GivesTheSameScheduleAgain(t *testing.T) {
	trace, rates := small(t)
	o := cluster(16, policy.ChargeAll)
	a, b := run(t, trace, rates, "deadline", o), run(t, trace, rates, "deadline", o)
	if !slices.Equal(a.Schedule, b.Schedule) {
		t.Error("two schedules of the same trace")
	}
}

// What a policy does before a time must not depend on the jobs that are submitted later.
func TestRun_RevealsJobsAtSubmission(t *testing.T) {
	trace, rates := small(t)
	half := len(trace) / 2
	for trace[half].Submitted == trace[half-1].Submitted {
		half++
	}
	cut := trace[half].Submitted
	before := func(schedule []elastic.Stretch) []elastic.Stretch {
		var starts []elastic.Stretch
		for _, s := range schedule {
			if s.Start < cut {
				s.End = min(s.End, cut)
				starts = append(starts, s)
			}
		}
		return starts
	}
	for _, name := range elastic.Policies() {
		all := run(t, trace, rates, name, cluster(16, policy.ChargeAll))
		first := run(t, trace[:half], rates, name, cluster(16, policy.ChargeAll))
		if !slices.Equal(before(all.Schedule), before(first.Schedule)) {
			t.Errorf("%s: the schedule before %s depends on later jobs", name, cut)
		}
	}
}

func TestRun_BatchSizesMayChange(t *testing.T) {
	trace, rates := small(t)
	fixed := run(t, trace, rates, "deadline", cluster(16, policy.ChargeAll))
	o := cluster(16, policy.ChargeAll)
	o.AllowBatchChange = true
	free := run(t, trace, rates, "deadline", o)
	if fixed.BatchChanged != 0 || free.BatchChanged == 0 || free.Kept < fixed.Kept {
		t.Errorf("%d batch sizes changed and %d jobs kept, without the choice %d and %d",
			free.BatchChanged, free.Kept, fixed.BatchChanged, fixed.Kept)
	}
}

func TestCompare_RejectsUnusableInput(t *testing.T) {
	trace, rates := small(t)
	ctx := context.Background()
	o := cluster(16, policy.ChargeAll)
	_, err := elastic.Compare(ctx, trace, rates, []string{"magic"}, o)
	wantError(t, err, `policy "magic" is not one of deadline, edf,`)
	_, err = elastic.Compare(ctx, trace, rates, []string{"edf", "edf"}, o)
	wantError(t, err, `policy "edf" is given twice`)
	_, err = elastic.Compare(ctx, trace, elastic.Throughputs{}, []string{"edf"}, o)
	wantError(t, err, `has no throughput table; there are tables of`)
	_, err = elastic.Compare(ctx, trace, rates, nil, o)
	wantError(t, err, "no policy is given: want one of deadline, edf,")
	other := slices.Clone(trace)
	other[0].BatchSize = 7
	_, err = elastic.Compare(ctx, other, rates, []string{"edf"}, o)
	wantError(t, err, "with batch size 7 has no throughput; its batch sizes are ")
	o = cluster(0, policy.ChargeAll)
	_, err = elastic.Compare(ctx, trace, rates, []string{"edf"}, o)
	wantError(t, err, "--gpus is 0")
}

func wantError(t *testing.T, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("error %v, want one with %q", err, part)
	}
}

// shared contains data that is not a part of the repository.
const shared = "../../../shared"

func needFile(t testing.TB, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Skipf("skipped: %s is not present", path)
	}
	return path
}

// The bars are those of the design, with one set of parameters for all traces.
func TestRun_ReachesTheBarsOnPublishedTraces(t *testing.T) {
	data := filepath.Join(shared, "data/elasticflow")
	needFile(t, data)
	rates := tables(t, filepath.Join(data, "throughputs_A100"))
	for _, test := range []struct {
		trace  string
		gpus   int
		slot   time.Duration
		charge policy.Charge
		bar    float64
		isLong bool
	}{
		{"195job", 128, 4 * time.Minute, policy.ChargeAll, 0.90, false},
		{"cluster01", 512, time.Minute, policy.ChargeAll, 0.975, false},
		{"cluster05", 512, time.Minute, policy.ChargeAll, 0.98, false},
		{"cluster02", 512, time.Minute, policy.ChargeAll, 0.955, true},
		{"cluster03", 512, time.Minute, policy.ChargeAll, 0.765, true},
		{"cluster07", 1024, time.Minute, policy.ChargeRounds, 0.945, true},
		{"cluster09", 1024, time.Minute, policy.ChargeRounds, 0.993, true},
	} {
		t.Run(test.trace, func(t *testing.T) {
			if test.isLong && os.Getenv("COURIER_LONG") == "" {
				t.Skip("skipped: a long trace, set COURIER_LONG=1")
			}
			path := needFile(t, filepath.Join(data, test.trace+".csv"))
			trace, err := elastic.ReadTraceFile(path)
			if err != nil {
				t.Fatal(err)
			}
			o := elastic.Options{GPUs: test.gpus, Slot: test.slot, Charge: test.charge}
			r := run(t, trace, rates, "deadline", o)
			if r.Ratio < test.bar {
				t.Errorf("ratio %.4f, want %g or more", r.Ratio, test.bar)
			}
			if r.BrokenRatio > 0.005 {
				t.Errorf("%d broken promises of %d jobs, want 0.5 %% or less", r.Broken, r.Jobs)
			}
			per := run(t, trace, rates, "elasticflow", o)
			if per.Kept >= r.Kept {
				t.Errorf("%d jobs kept, elasticflow keeps %d", r.Kept, per.Kept)
			}
		})
	}
}
