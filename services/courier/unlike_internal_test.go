package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"courier/advisor"
	"courier/advisor/cluster"
	"courier/regress"
	"courier/schemas"
	"courier/trainer"
)

// unlikeFleet is a cluster of different nodes, and the state of its advisor and trainer, which only
// comes from events.
type unlikeFleet struct {
	t          *testing.T
	random     *rand.Rand
	cluster    *cluster.Cluster
	past       *trainer.Past
	regressors advisor.Regressors
	manifest   *regress.Manifest // manifest of the regressor of epoch times
	machines   map[string]unlikeMachine
	now        time.Time
	sequence   uint64
	jobs       int
	unlearned  bool // the trainer does not receive events
}

// unlikeMachine is a node with its true and its reported hardware.
type unlikeMachine struct {
	truth           schemas.Hardware
	sampled, stated schemas.Hardware // by a collector, and by runners; zero: nothing
}

func (f *unlikeFleet) apply(e schemas.Event) {
	f.sequence++
	f.cluster.Apply(e, f.sequence, f.now)
	if !f.unlearned {
		f.past.Add(e, f.sequence)
	}
}

// sample publishes a sample of every node.
func (f *unlikeFleet) sample() {
	for name, m := range f.machines {
		if m.sampled == (schemas.Hardware{}) {
			continue
		}
		e := &schemas.Sample{Node: name, Cores: m.sampled.Cores, CPUModel: m.sampled.CPUModel}
		if m.sampled.Speed > 0 {
			// measured again, as after a restart
			speed := m.sampled.Speed * math.Exp(0.01*f.random.NormFloat64())
			e.SpeedOperationsPerSecond = &speed
		}
		f.apply(e)
	}
}

// unlikeJob is a requested job of some epochs, possibly with a neighbour.
type unlikeJob struct {
	node        string
	batch, cpus int
	beside      int // processes of a permanent neighbour; 0: none
}

const unlikeEpochs = 3

// seconds returns the time of an epoch: processes share the cores if there are more processes.
func (f *unlikeFleet) seconds(j unlikeJob) float64 {
	m := f.machines[j.node].truth
	crowd := max(1, float64(j.cpus+j.beside)/float64(m.Cores))
	return 60 * (1 + 32/float64(j.batch)) / math.Pow(float64(j.cpus), 0.8) * crowd * 1e9 / m.Speed
}

func (f *unlikeFleet) draw(nodes ...string) unlikeJob {
	pick := func(from ...int) int { return from[f.random.IntN(len(from))] }
	return unlikeJob{nodes[f.random.IntN(len(nodes))], pick(16, 64, 256), pick(1, 2), pick(0, 2, 4)}
}

// advisedOutcome is an advice with the outcome of its job.
type advisedOutcome struct {
	decision     schemas.Decision
	extrapolated bool
	bound        *float64 // upper bound in seconds; nil: none
	predicted    float64
	measured     float64
}

