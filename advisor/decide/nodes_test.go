package decide_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var (
	fittedOnOne  = fitOn(advisortest.Small)
	fittedOnBoth = fitOn(advisortest.Small, advisortest.Large)
)

// fitOn returns a function that fits the regressors of the fixture on nodes.
func fitOn(nodes ...schemas.Hardware) advisortest.Fitting {
	return advisortest.FitOnce(func() []advisortest.Run { return advisortest.FixtureRuns(nodes...) })
}

// askOn decides about a job of 10 epochs with batch size 16 on 2 CPUs.
func askOn(r decide.Regressors, c *cluster.Cluster, now time.Time, nodes ...string) *schemas.Advice {
	q := schemas.JobRequest{
		JobID:      "asked",
		Model:      advisortest.Model,
		CPUs:       schemas.CPUs{2},
		BatchSizes: []int{16},
		Epochs:     10,
		SLO:        schemas.Duration(time.Hour),
		Confidence: 0.9,
		Nodes:      nodes,
	}
	return decide.Decide(decide.Ask(c, q.WithDefaults(), now), r, now)
}

// Regressors that were fitted on two different nodes, or on one, predict for nodes of these types.
// Nothing is known about nodes of another type.
func TestDecide_DistinguishesNodes(t *testing.T) {
	now := time.Unix(1_790_000_000, 0).UTC()
	one, both := advisortest.Load(t, fittedOnOne), advisortest.Load(t, fittedOnBoth)
	none := advisortest.Regressors(t)
	alone := advisortest.TrueStartup + 10*advisortest.TrueSeconds(16, 2, 1) // on small
	blind := func(s *schemas.Sample) { s.SpeedOperationsPerSecond = nil }
	other := func(change func(h *schemas.Hardware)) *schemas.Sample {
		h := advisortest.Small
		change(&h)
		return advisortest.SampleOf("n", h, nil)
	}
	for _, c := range []struct {
		name   string
		r      decide.Regressors
		sample *schemas.Sample
		want   float64 // seconds; 0: unknown
	}{
		{"like the one known", one, advisortest.SampleOf("n", advisortest.Small, nil), alone},
		{"unlike the one known", one, advisortest.SampleOf("n", advisortest.Large, nil), 0},
		{"the same but for its speed", one, other(func(h *schemas.Hardware) { h.Speed = 5e8 }), alone},
		{"the same but for its CPU model", one, other(func(h *schemas.Hardware) { h.CPUModel = "z" }), 0},
		{"the same but for its cores", one, other(func(h *schemas.Hardware) { h.Cores = 4 }), 0},
		{"no speed was measured", one, advisortest.SampleOf("n", advisortest.Small, blind), alone},
		{"nothing at all is told of it", one, nil, 0},
		{"the first of two", both, advisortest.SampleOf("n", advisortest.Small, nil), alone},
		{"the second of two", both, advisortest.SampleOf("n", advisortest.Large, nil), 2 * alone},
		{"unlike both", both, other(func(h *schemas.Hardware) { h.CPUModel = "z" }), 0},
		{"runs on unknown nodes only", none, advisortest.SampleOf("n", advisortest.Large, nil), 0},
	} {
		state := cluster.New()
		if c.sample != nil {
			state.Apply(c.sample, 1, now)
		}
		a := askOn(c.r, state, now, "n")
		if c.want == 0 {
			if a.Decision != schemas.Exploring || a.Chosen.PredictedSeconds != nil {
				t.Errorf("%s: got decision %s for %+v, want exploring", c.name, a.Decision, a.Chosen)
			}
			continue
		}
		if a.Decision != schemas.MeetsSLO || a.Chosen.Extrapolated {
			t.Errorf("%s: got decision %s for %+v, want a promise", c.name, a.Decision, a.Chosen)
		}
		if got := *a.Chosen.PredictedSeconds; math.Abs(got/c.want-1) > 0.1 {
			t.Errorf("%s: %.2f s, want %.2f", c.name, got, c.want)
		}
	}
}

