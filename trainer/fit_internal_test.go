package trainer

import (
	"fmt"
	"math"
	"testing"
	"time"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"
)

// epochExamples returns the epochs of a run of a model: as many as there are seconds.
func epochExamples(model string, run int, batch uint32, begin time.Time, seconds ...float64) []Example {
	var all []Example
	at, end := begin, begin
	for _, s := range seconds {
		end = end.Add(time.Duration(s * float64(time.Second)))
	}
	for i, s := range seconds {
		at = at.Add(time.Duration(s * float64(time.Second)))
		all = append(all, Example{
			Job: fmt.Sprint(model, "-", batch, "-", run), Model: model, Nodes: []string{"node"},
			Features: schemas.Features{
				BatchSize: batch, CPUs: 1, EpochsDone: uint32(i + 1),
				Load: schemas.Load{ConcurrentJobs: 1, Processes: 1},
			},
			Value: s, At: at, EndedAt: end, Seconds: s,
		})
	}
	return all
}

// fitFiles fits a target; before may be nil.
func fitFiles(t *testing.T, target string, examples []Example, before *treefile.Manifest) Files {
	t.Helper()
	files, err := Fit(t.Context(), target, examples, before, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// fitEpochTimes fits epoch times; before may be nil.
func fitEpochTimes(t *testing.T, examples []Example, before *treefile.Manifest) *treefile.Manifest {
	t.Helper()
	files := fitFiles(t, schemas.TargetEpochTime, examples, before)
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	return file.Manifest()
}

// Every run counts immediately, and models whose times differ by a factor of a thousand do not
// influence each other.
func TestFit_LearnsEachModelFromItsFirstRun(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	examples := append(epochExamples("quick", 1, 64, begin, 10, 10.2, 9.8),
		epochExamples("slow", 1, 64, begin, 10_000)...)
	p, err := evidence.Compile(stateOf(fitEpochTimes(t, examples, nil)).Regressor)
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]float64{"quick": 10, "slow": 10_000} {
		c := evidence.Configuration{
			Model: model, BatchSize: 64, CPUs: 1, NodeLoad: evidence.NodeLoad{ConcurrentJobs: 1},
		}
		got := p.Time(c, 1)
		if math.Abs(got.Median()/want-1) > 0.02 || got.Counts.Configuration != 1 {
			t.Errorf("%s: %g s from runs %+v, want about %g s from one run", model, got.Median(),
				got.Counts, want)
		}
	}
}

// Runs whose epochs grow, beside jobs that come and go, have the same time beside any number of jobs that does
// not slow them down, and runs that these slow down have theirs. Each counts with all of its epochs under each
// load that lasted for a quarter of it.
func TestFit_ARunUnderChangingLoadsIsWhole(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	loads := [][]float64{{1, 1, 4, 4, 1, 4}, {4, 4, 1, 1, 4, 1}, {1, 4, 1, 4, 4, 1}, {4, 1, 4, 1, 1, 1}}
	for name, slowed := range map[string]float64{"sleeping": 1, "computing": 2} {
		var examples []Example
		for run, jobs := range loads {
			seconds := []float64{1, 2, 3, 4, 5, 6}
			for i := range jobs {
				if jobs[i] > 1 {
					seconds[i] *= slowed
				}
			}
			of := epochExamples(name, run, 64, begin.Add(time.Duration(run)*time.Hour), seconds...)
			for i := range of {
				of[i].Features.Load = schemas.Load{ConcurrentJobs: jobs[i], Processes: jobs[i]}
			}
			examples = append(examples, of...)
		}
		p, err := evidence.Compile(stateOf(fitEpochTimes(t, examples, nil)).Regressor)
		if err != nil {
			t.Fatal(err)
		}
		for jobs, want := range map[float64]float64{1: 21, 4: 21 * slowed} {
			c := evidence.Configuration{Model: name, BatchSize: 64, CPUs: 1}
			c.ConcurrentJobs = jobs
			got := p.Time(c, 6)
			if math.Abs(got.Median()/want-1) > 0.03 || got.Counts.Configuration < len(loads)-1 {
				t.Errorf("%s beside %g jobs: %.1f s from runs %+v, want about %g s", name, jobs-1,
					got.Median(), got.Counts, want)
			}
		}
	}
}

// The file alone, as any reader of such files predicts it, has the served medians of the
// configurations of the runs.
func TestFit_TheFileHasTheServedMedians(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	seconds := map[int]float64{}
	var examples []Example
	for i, batch := range []uint32{16, 32, 64, 128, 256} {
		law := 4 + 400/float64(batch)
		seconds[int(batch)] = law
		examples = append(examples,
			epochExamples("mlp", i, batch, begin.Add(time.Duration(i)*time.Hour), law, law*1.01)...)
	}
	files := fitFiles(t, schemas.TargetEpochTime, examples, nil)
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	p, err := evidence.Compile(stateOf(file.Manifest()).Regressor)
	if err != nil {
		t.Fatal(err)
	}
	for batch, law := range seconds {
		c := evidence.Configuration{Model: "mlp", BatchSize: batch, CPUs: 1}
		c.ConcurrentJobs = 1
		e := p.Epochs(c, 1)
		// model, node type, CPUs, concurrent jobs, processes per core, epochs, batch size
		got, err := file.Predict([]float64{0, 0, 1, 1, 0, 1, float64(batch)})
		if want := math.Exp(e.Location); err != nil || math.Abs(got/want-1) > 1e-12 || math.Abs(got/law-1) > 0.05 {
			t.Errorf("batch size %d: the file has %g s (%v), want the served %g s, about %g s",
				batch, got, err, want, law)
		}
	}
}

// The files of start-up times and accuracies have the served medians as well.
func TestFit_FilesOfOtherTargets(t *testing.T) {
	begin := time.Unix(1_790_000_000, 0)
	startup := epochExamples("mlp", 1, 64, begin, 3)
	files := fitFiles(t, schemas.TargetStartup, startup, nil)
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	// model, node type
	if got, err := file.Predict([]float64{0, 0}); err != nil || math.Abs(got-3) > 1e-9 {
		t.Errorf("start-up: the file has %g s, %v, want 3 s", got, err)
	}

	var epochs []Example
	for run := range 3 {
		of := epochExamples("mlp", run, 64, begin.Add(time.Duration(run)*time.Hour), 0.5, 0.7, 0.8)
		epochs = append(epochs, of...)
	}
	files = fitFiles(t, schemas.TargetAccuracy, epochs, nil)
	if file, err = treefile.Load(files.Model, files.Manifest); err != nil {
		t.Fatal(err)
	}
	for epoch, want := range map[float64]float64{1: 0.5, 2: 0.7, 3: 0.8} {
		// model, epochs done, batch size
		got, err := file.Predict([]float64{0, epoch, 64})
		if err != nil || math.Abs(got-want) > 0.03 {
			t.Errorf("accuracy after %g epochs: the file has %g, %v, want about %g", epoch, got, err, want)
		}
	}
}
