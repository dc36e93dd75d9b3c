package decide

import (
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestMessage_ListsTheDatasetsOfAModel(t *testing.T) {
	for _, c := range []struct {
		dataset string
		others  []string
		want    string
	}{
		{"", nil, "model m"},
		{"a", nil, "model m on dataset a"},
		{"", []string{"a"}, "model m without a dataset (datasets of its runs: a; name one with --dataset)"},
		{"b", []string{"", "a"}, "model m on dataset b (datasets of its runs: none, a)"},
		{
			"b", []string{"a", "c", "d", "e", "f", "g", "h"},
			"model m on dataset b (datasets of its runs: a, c, d, e, f and 2 more)",
		},
	} {
		if got := (trainedOn{"m", c.dataset}).textAmong(c.others); got != c.want {
			t.Errorf("dataset %q with runs on %q: got %s, want %s", c.dataset, c.others, got, c.want)
		}
	}
}

// The state distinguishes the datasets of a model: descriptions, tried configurations, score,
// job status.
func TestCluster_SeparatesTheDatasetsOfAModel(t *testing.T) {
	c, at := cluster.New(), time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)
	for i, of := range []struct {
		job, dataset string
		samples      uint64
		batch        uint32
		took         float64
	}{{"a", "cifar10", 50_000, 16, 8}, {"b", "imagenet", 1_281_167, 64, 9.5}} {
		set := schemas.Setting{
			Model: "resnet50", Dataset: of.dataset, BatchSize: of.batch, CPUs: 2, Epochs: 1,
			TrainingSamples: of.samples, Nodes: []string{"node-a"},
		}
		stamp := func(id string, run uint32, seconds float64) schemas.JobStamp {
			when := at.Add(time.Duration(seconds * float64(time.Second)))
			return schemas.JobStamp{Stamp: schemas.Stamp{EventID: of.job + id, At: when}, JobID: of.job, Run: run}
		}
		probability, seconds := 0.97, 4.0
		chosen := schemas.Alternative{
			BatchSize: of.batch, CPUs: 2, Epochs: 1, Probability: &probability, PredictedSeconds: &seconds,
		}
		q := schemas.JobRequest{
			JobID: of.job, Model: set.Model, Dataset: set.Dataset, Confidence: 0.95,
			SLO: schemas.Duration(10 * time.Second),
		}
		a := schemas.Advice{
			Model: set.Model, Dataset: set.Dataset, Decision: schemas.MeetsSLO, Chosen: &chosen, Confidence: 0.95,
		}
		apply := func(e schemas.Event) { c.Apply(e, uint64(10*i+1), at.Add(time.Minute)) }
		apply(&schemas.Submitted{JobStamp: stamp("/submitted", 0, 0), Request: q, Advice: a})
		if got := c.Job(of.job).Request; got.Dataset != of.dataset {
			t.Errorf("submitted job on dataset %q, want %q", got.Dataset, of.dataset)
		}
		member := member(c, c.Job(of.job), at)
		if got := member.Setting.Dataset; got != of.dataset {
			t.Errorf("a job about to start on dataset %q, want %q", got, of.dataset)
		}
		apply(&schemas.Started{JobStamp: stamp("/1/started", 1, 1), Setting: set})
		apply(&schemas.Epoch{
			JobStamp: stamp("/1/1", 1, of.took), Setting: set, Epoch: 1, DurationSeconds: 1,
			DurationSource: schemas.DurationReported,
		})
		if again := AskRunning(c, c.Job(of.job), at.Add(time.Minute)).Request; again.Dataset != of.dataset {
			t.Errorf("question of the running job: got dataset %q, want %q", again.Dataset, of.dataset)
		}
		apply(&schemas.Ended{
			JobStamp: stamp("/1/finished", 1, of.took), Setting: set, Outcome: schemas.EventFinished, EpochsDone: 1,
		})
		q.JobID = ""
		ask := Ask(c, q.WithDefaults(), at.Add(time.Minute))
		tried := []cluster.BatchAndShape{{BatchSize: of.batch, CPUs: 2}}
		if diff := cmp.Diff(tried, ask.Tried); diff != "" {
			t.Errorf("%s: tried (-want +got):\n%s", of.dataset, diff)
		}
	}
	var scored []string
	for _, l := range cluster.ScoreOf(c.Ended(), &schemas.ScoreRequest{}, at.Add(time.Hour)).Models {
		scored = append(scored, l.Name+" on "+l.Dataset)
	}
	if diff := cmp.Diff([]string{"resnet50 on cifar10", "resnet50 on imagenet"}, scored); diff != "" {
		t.Errorf("score by model (-want +got):\n%s", diff)
	}
}
