package evidence_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"courier/regress/evidence"
)

// runSimulation simulates runs on several lanes at once and applies them to a state as they become
// known: their epochs as they end, then their end. A second is a minute of the clock.
type runSimulation struct {
	t      *testing.T
	random *rand.Rand
	lanes  []time.Time // at which each is free
	runs   []evidence.Run
	state  *evidence.State
	node   string // of runs and questions
}

func newCluster(t *testing.T, seed uint64, lanes int) *runSimulation {
	c := &runSimulation{t: t, random: rand.New(rand.NewPCG(seed, 21))}
	for range lanes {
		c.lanes = append(c.lanes, time.Unix(0, 0).UTC())
	}
	return c
}

// run simulates a run of three epochs on the first free lane, and returns its end.
func (c *runSimulation) run(of evidence.Configuration, seconds float64) time.Time {
	lane := 0
	for i := range c.lanes {
		if c.lanes[i].Before(c.lanes[lane]) {
			lane = i
		}
	}
	name := fmt.Sprint("run ", len(c.runs))
	run := evidence.Run{ID: name, Configuration: of, Node: c.node, StartedAt: c.lanes[lane]}
	at := run.StartedAt
	for i, s := range draw(c.random, seconds, 3) {
		run.Epochs = append(run.Epochs, evidence.EpochRecord{Number: i + 1, Seconds: s})
		at = at.Add(time.Duration(s * float64(time.Minute)))
	}
	run.EndedAt, c.lanes[lane] = at, at
	c.runs = append(c.runs, run)
	return at
}

// known returns the runs at an instant; running ones have the epochs that have ended.
func (c *runSimulation) known(now time.Time) []evidence.Run {
	var all []evidence.Run
	for _, r := range c.runs {
		if r.EndedAt.After(now) {
			at, n := r.StartedAt, 0
			for _, e := range r.Epochs {
				if at = at.Add(time.Duration(e.Seconds * float64(time.Minute))); !at.After(now) {
					n++
				}
			}
			r.EndedAt, r.Epochs = time.Time{}, r.Epochs[:n]
		}
		if len(r.Epochs) > 0 {
			all = append(all, r)
		}
	}
	return all
}

// update applies the runs that are known at an instant.
func (c *runSimulation) update(runs []evidence.Run) {
	c.t.Helper()
	var err error
	if c.state, err = c.state.Update(context.Background(), runs, evidence.Options{}); err != nil {
		c.t.Fatal(err)
	}
}

// off returns the relative difference of the served median epoch time to a time.
func (c *runSimulation) off(of evidence.Configuration, seconds float64) float64 {
	c.t.Helper()
	p, err := evidence.Compile(c.state.Regressor)
	if err != nil {
		c.t.Fatal(err)
	}
	of.NodeType = p.NodeType(c.node, of.NodeType)
	got := p.Time(of, 1)
	if !got.Support.Promisable() {
		return math.Inf(1)
	}
	return got.Median()/seconds - 1
}

// settled returns a simulation after three runs of two models with five batch sizes each.
func settled(t *testing.T, seed uint64, lanes int) *runSimulation {
	c := newCluster(t, seed, lanes)
	var last time.Time
	for i := range 30 {
		if end := c.run(exampleConfiguration(i), seconds(i)); end.After(last) {
			last = end
		}
	}
	c.update(c.known(last))
	return c
}

// exampleConfiguration and seconds return the ith of ten configurations, of two models in turn.
func exampleConfiguration(i int) evidence.Configuration {
	return configurationOf([]string{"a", "b"}[i%2], 16<<(i/2%5), "x")
}

func seconds(i int) float64 {
	return []float64{4, 20}[i%2] * (1 + 64/float64(exampleConfiguration(i).BatchSize))
}

// A run that ends after others that started later is compared as well.
func TestState_NoticesDriftOfRunsThatOverlap(t *testing.T) {
	for seed := range uint64(5) {
		c := settled(t, seed, 4)
		order := c.random.Perm(10)
		var ends []time.Time
		for _, i := range order[:6] {
			ends = append(ends, c.run(exampleConfiguration(i), 1.4*seconds(i)))
		}
		for _, end := range ends {
			c.update(c.known(end))
		}
		for i := range 10 {
			if off := c.off(exampleConfiguration(i), 1.4*seconds(i)); math.Abs(off) > 0.1 {
				t.Errorf("seed %d: %v: relative error after six slower runs = %.2f, want at most 0.1",
					seed, exampleConfiguration(i), off)
			}
		}
		f := c.state.Factors()
		if len(f) == 0 || f[0].Kind != evidence.ScopeAll || f[0].Low > 1.4 || f[0].High < 1.4 {
			t.Errorf("seed %d: factors %+v, want one of all with 1.4 in its interval", seed, f)
		}
	}
}