// clusterAfterJob runs a job of two epochs on node n. Samples or other jobs report these speeds of
// the node before the job and after each epoch.
func clusterAfterJob(byJobs bool, speeds ...float64) *cluster.Cluster {
	now, state := time.Unix(1_790_000_000, 0).UTC(), cluster.New()
	sequence := uint64(0)
	apply := func(e schemas.Event) {
		sequence++
		state.Apply(e, sequence, now.Add(time.Duration(sequence)*time.Second))
	}
	start := func(job string, h schemas.Hardware) *schemas.Started {
		e := advisortest.StartedEvent(job, 1)
		e.Nodes = []string{"n"}
		e.SetHardware([]schemas.Hardware{h})
		apply(e)
		return e
	}
	tell := func(speed float64) {
		h := advisortest.Small
		if h.Speed = speed; !byJobs {
			apply(advisortest.SampleOf("n", h, nil))
			return
		}
		other := start(fmt.Sprint("other-", sequence), h)
		apply(&schemas.Ended{
			JobStamp: other.JobStamp,
			Outcome:  schemas.EventFailed,
			Setting:  other.Setting,
		})
	}
	tell(speeds[0])
	begin := start("job", schemas.Hardware{
		Cores:    advisortest.Small.Cores,
		CPUModel: advisortest.Small.CPUModel,
		Speed:    speeds[0],
	})
	for i, speed := range speeds[1:] {
		e := advisortest.EpochEvent("job", 1, uint32(i+1))
		e.Nodes = begin.Nodes
		apply(e)
		tell(speed)
	}
	return state
}

// A node is recognized as the node that jobs ran on although its measured speed has changed.
func TestDecide_RecognizesANodeWithANewSpeed(t *testing.T) {
	now := time.Unix(1_790_000_010, 0).UTC()
	half := advisortest.Small
	half.Speed /= 2
	one := advisortest.Load(t, fittedOnOne)
	two := advisortest.Load(t, fitOn(advisortest.Small, half))
	for _, c := range []struct {
		name   string
		r      decide.Regressors
		byJobs bool
		speeds []float64
		like   []float64 // reported speeds that give the same advice
	}{
		{"slower", one, false, []float64{1e9, 5e8, 5e8}, []float64{1e9, 1e9, 1e9}},
		{"faster after its epochs", two, false, []float64{5e8, 5e8, 1e9}, []float64{1e9, 1e9, 1e9}},
		{
			"faster after its epochs, as another job tells", two, true, []float64{5e8, 5e8, 1e9},
			[]float64{1e9, 1e9, 1e9},
		},
	} {
		was, like := clusterAfterJob(c.byJobs, c.speeds...), clusterAfterJob(c.byJobs, c.like...)
		got, want := askOn(c.r, was, now, "n"), askOn(c.r, like, now, "n")
		if got.Decision != schemas.MeetsSLO || got.Chosen.Extrapolated ||
			got.Chosen.UpperBoundSeconds == nil {
			t.Errorf("%s: %s, %+v, want a promise", c.name, got.Decision, got.Chosen)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: advice differs from that with the speed known in advance (-want +got):\n%s",
				c.name, d)
		}
		rest := &schemas.Advice{JobStamp: schemas.JobStamp{JobID: "job", Run: 1}, ElapsedSeconds: 9}
		if d := cmp.Diff(decide.Decide(decide.Recall(like, rest), c.r, now),
			decide.Decide(decide.Recall(was, rest), c.r, now)); d != "" {
			t.Errorf("%s: advice for the running job differs (-known in advance +got):\n%s",
				c.name, d)
		}
	}
}

// Three jobs run on two different nodes: a on small, b on both, c on large. With a and c, b has 2
// processes per core on small and 0.6 on large.
func TestDecide_UsesTheFullestNode(t *testing.T) {
	now, state := time.Unix(1_790_000_000, 0).UTC(), cluster.New()
	state.Apply(advisortest.SampleOf("small", advisortest.Small, nil), 1, now)
	state.Apply(advisortest.SampleOf("large", advisortest.Large, nil), 2, now)
	run := func(id string, cpus uint32, sequence uint64, node string, h schemas.Hardware) {
		e := advisortest.StartedEvent(id, 1)
		e.CPUs, e.Nodes, e.NodeCores = cpus, []string{node}, h.Cores
		state.Apply(e, sequence, now)
	}
	run("a", 2, 3, "small", advisortest.Small)
	run("c", 8, 4, "large", advisortest.Large)
	r := advisortest.Load(t, fittedOnBoth)
	both := askOn(r, state, now, "small", "large")
	if l := both.Load; l.ConcurrentJobs != 2 || l.Processes != 4 || l.ProcessesPerCore != 2 {
		t.Errorf("load on both nodes: got %+v, want 4 processes on 2 cores as on small", l)
	}
	if other := askOn(r, state, now, "large").Load; other.Processes != 10 ||
		other.ProcessesPerCore != 10.0/16 {
		t.Errorf("load on large: got %+v, want 10 processes on 16 cores", other)
	}
	on := askOn(r, state, now, "small")
	if x, y := *both.Chosen.PredictedSeconds, *on.Chosen.PredictedSeconds; x != y {
		t.Errorf("got %.2f s on both nodes and %.2f s on the fuller node, want equal times", x, y)
	}
}