// run submits a job, simulates it, and returns its outcome.
func (f *unlikeFleet) run(j unlikeJob) advisedOutcome {
	stamp := func(id, job string, run uint32) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: f.now}, JobID: job, Run: run}
	}
	nodes, told := []string{j.node}, f.machines[j.node].stated
	start := func(job string, set schemas.Setting) {
		e := &schemas.Started{
			JobStamp:  stamp(schemas.StartedID(job, 1), job, 1),
			Setting:   set,
			NodeCores: f.machines[j.node].truth.Cores,
		}
		if told != (schemas.Hardware{}) {
			e.SetHardware([]schemas.Hardware{told})
		}
		f.apply(e)
	}
	f.jobs++
	other := schemas.Setting{
		Model:     "neighbour",
		BatchSize: 1,
		CPUs:      uint32(j.beside),
		Epochs:    1,
		Nodes:     nodes,
	}
	neighbour := fmt.Sprint("neighbour-", f.jobs)
	if j.beside > 0 {
		start(neighbour, other)
	}
	job := fmt.Sprint("job-", f.jobs)
	answer := f.ask(job, j)
	set := schemas.Setting{
		Model:     "m",
		BatchSize: uint32(j.batch),
		CPUs:      uint32(j.cpus),
		Epochs:    unlikeEpochs,
		Nodes:     nodes,
	}
	start(job, set)
	own := f.seconds(j) * math.Exp(0.03*f.random.NormFloat64())
	for n := range uint32(unlikeEpochs) {
		seconds, accuracy := own*math.Exp(0.03*f.random.NormFloat64()), 0.9-0.0001*float64(j.batch)
		answer.measured += seconds
		f.now = f.now.Add(time.Duration(seconds * float64(time.Second)))
		f.apply(&schemas.Epoch{
			JobStamp:        stamp(schemas.EpochID(job, 1, n+1), job, 1),
			Setting:         set,
			Epoch:           n + 1,
			DurationSeconds: seconds,
			DurationSource:  schemas.DurationReported,
			NodeCores:       f.machines[j.node].truth.Cores,
			Accuracy:        &accuracy,
		})
	}
	f.apply(&schemas.Ended{
		JobStamp:        stamp(schemas.EndedID(job, 1, schemas.EventFinished), job, 1),
		Outcome:         schemas.EventFinished,
		DurationSeconds: answer.measured,
		EpochsDone:      unlikeEpochs,
		Setting:         set,
	})
	if j.beside > 0 {
		f.apply(&schemas.Ended{
			JobStamp: stamp(schemas.EndedID(neighbour, 1, schemas.EventFailed), neighbour, 1),
			Outcome:  schemas.EventFailed,
			Setting:  other,
		})
	}
	f.now = f.now.Add(time.Second)
	return answer
}

// ask requests advice for a job with an SLO that the job meets.
func (f *unlikeFleet) ask(job string, j unlikeJob) (answer advisedOutcome) {
	if f.regressors.EpochTime == nil {
		return answer
	}
	q := schemas.JobRequest{
		JobID:      job,
		Model:      "m",
		BatchSizes: []int{j.batch},
		CPUs:       schemas.CPUs{j.cpus},
		Epochs:     unlikeEpochs,
		Nodes:      []string{j.node},
		SLO:        schemas.Duration(24 * time.Hour),
		Confidence: 0.9,
	}.WithDefaults()
	a := advisor.Decide(advisor.Ask(f.cluster, q, f.now), f.regressors, f.now)
	answer.decision, answer.extrapolated, answer.bound = a.Decision, a.Chosen.Extrapolated, a.Chosen.UpperBoundSeconds
	answer.predicted = *a.Chosen.PredictedSeconds
	return answer
}

// fit fits regressors on all events, as the trainer does.
func (f *unlikeFleet) fit() {
	f.t.Helper()
	use := func(target string) *advisor.LoadedRegressor {
		fitted, err := trainer.Fit(context.Background(), target, f.past.Examples(target), trainer.Options{
			Seed: 1,
		})
		if err != nil {
			f.t.Fatal(err)
		}
		manifest, err := fitted.EncodeManifest()
		if err != nil {
			f.t.Fatal(err)
		}
		p, err := regress.Load(fitted.EncodeModel(), manifest)
		if err != nil {
			f.t.Fatal(err)
		}
		if target == schemas.TargetEpochTime {
			f.manifest = p.Manifest()
		}
		r, err := advisor.NewRegressor(p, target)
		if err != nil {
			f.t.Fatal(err)
		}
		return r
	}
	f.regressors.EpochTime, f.regressors.Accuracy = use(schemas.TargetEpochTime), use(schemas.TargetAccuracy)
}

// recorded summarizes outcomes.
type recorded struct {
	mape      float64 // mean absolute error / measured
	flagged   float64 // share of extrapolations
	promised  float64 // share with an upper bound
	kept      float64 // share within the upper bound, of those with one
	predicted float64 // median of predicted / measured
}