// A new node that is slower than the others of its type is no drift: the predictions for the others
// stay the same, in whatever order the runs become known.
func TestState_ANodeThatDiffersIsNoDrift(t *testing.T) {
	for seed := range uint64(8) {
		c := newCluster(t, seed, 2)
		c.node = "fast"
		var last time.Time
		for i := range 30 {
			last = c.run(exampleConfiguration(i), seconds(i))
		}
		c.update(c.known(last))
		order := c.random.Perm(40)
		for _, k := range order {
			c.node = []string{"fast", "slow"}[k%2]
			factor := []float64{1, 1.5}[k%2]
			end := c.run(exampleConfiguration(k/2), factor*seconds(k/2))
			c.update(c.known(end))
		}
		for i := range 10 {
			c.node = "fast"
			if off := c.off(exampleConfiguration(i), seconds(i)); math.Abs(off) > 0.05 {
				t.Errorf("seed %d: %v on the fast node: relative error = %.2f, want at most 0.05",
					seed, exampleConfiguration(i), off)
			}
			c.node = "slow"
			if off := c.off(exampleConfiguration(i), 1.5*seconds(i)); math.Abs(off) > 0.08 {
				t.Errorf("seed %d: %v on the slow node: relative error = %.2f, want at most 0.08",
					seed, exampleConfiguration(i), off)
			}
		}
		if f := c.state.Factors(); len(f) > 0 {
			t.Errorf("seed %d: %d factors, want none: %+v", seed, len(f), f[0])
		}
	}
}

// One disturbed run is no drift: it changes no other prediction.
func TestState_OneDisturbedRunIsNoDrift(t *testing.T) {
	c := settled(t, 1, 1)
	c.update(c.known(c.run(exampleConfiguration(0), 3*seconds(0))))
	for _, i := range []int{1, 2, 4} {
		if off := c.off(exampleConfiguration(i), seconds(i)); math.Abs(off) > 0.05 {
			t.Errorf("relative error of %v = %.2f, want at most 0.05", exampleConfiguration(i), off)
		}
	}
	c.update(c.known(c.run(exampleConfiguration(0), seconds(0))))
	if off := c.off(exampleConfiguration(0), seconds(0)); off > 0.4 || len(c.state.Factors()) > 0 {
		t.Errorf("relative error after the next run = %.2f, want at most 0.4 and no drift", off)
	}
}

// A new model during a drift is learned at once, and the correction of the others stays; also when
// older runs are added, and when old runs are dropped.
func TestState_KeepsItsCorrectionWhateverBecomesKnown(t *testing.T) {
	c := settled(t, 2, 1)
	var end time.Time
	for _, i := range []int{0, 1, 2, 4} { // model a alone is slower
		end = c.run(exampleConfiguration(i), seconds(i)*[]float64{1.5, 1}[i%2])
	}
	c.update(c.known(end))
	check := func(label string) {
		t.Helper()
		for i, factor := range []float64{1.5, 1, 1.5, 1, 1.5, 1, 1.5, 1} {
			if off := c.off(exampleConfiguration(i), factor*seconds(i)); math.Abs(off) > 0.12 {
				t.Errorf("%s: relative error of %v = %.2f, want at most 0.12", label, exampleConfiguration(i), off)
			}
		}
	}
	check("drift")
	young := configurationOf("new", 32, "x")
	c.update(c.known(c.run(young, 7)))
	check("a new model")
	if off := c.off(young, 7); math.Abs(off) > 0.1 {
		t.Errorf("relative error of the new model = %.2f, want at most 0.1", off)
	}
	again := configurationOf("a", 1024, "x") // twice the largest batch size
	before := 4 * (1 + 64/1024.)
	c.update(c.known(c.run(again, 1.5*before)))
	check("a new batch size")
	if off := c.off(again, 1.5*before); math.Abs(off) > 0.1 {
		t.Errorf("relative error of the new batch size = %.2f, want at most 0.1: it ran after the drift",
			off)
	}
	for i := range 10 {
		late := c.runs[i]
		late.ID, late.EndedAt = fmt.Sprint("late ", i), late.EndedAt.Add(-time.Second)
		c.runs = append(c.runs, late)
	}
	c.update(c.known(end.Add(time.Hour)))
	check("late runs")
	c.runs = c.runs[5:]
	c.update(c.known(end.Add(time.Hour)))
	check("forgotten runs")
}

// Other orders of the runs and a restart change nothing.
func TestState_IsAFoldOverPlainState(t *testing.T) {
	c := settled(t, 3, 2)
	var ends []time.Time
	for i := range 4 {
		ends = append(ends, c.run(exampleConfiguration(i), 1.4*seconds(i)))
	}
	for _, end := range ends {
		runs := c.known(end)
		c.random.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		c.update(runs)
	}
	first, err := json.Marshal(c.state)
	if err != nil {
		t.Fatal(err)
	}
	var again evidence.State
	if err := json.Unmarshal(first, &again); err != nil {
		t.Fatal(err)
	}
	c.state = &again
	c.update(c.known(ends[3]))
	second, err := json.Marshal(c.state)
	if err != nil {
		t.Fatal(err)
	}
	if string(first) != string(second) {
		t.Errorf("an update with the same runs changed the state:\n%s\n%s", first, second)
	}
}

// A first fit may have a part of the history only: later imports become part of the base.
func TestState_AHistoryThatComesInPartsIsTheBase(t *testing.T) {
	c := newCluster(t, 5, 1)
	var ends []time.Time
	for i := range 30 {
		ends = append(ends, c.run(exampleConfiguration(i/3), seconds(i/3)))
	}
	c.update(c.known(ends[6])) // of two configurations, and some epochs of a third
	c.update(c.known(ends[29]))
	for n, i := range []int{9, 2} {
		c.update(c.known(c.run(exampleConfiguration(i), 1.45*seconds(i))))
		if n == 1 && len(c.state.Factors()) == 0 {
			t.Errorf("not corrected after %d slower runs", n+1)
		}
	}
	if off := c.off(exampleConfiguration(5), 1.45*seconds(5)); math.Abs(off) > 0.15 {
		t.Errorf("relative error of another configuration = %.2f after two slower runs, want <= 0.15",
			off)
	}
}
