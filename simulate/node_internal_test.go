package simulate

import (
	"fmt"
	"math"
	"testing"

	"courier/schemas"
)

// noiseless returns a job without noise. An epoch takes the given seconds without neighbours, and
// twice as long with one other process per core.
func noiseless(id string, startup float64, epochs int, seconds float64) *Submission {
	f := &Family{
		Model:           "m",
		StartupSeconds:  startup,
		TrainingSamples: 64,
		EpochSeconds:    TimeLaw{Constant: math.Log(seconds), Neighbours: 1},
	}
	j := &Submission{
		Request: schemas.JobRequest{
			JobID:      id,
			Model:      "m",
			Epochs:     epochs,
			BatchSizes: []int{64},
			CPUs:       schemas.CPUs{4},
		},
		family: f,
		noise:  runNoise{startup: 1},
	}
	for range epochs {
		j.noise.epochs, j.noise.accuracy = append(j.noise.epochs, 1), append(j.noise.accuracy, 0)
	}
	return j
}

// steps runs a node to its end, and returns the changes with their times.
func steps(n *node) string {
	text := ""
	for len(n.jobs) > 0 {
		r, _ := n.step()
		text += fmt.Sprintf("%s/%d at %.6g; ", r.id(), r.epoch, n.now)
	}
	return text
}

// Two jobs of 4 CPUs on 4 cores: with a neighbour, every epoch takes twice as long, because ln(1 +
// 4/4) = ln 2.
func TestNode_ContentionByHand(t *testing.T) {
	a, b := noiseless("a", 10, 2, 100), noiseless("b", 0, 1, 30)
	alone := jobCandidate{64, 4}
	for _, c := range []struct {
		name string
		run  func(n *node) string
		want string
	}{
		{"alone: 10 s of start-up and two epochs of 100 s", func(n *node) string {
			n.start(a, alone, 2, false)
			return steps(n)
		}, "a/0 at 10; a/1 at 110; a/2 at 210; "},
		// b arrives at 60, during the first epoch of a. It starts immediately and needs 60 s:
		// until 120 both are half as fast, and a completes 30 of its 50 s.
		{"a neighbour in the middle of an epoch", func(n *node) string {
			n.start(a, alone, 2, false)
			n.step()
			n.advance(60)
			n.start(b, alone, 1, false)
			return steps(n)
		}, "a/0 at 10; b/0 at 60; b/1 at 120; a/1 at 140; a/2 at 240; "},
		// b arrives at 4. a's start-up still ends at 10. b runs at half its rate from the start,
		// although a is only starting up, and ends at 64. By then a has completed 27 of 100 s.
		{"a start-up loads the node, and neighbours do not delay it", func(n *node) string {
			n.start(a, alone, 1, false)
			n.advance(4)
			n.start(b, alone, 1, false)
			return steps(n)
		}, "b/0 at 4; a/0 at 10; b/1 at 64; a/1 at 137; "},
	} {
		n := &node{WorldNode: &WorldNode{Name: "n", Cores: 4}}
		got := c.run(n)
		if c.name == "a neighbour in the middle of an epoch" {
			got = "a/0 at 10; " + got // the test has already made the first step
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
		if n.processes != 0 {
			t.Errorf("%s: %d processes remain, want 0", c.name, n.processes)
		}
	}
}

func TestNode_TryChangesNothing(t *testing.T) {
	n := &node{WorldNode: &WorldNode{Name: "n", Cores: 4}}
	n.start(noiseless("a", 10, 2, 100), jobCandidate{64, 4}, 2, false)
	before := n.copied()
	// b runs from 0 to 60. c arrives at 20, and everything becomes (1 + 8/4) times slower: b has 20
	// of 30 s left at 20, which take 60 s.
	b, c := noiseless("b", 0, 1, 30), noiseless("c", 0, 1, 1000)
	if got := n.try(b, jobCandidate{64, 4}, nil); math.Abs(got-60) > 1e-9 {
		t.Errorf("try = %g s, want 60", got)
	}
	if got := n.try(b, jobCandidate{64, 4}, []arrival{{0, 20, c, jobCandidate{64, 4}, 1}}); math.Abs(got-80) > 1e-9 {
		t.Errorf("try with a later neighbour = %g s, want 80", got)
	}
	if len(n.jobs) != 1 || n.jobs[0] != before.jobs[0] || n.processes != 4 || n.now != 0 {
		t.Errorf("the node is %+v after a try, want %+v", n, before)
	}
}

// The noise of an epoch has a median of 1 and the standard deviation of the world; all epochs of a
// run share its noise.
func TestNoise_Moments(t *testing.T) {
	noise := Noise{RunRatio: 0.04, EpochRatio: 0.03, Accuracy: 0.002}
	const runs = 20_000
	var sum, squares, products, starts, accuracy float64
	for i := range runs {
		l := noise.runNoise(1, fmt.Sprint("job-", i), 2)
		a, b := math.Log(l.epochs[0]), math.Log(l.epochs[1])
		sum, squares, products = sum+a, squares+a*a, products+a*b
		starts += math.Log(l.startup) * math.Log(l.startup)
		accuracy += l.accuracy[0] * l.accuracy[0]
	}
	for _, c := range []struct {
		what      string
		got, want float64
		within    float64
	}{
		{"mean of the logarithm", sum / runs, 0, 0.0015},
		{"deviation of an epoch", math.Sqrt(squares / runs), 0.05, 0.001},
		{"covariance of two epochs of a run", products / runs, 0.04 * 0.04, 0.0001},
		{"deviation of a start-up", math.Sqrt(starts / runs), 0.05, 0.001},
		{"deviation of an accuracy", math.Sqrt(accuracy / runs), 0.002, 0.00005},
	} {
		if math.Abs(c.got-c.want) > c.within {
			t.Errorf("%s = %g, want %g within %g", c.what, c.got, c.want, c.within)
		}
	}
}

// Noise depends on the job and the number of the epoch, not on earlier draws.
func TestNoise_BelongsToTheJob(t *testing.T) {
	noise := Noise{RunRatio: 0.04, EpochRatio: 0.03}
	short, long := noise.runNoise(1, "a", 3), noise.runNoise(1, "a", 9)
	for k := range short.epochs {
		if short.epochs[k] != long.epochs[k] {
			t.Errorf("noise of epoch %d = %g in a run of 3 epochs, %g in a run of 9; want equal noise",
				k+1, short.epochs[k],
				long.epochs[k])
		}
	}
	if other := noise.runNoise(1, "b", 3); other.epochs[0] == short.epochs[0] {
		t.Error("two jobs have the same noise")
	}
	if other := noise.runNoise(2, "a", 3); other.epochs[0] == short.epochs[0] {
		t.Error("two seeds give the same noise")
	}
}

// Each term of the law has the documented effect.
func TestTimeLaw(t *testing.T) {
	l := TimeLaw{
		Constant:    1,
		Batch:       -0.5,
		CPUs:        -0.25,
		InverseCPUs: 0.5,
		BatchCPUs:   0.125,
		Jobs:        0.5,
		Neighbours:  2,
	}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"64 on 1 CPU", l.alone(64, 1), math.Exp(1 + 0.5)},
		{"128 on 1 CPU", l.alone(128, 1), math.Exp(1.5 - 0.5*math.Ln2)},
		{"64 on 2 CPUs", l.alone(64, 2), math.Exp(1 - 0.25*math.Ln2 + 0.25)},
		{"128 on 2 CPUs", l.alone(128, 2), math.Exp(1 - 0.75*math.Ln2 + 0.25 + 0.125*math.Ln2*math.Ln2)},
		{"nobody beside", l.contention(4, 1, 4, 16), 1},
		{"three beside with 12 processes", l.contention(4, 4, 16, 16), 2 * math.Pow(1+12.0/16, 2)},
	} {
		if math.Abs(c.got/c.want-1) > 1e-12 {
			t.Errorf("%s: %g, want %g", c.what, c.got, c.want)
		}
	}
}