func (r recorded) String() string {
	return fmt.Sprintf("MAPE %.1f %%, flagged %.2f, promised %.2f, kept %.2f, predicted/measured"+
		" %.2f",
		100*r.mape, r.flagged, r.promised, r.kept, r.predicted)
}

func record(all []advisedOutcome) (r recorded) {
	var ratios []float64
	n, within := float64(len(all)), 0.0
	for _, a := range all {
		r.mape += math.Abs(a.predicted/a.measured-1) / n
		ratios = append(ratios, a.predicted/a.measured)
		if a.extrapolated {
			r.flagged += 1 / n
		}
		if a.bound != nil && a.decision == schemas.MeetsSLO {
			r.promised += 1 / n
			if a.measured <= *a.bound {
				within++
			}
		}
	}
	slices.SortFunc(ratios, cmp.Compare)
	r.predicted = ratios[len(ratios)/2]
	if r.promised > 0 {
		r.kept = within / (r.promised * n)
	}
	return r
}

// trial runs jobs whose events the trainer does not receive.
func (f *unlikeFleet) trial(jobs int, nodes ...string) recorded {
	f.unlearned = true
	defer func() { f.unlearned = false }()
	var all []advisedOutcome
	for range jobs {
		all = append(all, f.run(f.draw(nodes...)))
	}
	return record(all)
}

// learn runs jobs and fits on all events.
func (f *unlikeFleet) learn(jobs int, nodes ...string) {
	f.t.Helper()
	for range jobs {
		f.run(f.draw(nodes...))
	}
	f.fit()
}

func newUnlikeFleet(t *testing.T, seed uint64) *unlikeFleet {
	return &unlikeFleet{
		t:       t,
		random:  rand.New(rand.NewPCG(seed, 2)),
		cluster: cluster.New(),
		past:    trainer.NewPast(),
		now:     time.Unix(1_790_000_000, 0).UTC(),
	}
}

// unlikeCase describes a node b that joins two equal nodes a.
type unlikeCase struct {
	name  string
	b     schemas.Hardware
	since bool    // only the last job on each a has hardware in its events
	blind bool    // without a collector
	jobs  int     // number of jobs that b needs
	mape  float64 // maximum error of later jobs on b
}

// play adds b and returns the outcomes: on a, on b after 1, 4 and 7 jobs there and after sufficient
// jobs, and on a again.
func (c *unlikeCase) play(t *testing.T, seed uint64) (on []recorded) {
	reported := func(h schemas.Hardware) unlikeMachine {
		if c.blind {
			return unlikeMachine{truth: h, stated: schemas.Hardware{Cores: h.Cores, CPUModel: h.CPUModel}}
		}
		return unlikeMachine{h, h, h}
	}
	a := schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 1e9}
	f := newUnlikeFleet(t, seed)
	f.machines = map[string]unlikeMachine{"a1": reported(a), "a2": reported(a), "b": reported(c.b)}
	if c.since {
		f.machines["a1"], f.machines["a2"] = unlikeMachine{truth: a}, unlikeMachine{truth: a}
	}
	f.learn(58, "a1", "a2")
	f.machines["a1"], f.machines["a2"] = reported(a), reported(a)
	f.sample()
	f.learn(1, "a1")
	f.learn(1, "a2")
	on = append(on, f.trial(100, "a1", "a2"))
	f.run(f.draw("b")) // without a collector the first job reports the hardware of b
	for range 3 {
		on = append(on, f.trial(60, "b"))
		f.sample()
		f.learn(3, "b")
	}
	if c.jobs > 10 {
		f.learn(c.jobs-10, "b")
	}
	on = append(on, f.trial(200, "b"), f.trial(100, "a1", "a2"))
	t.Logf("fitted a %s with the features %v", f.manifest.Family, names(f))
	return on
}

