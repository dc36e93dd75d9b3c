package advisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// ended folds a submission that ran, and ended as told, into a cluster.
func ended(c *Cluster, job, user string, confidence, probability float64, batch uint32, kept bool) {
	at := time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)
	setting := schemas.Setting{Model: "digits-mlp", BatchSize: batch, CPUs: 2, Epochs: 3, Nodes: []string{"node-a"}}
	stamp := func(run uint32, seconds float64) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{At: at.Add(time.Duration(seconds * float64(time.Second)))}, JobID: job, Run: run}
	}
	decision := schemas.BestEffort
	if probability >= confidence {
		decision = schemas.MeetsSLO
	}
	chosen := schemas.Alternative{BatchSize: 16, CPUs: 2, Epochs: 3, Probability: &probability}
	took := 12.0
	if kept {
		took = 8
	}
	for _, e := range []schemas.Event{
		&schemas.Submitted{JobStamp: stamp(0, 0), Request: schemas.JobRequest{JobID: job, Model: "digits-mlp", User: user, Confidence: confidence, SLO: schemas.Duration(10 * time.Second)},
			Advice: schemas.Advice{Decision: decision, Chosen: &chosen}},
		&schemas.Started{JobStamp: stamp(1, 1), Setting: setting},
		&schemas.Ended{JobStamp: stamp(1, took), Setting: setting, Outcome: schemas.EventFinished, EpochsDone: 3},
		&schemas.Ended{JobStamp: stamp(1, took), Setting: setting, Outcome: schemas.EventFinished, EpochsDone: 3}, // a copy
		&schemas.Started{JobStamp: stamp(2, 20), Setting: setting},
		&schemas.Ended{JobStamp: stamp(2, 90), Setting: setting, Outcome: schemas.EventFinished, EpochsDone: 3}, // again: not what was promised
	} {
		c.Apply(e, 1, at.Add(time.Hour))
	}
}

// The score of a log is the example of the contract: each job once, promises by
// confidence, user and model, all that ran as advised by decision and probability.
func TestCluster_ScoreIsTheExampleOfTheContract(t *testing.T) {
	c := NewCluster()
	ended(c, "a", "ada", 0.95, 0.97, 16, true)
	ended(c, "b", "ada", 0.95, 0.98, 16, true)
	ended(c, "c", "grace", 0.95, 0.995, 16, true)
	ended(c, "d", "grace", 0.95, 0.96, 16, false)
	ended(c, "e", "ada", 0.8, 0.85, 16, true)
	ended(c, "f", "ada", 0.95, 0.4, 16, false)
	ended(c, "g", "ada", 0.95, 0.97, 64, false) // not as advised
	data, err := os.ReadFile(filepath.Join("..", "schemas", "testdata", "score.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want schemas.Score
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, c.Score()); diff != "" {
		t.Errorf("score (-example +folded):\n%s", diff)
	}
}

// However many users there are, the score stays small, and loses none.
func TestCluster_ScoreIsBounded(t *testing.T) {
	c := NewCluster()
	for i := range keptGroups + 50 {
		ended(c, fmt.Sprint("job-", i), fmt.Sprint("user-", i), 0.9, 0.97, 16, i%2 == 0)
	}
	users := c.Score().Users
	last := users[len(users)-1]
	if len(users) != keptGroups+1 || !last.Others || last.Jobs != 50 || last.Kept != 25 || last.Confidence != nil {
		t.Errorf("%d users, the last %+v, want %d and 50 others", len(users), last, keptGroups+1)
	}
}