// A smaller batch is more accurate after the same number of epochs, and as accurate after the same
// number of iterations.
func TestAccuracyLaw(t *testing.T) {
	l := AccuracyLaw{Constant: 1.84, Iterations: -0.567}
	if a, b := l.after(60_000, 64, 1), l.after(60_000, 512, 8); math.Abs(a-b) > 1e-12 {
		t.Errorf("accuracy after equal iterations = %g and %g, want equal ones", a, b)
	}
	if a, b := l.after(60_000, 64, 10), l.after(60_000, 512, 10); !(a > b && a < 1 && b > 0) {
		t.Errorf("accuracy after equal epochs = %g with batch size 64, %g with 512; want more with 64",
			a, b)
	}
	if got := (&AccuracyLaw{Constant: 20}).after(1, 1, 1); got != 0 {
		t.Errorf("an error above 1 gives accuracy %g, want 0", got)
	}
}

// The simulated outcome of the actual choice equals its real outcome.
func TestPlay_HindsightEqualsTheOutcome(t *testing.T) {
	s := NewScenario(DefaultWorld(), 150, 0.95, 3)
	var p *play
	outcomes, err := s.Play(t.Context(), &worldRecorder{Rule: newRule(RuleRandom, 3), play: &p}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range outcomes {
		o := &outcomes[i]
		var later []arrival
		for k := i + 1; k < len(outcomes); k++ {
			if l := &outcomes[k]; l.Node == o.Node {
				later = append(later, arrival{
					k,
					s.Jobs[k].At,
					&s.Jobs[k],
					jobCandidate{l.BatchSize, l.CPUs},
					l.Epochs,
				})
			}
		}
		got := p.before[i].try(&s.Jobs[i], jobCandidate{o.BatchSize, o.CPUs}, later)
		if math.Abs(got-o.Seconds) > 1e-6 {
			t.Fatalf("%s took %g s, want %g s as of a separate simulation", o.JobID, o.Seconds, got)
		}
		if o.MetSLO && o.InHindsight.Accuracy < o.Accuracy {
			t.Fatalf("%s met its SLO with accuracy %g, but the best candidate is %+v", o.JobID,
				o.Accuracy, o.InHindsight)
		}
	}
}

// worldRecorder keeps the world of the play.
type worldRecorder struct {
	Rule
	play **play
}

func (s *worldRecorder) know(p *play) { *s.play = p }