// A different node joins equal nodes. It gets no upper bounds until ten jobs have run there, or
// twenty if it has a different number of cores. Afterwards its predictions are about as accurate as
// for the other nodes, and the bounds hold. COURIER_LONG repeats the test ten times.
func TestUnlikeNode_GetsNoBoundsUntilItIsLearned(t *testing.T) {
	if testing.Short() {
		t.Skip("slow: fits dozens of regressors")
	}
	plays, least := uint64(1), 0.75
	if os.Getenv("COURIER_LONG") != "" {
		plays, least = 10, 0.85
	}
	y := schemas.Hardware{Cores: 4, CPUModel: "y", Speed: 6e8}
	for _, c := range []unlikeCase{
		{name: "another CPU, slower", b: y, jobs: 10, mape: 0.06},
		{
			name: "the same CPU, slower",
			b:    schemas.Hardware{Cores: 4, CPUModel: "x", Speed: 6e8},
			jobs: 10,
			mape: 0.06,
		},
		{
			name: "another CPU, more cores, slower",
			b:    schemas.Hardware{Cores: 16, CPUModel: "y", Speed: 6e8},
			jobs: 20,
			mape: 0.08,
		},
		{
			name: "another CPU, fewer cores, faster",
			b:    schemas.Hardware{Cores: 2, CPUModel: "y", Speed: 1.5e9},
			jobs: 20,
			mape: 0.08,
		},
		{name: "another CPU, slower; no collector", b: y, blind: true, jobs: 10, mape: 0.06},
		{
			name:  "another CPU, slower; nothing was told of nodes before",
			b:     y,
			since: true,
			jobs:  10,
			mape:  0.06,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sum []recorded
			for seed := range plays {
				on := c.play(t, seed)
				for i, r := range on {
					if i == len(sum) {
						sum = append(sum, recorded{})
					}
					sum[i].add(r, float64(plays))
				}
			}
			for i, where := range []string{
				"a",
				"b after 1 job",
				"b after 4 jobs",
				"b after 7 jobs",
				fmt.Sprintf("b after %d jobs", c.jobs),
				"a at the end",
			} {
				t.Logf("%-15s %v", where, sum[i])
			}
			for i, r := range sum[1:4] {
				if r.promised > 0 || r.flagged < 1 {
					t.Errorf("after %d jobs on the new node: %v, want no upper bound", 3*i+1, r)
				}
			}
			if r := sum[4]; r.mape > c.mape || r.promised < 0.9 || r.kept < least {
				t.Errorf("after %d jobs: %v; want an error of at most %.2f, and bounds that hold", c.jobs, r,
					c.mape)
			}
			for _, r := range []recorded{sum[0], sum[5]} {
				if r.promised < 1 || r.kept < 0.8 || r.mape > 0.06 {
					t.Errorf("on the equal nodes: %v, want bounds that hold", r)
				}
			}
		})
	}
}

// add adds the contribution of a play to a mean.
func (r *recorded) add(o recorded, plays float64) {
	r.mape, r.flagged, r.promised, r.kept, r.predicted = r.mape+o.mape/plays, r.flagged+
		o.flagged/plays, r.promised+o.promised/plays, r.kept+o.kept/plays, r.predicted+
		o.predicted/plays
}

// If events have no hardware fields, all nodes count as equal.
func TestUnlikeNode_WithoutHardwareCountsAsEqual(t *testing.T) {
	if testing.Short() {
		t.Skip("slow fit")
	}
	a, b := schemas.Hardware{Cores: 4, Speed: 1e9}, schemas.Hardware{Cores: 4, Speed: 6e8}
	f := newUnlikeFleet(t, 1)
	f.machines = map[string]unlikeMachine{"a": {truth: a}, "b": {truth: b}}
	f.learn(60, "a")
	if got := fmt.Sprint(names(f)); got != "[batch_size cpus concurrent_jobs processes model cores]" {
		t.Errorf("features %s, want those of the paper and the cores of old events", got)
	}
	if on := f.trial(60, "b"); on.promised < 1 || on.mape < 0.2 {
		t.Errorf("on a slower node without hardware in its events: %v, want wrong bounds",
			on)
	}
}

func names(f *unlikeFleet) (all []string) {
	for _, x := range f.manifest.Features {
		all = append(all, x.Name)
	}
	return all
}
