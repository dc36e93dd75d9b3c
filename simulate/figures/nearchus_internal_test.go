package figures

import (
	"math"
	"testing"
)

func TestDraw_KeepsThePopulation(t *testing.T) {
	p := population{200, 90, 0.6, 0.9}
	jobs := p.draw(1)
	for i := range jobs {
		j := &jobs[i]
		if j.guessRatio < 0.6 || j.guessRatio > 0.9 || j.workSeconds < 300 || j.workSeconds > 2400 {
			t.Errorf("job %d: guess at %.2f of the best, %.0f s of work", i, j.guessRatio, j.workSeconds)
		}
		if i > 0 && j.arrivalSeconds < jobs[i-1].arrivalSeconds {
			t.Errorf("job %d arrives before the previous one", i)
		}
	}
	if gap := jobs[199].arrivalSeconds / 200; math.Abs(gap-90) > 25 {
		t.Errorf("mean gap %.0f s, want about 90 s", gap)
	}
	again, first := &p.draw(1)[7], &jobs[7]
	if again.truth.Coefficients != first.truth.Coefficients || again.guess != first.guess {
		t.Error("the same seed draws other jobs")
	}
}

// Without a policy a job runs as long as its work in the guessed shape, and the queue is first in,
// first out.
func TestSimulateResizing_KeepsGuesses(t *testing.T) {
	jobs := population{40, 70, 0, 1}.draw(1)
	o := simulateResizing(jobs, knowsNothing, 1)
	start := 0.0
	for i := range o.jobs {
		j := &o.jobs[i]
		if math.Abs(j.runSeconds-j.workSeconds) > 1e-6*j.workSeconds+1e-6 {
			t.Errorf("job %d runs %.3f s, want %.3f s", i, j.runSeconds, j.workSeconds)
		}
		if begin := j.arrivalSeconds + j.queueSeconds; begin < start {
			t.Errorf("job %d starts before the previous one", i)
		} else {
			start = begin
		}
	}
	if o.peakCores > 256 {
		t.Errorf("%d cores held, want at most 256", o.peakCores)
	}
}

// The bars of the simulation at a mean load: the published reductions, 80 % of the true model's gain
// with a learned one, and at most one of 120 jobs that is more than 3 % slower than in its guessed
// shape.
func TestSimulateResizing_ReachesThePublishedReductions(t *testing.T) {
	jobs := population{120, 95, 0.6, 0.9}.draw(1)
	before := simulateResizing(jobs, knowsNothing, 1)
	known := simulateResizing(jobs, knowsTruth, 1)
	learned := simulateResizing(jobs, learns, 1)
	for name, o := range map[string]*resizeOutcome{"true": known, "learned": learned} {
		e := before.effects(o)
		completion, queueing := e[effectCompletion], e[effectQueueing]
		if completion < 0.356 || queueing < 0.678 {
			t.Errorf("%s model: completion -%.3f, queueing -%.3f, want -0.356 and -0.678", name, completion, queueing)
		}
		if o.peakCores > 256 {
			t.Errorf("%s model: %d cores held, want at most 256", name, o.peakCores)
		}
		if slower := e[effectSlower]; slower > 1.5/120 {
			t.Errorf("%s model: %.3f of the jobs are slower than in their guessed shapes", name, slower)
		}
	}
	ofTrue := before.effects(known)[effectCompletion]
	if ofLearned := before.effects(learned)[effectCompletion]; ofLearned < 0.8*ofTrue {
		t.Errorf("learned model: completion -%.3f, want 80 %% of -%.3f", ofLearned, ofTrue)
	}
}
