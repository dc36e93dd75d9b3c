package decide_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/decide"
	"courier/schemas"
)

// trainedModel ran three times with each of three batch sizes on two datasets, for ten epochs. On
// the large dataset it takes a hundred times as long, starts later and is less accurate.
const trainedModel = "resnet50"

var datasetTimes = map[string]float64{"small": 1, "large": 100}

func datasetSeconds(dataset string, batch int) float64 {
	return datasetTimes[dataset] * (4 + 400/float64(batch))
}

func datasetAccuracy(dataset string, epoch int) float64 {
	return math.Floor(100*(1-math.Exp(-float64(epoch)/4))) / 100 / (1 + datasetTimes[dataset]/200)
}

// fittedOnDatasets is fitted on these runs.
var fittedOnDatasets = advisortest.FitOnce(func() (runs []advisortest.Run) {
	for _, dataset := range []string{"small", "large"} {
		for _, batch := range []int{32, 64, 128} {
			for k := range 3 {
				r := advisortest.Run{
					Model:          trainedModel,
					Dataset:        dataset,
					BatchSize:      uint32(batch),
					CPUs:           1,
					Load:           schemas.Load{ConcurrentJobs: 1, Processes: 1},
					StartedAt:      evidenceBegin.Add(time.Duration(1000*k+batch) * time.Second),
					StartupSeconds: 2 * datasetTimes[dataset],
				}
				for e := 1; e <= 10; e++ {
					r.Epochs = append(r.Epochs, advisortest.Epoch{
						Seconds:  datasetSeconds(dataset, batch) * (1 + 0.01*float64(k-1)),
						Accuracy: datasetAccuracy(dataset, e),
					})
				}
				runs = append(runs, r)
			}
		}
	}
	return runs
})

// onDataset asks for ten epochs of the model on a dataset.
func onDataset(model, dataset string, slo time.Duration) *decide.Question {
	q := schemas.JobRequest{
		Model: model, Dataset: dataset, CPUs: schemas.CPUs{1}, BatchSizes: []int{64}, Epochs: 10,
		SLO: schemas.Duration(slo), Nodes: []string{"node-a"},
	}
	return &decide.Question{
		Request: q.WithDefaults(), Nodes: []string{"node-a"}, Hardware: make([]schemas.Hardware, 1),
	}
}

// Time, start-up and accuracy of an answer depend on the runs on the requested dataset only.
func TestDecide_UsesRunsOnTheRequestedDatasetOnly(t *testing.T) {
	r, now := advisortest.Load(t, fittedOnDatasets), time.Now()
	const slo = 300 * time.Second // ample on the small dataset, impossible on the large one
	for dataset, decision := range map[string]schemas.Decision{
		"small": schemas.MeetsSLO, "large": schemas.BestEffort,
	} {
		a := decide.Decide(onDataset(trainedModel, dataset, slo), r, now)
		want := 2*datasetTimes[dataset] + 10*datasetSeconds(dataset, 64)
		if a.Decision != decision || a.Dataset != dataset || a.Chosen.PredictedSeconds == nil ||
			math.Abs(*a.Chosen.PredictedSeconds/want-1) > 0.02 {
			t.Errorf("%s: %s of dataset %q, %+v; want %s and %g s", dataset, a.Decision, a.Dataset,
				a.Chosen, decision, want)
			continue
		}
		if got := *a.Chosen.PredictedAccuracy; math.Abs(got-datasetAccuracy(dataset, 10)) > 0.02 {
			t.Errorf("%s: accuracy %g, want %g", dataset, got, datasetAccuracy(dataset, 10))
		}
		if kept := *a.Chosen.Probability; (kept > 0.95) != (decision == schemas.MeetsSLO) {
			t.Errorf("%s: probability = %g, want above 0.95 exactly with meets_slo, not %s",
				dataset, kept, decision)
		}
	}
}

// A co-located job on the slow dataset takes as long as the runs on that dataset.
func TestDecide_UsesTheDatasetsOfNeighbours(t *testing.T) {
	r := advisortest.Load(t, fittedOnDatasets)
	for dataset := range datasetTimes {
		q := onDataset(trainedModel, "small", time.Hour)
		q.Others = []decide.Member{{
			JobID: "other", Hardware: make([]schemas.Hardware, 1), EpochsDone: 5, Confidence: 0.95,
			Setting: schemas.Setting{
				Model: trainedModel, Dataset: dataset, BatchSize: 64, CPUs: 1, Epochs: 10, Nodes: []string{"node-a"},
			},
		}}
		a := decide.Decide(q, r, time.Now())
		want := 5 * datasetSeconds(dataset, 64)
		if len(a.Effects) != 1 || math.Abs(a.Effects[0].BeforeSeconds/want-1) > 0.02 {
			t.Errorf("%s: effects %+v, want one of a job with %g s left", dataset, a.Effects, want)
		}
	}
}

// Without runs on the requested dataset nothing is predicted, and the answer lists the datasets of
// the model's runs.
func TestDecide_ListsOtherDatasetsOfAModel(t *testing.T) {
	r, now := advisortest.Load(t, fittedOnDatasets), time.Now()
	for _, c := range []struct{ model, dataset, want string }{
		{
			trainedModel, "",
			"model resnet50 without a dataset (datasets of its runs: large, small; " +
				"name one with --dataset): run it with",
		},
		{
			trainedModel, "medium",
			"model resnet50 on dataset medium (datasets of its runs: large, small): run it with",
		},
		{"vgg", "small", "model vgg on dataset small: run it with"},
		{"vgg", "", "model vgg: run it with"},
	} {
		a := decide.Decide(onDataset(c.model, c.dataset, time.Hour), r, now)
		if a.Decision != schemas.Exploring || !strings.Contains(a.Message,
			"nothing is known yet about "+c.want) {
			t.Errorf("%s on %q: %s, %q; want exploring, %q", c.model, c.dataset, a.Decision,
				a.Message, c.want)
		}
		for _, alt := range a.Alternatives {
			if alt.PredictedSeconds != nil || alt.Probability != nil ||
				alt.PredictedAccuracy != nil {
				t.Errorf("%s on %q: alternative %+v has figures, want none",
					c.model, c.dataset, alt)
			}
		}
	}
}

// Every message about the model names the dataset.
func TestDecide_NamesTheDataset(t *testing.T) {
	r, now := advisortest.Load(t, fittedOnDatasets), time.Now()
	for _, c := range []struct {
		name, want string
		change     func(q *decide.Question)
	}{
		{
			"no run reached the target", "no run of model resnet50 on dataset large has reached accuracy 0.8,",
			func(q *decide.Question) {
				q.Request.Epochs, q.Request.MaxEpochs, q.Request.TargetAccuracy = 0, 10, 0.8
			},
		},
		{
			"another number of CPUs", "because model resnet50 on dataset large ran on this node type with 1 CPU only",
			func(q *decide.Question) { q.Request.CPUs = schemas.CPUs{4} },
		},
		{
			"another type of node", "model resnet50 on dataset large has 9 runs, but none on a node like node-a",
			func(q *decide.Question) { q.Hardware = []schemas.Hardware{evidenceNode} },
		},
	} {
		q := onDataset(trainedModel, "large", 10*time.Hour)
		c.change(q)
		if a := decide.Decide(q, r, now); !strings.Contains(a.Message, c.want) {
			t.Errorf("%s: %q, want %q", c.name, a.Message, c.want)
		}
	}
}
