package trainer

import (
	"math"
	"testing"
	"time"

	"courier/regress/evidence"
	"courier/regress/treefile"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// onDatasets returns runs of one model on two datasets, at five batch sizes with three runs each.
// An epoch on the large dataset takes a hundred times as long.
func onDatasets() (all []Example) {
	begin := time.Unix(1_790_000_000, 0)
	for _, of := range []struct {
		dataset string
		times   float64
	}{{"small", 1}, {"large", 100}} {
		for i, batch := range []uint32{16, 32, 64, 128, 256} {
			for k := range 3 {
				seconds := of.times * (4 + 400/float64(batch)) * (1 + 0.01*float64(k-1))
				run := epochExamples("resnet50", 10*i+k, batch, begin, seconds, seconds)
				for j := range run {
					run[j].Job += of.dataset
					run[j].Dataset = of.dataset
					run[j].At = run[j].At.Add(time.Duration(len(all)) * time.Hour)
				}
				all = append(all, run...)
			}
		}
	}
	return all
}

// Runs of a model on one dataset do not change its predictions on another, and predict nothing
// without a dataset.
func TestFit_SeparatesDatasets(t *testing.T) {
	examples := onDatasets()
	m := fitEpochTimes(t, examples, nil)
	p, err := evidence.Compile(stateOf(m).Regressor)
	if err != nil {
		t.Fatal(err)
	}
	for dataset, times := range map[string]float64{"small": 1, "large": 100} {
		c := evidence.Configuration{
			Model: "resnet50", Dataset: dataset, BatchSize: 64, CPUs: 1,
			NodeLoad: evidence.NodeLoad{ConcurrentJobs: 1},
		}
		got, want := p.Time(c, 1), times*(4+400./64)
		if math.Abs(got.Median()/want-1) > 0.02 || got.Counts.Configuration != 3 || got.Counts.Model != 15 {
			t.Errorf("%s: %g s from runs %+v, want %g s from 15 runs", dataset, got.Median(), got.Counts, want)
		}
	}
	for _, dataset := range []string{"", "other"} {
		c := evidence.Configuration{Model: "resnet50", Dataset: dataset, BatchSize: 64, CPUs: 1}
		if got := p.Epochs(c, 1); got.Known() || got.Support.Promisable() {
			t.Errorf("dataset %q without runs: support %s, %+v; want no prediction",
				dataset, got.Support, got)
		}
	}
	if n := m.Examples.Configurations; n != 10 {
		t.Errorf("%d configurations, want 10", n)
	}
}

// A file has a level for each dataset of a model.
func TestFit_HasALevelForEachDataset(t *testing.T) {
	files := fitFiles(t, schemas.TargetEpochTime, onDatasets(), nil)
	file, err := treefile.Load(files.Model, files.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	model := file.Manifest().Features[0]
	if diff := cmp.Diff([]string{"resnet50@large", "resnet50@small"}, model.Levels); diff != "" {
		t.Errorf("levels of %s (-want +got):\n%s", model.Name, diff)
	}
}

// datasetRun returns the events of a run of two epochs on a dataset; later is the dataset of its
// epochs and its end.
func datasetRun(job, dataset, later string) []schemas.Event {
	begin := time.Unix(1_790_000_000, 0).UTC()
	stamp := func(id string, seconds int) schemas.JobStamp {
		at := begin.Add(time.Duration(seconds) * time.Second)
		return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: job, Run: 1}
	}
	set := schemas.Setting{Model: "m", Dataset: dataset, BatchSize: 4, CPUs: 1, Epochs: 2, Nodes: []string{job}}
	events := []schemas.Event{&schemas.Started{JobStamp: stamp(schemas.StartedID(job, 1), 0), Setting: set}}
	set.Dataset = later
	for n := uint32(1); n <= 2; n++ {
		accuracy := 0.5
		events = append(events, &schemas.Epoch{
			JobStamp: stamp(schemas.EpochID(job, 1, n), 3+2*int(n)), Setting: set, Epoch: n,
			DurationSeconds: 2, DurationSource: schemas.DurationReported, Accuracy: &accuracy,
		})
	}
	id := schemas.EndedID(job, 1, schemas.EventFinished)
	return append(events, &schemas.Ended{
		JobStamp: stamp(id, 8), Setting: set, Outcome: schemas.EventFinished, EpochsDone: 2,
	})
}

func TestPast_KeepsTheDatasetOfARun(t *testing.T) {
	p, sequence := NewPast(), uint64(0)
	for _, run := range [][]schemas.Event{
		datasetRun("one", "cifar10", "cifar10"), datasetRun("two", "imagenet", "imagenet"),
		datasetRun("three", "", ""), datasetRun("four", "cifar10", "imagenet"), datasetRun("five", "cifar10", ""),
	} {
		for _, e := range run {
			sequence++
			p.Add(e, sequence)
		}
	}
	for _, target := range schemas.Targets() {
		of := map[string]string{}
		for _, x := range p.Examples(target) {
			of[x.Job] = x.Model + " on " + x.Dataset
		}
		want := map[string]string{"one": "m on cifar10", "two": "m on imagenet", "three": "m on "}
		if diff := cmp.Diff(want, of); diff != "" {
			t.Errorf("%s (-want +got):\n%s", target, diff)
		}
	}
	// Each target leaves out the two runs that name several datasets.
	if n := p.Skipped()[skippedModel]; n != 2*len(schemas.Targets()) {
		t.Errorf("%d runs with several datasets skipped, want 2 of each target", n)
	}
	if n := len(p.archive.configurations); n != 3 {
		t.Errorf("%d configurations, want one per dataset", n)
	}
}
