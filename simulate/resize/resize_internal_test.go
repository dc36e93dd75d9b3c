package resize

import (
	"math"
	"testing"
)

func TestDraw_KeepsThePopulation(t *testing.T) {
	p := Population{Jobs: 200, MeanGapSeconds: 90, LowGuessRatio: 0.6, HighGuessRatio: 0.9}
	jobs := p.Draw(1)
	for i := range jobs {
		j := &jobs[i]
		if j.GuessRatio < 0.6 || j.GuessRatio > 0.9 || j.WorkSeconds < 300 || j.WorkSeconds > 2400 {
			t.Errorf("job %d: guess at %.2f of the best, %.0f s of work", i, j.GuessRatio, j.WorkSeconds)
		}
		if i > 0 && j.ArrivalSeconds < jobs[i-1].ArrivalSeconds {
			t.Errorf("job %d arrives before the previous one", i)
		}
	}
	if gap := jobs[199].ArrivalSeconds / 200; math.Abs(gap-90) > 25 {
		t.Errorf("mean gap %.0f s, want about 90 s", gap)
	}
	again, first := &p.Draw(1)[7], &jobs[7]
	if again.Truth.Coefficients != first.Truth.Coefficients || again.Guess != first.Guess {
		t.Error("the same seed draws other jobs")
	}
}

// Without a policy a job runs as long as its work in the guessed shape, and the queue is first in,
// first out.
func TestSimulate_KeepsGuesses(t *testing.T) {
	jobs := Population{Jobs: 40, MeanGapSeconds: 70, HighGuessRatio: 1}.Draw(1)
	o := Simulate(jobs, KnowsNothing, 1)
	start := 0.0
	for i := range o.Jobs {
		j := &o.Jobs[i]
		if math.Abs(j.RunSeconds-j.Job.WorkSeconds) > 1e-6*j.Job.WorkSeconds+1e-6 {
			t.Errorf("job %d runs %.3f s, want %.3f s", i, j.RunSeconds, j.Job.WorkSeconds)
		}
		if begin := j.Job.ArrivalSeconds + j.QueueSeconds; begin < start {
			t.Errorf("job %d starts before the previous one", i)
		} else {
			start = begin
		}
	}
	if o.PeakCores > 256 {
		t.Errorf("%d cores held, want at most 256", o.PeakCores)
	}
}

// The bars of the simulation at a mean load: the published reductions, 80 % of the true model's gain
// with a learned one, and at most one of 120 jobs that is more than 3 % slower than in its guessed
// shape.
func TestSimulate_ReachesThePublishedReductions(t *testing.T) {
	jobs := Population{Jobs: 120, MeanGapSeconds: 95, LowGuessRatio: 0.6, HighGuessRatio: 0.9}.Draw(1)
	before := Simulate(jobs, KnowsNothing, 1)
	known := Simulate(jobs, KnowsTruth, 1)
	learned := Simulate(jobs, KnowsTelemetry, 1)
	for name, o := range map[string]*Outcome{"true": known, "learned": learned} {
		e := reductions(before, o)
		completion, queueing := e[effectCompletion], e[effectQueueing]
		if completion < 0.356 || queueing < 0.678 {
			t.Errorf("%s model: completion -%.3f, queueing -%.3f, want -0.356 and -0.678", name, completion, queueing)
		}
		if o.PeakCores > 256 {
			t.Errorf("%s model: %d cores held, want at most 256", name, o.PeakCores)
		}
		if slower, _ := o.slower(); slower > 1.5/120 {
			t.Errorf("%s model: %.3f of the jobs are slower than in their guessed shapes", name, slower)
		}
	}
	ofTrue := reductions(before, known)[effectCompletion]
	if ofLearned := reductions(before, learned)[effectCompletion]; ofLearned < 0.8*ofTrue {
		t.Errorf("learned model: completion -%.3f, want 80 %% of -%.3f", ofLearned, ofTrue)
	}
}
