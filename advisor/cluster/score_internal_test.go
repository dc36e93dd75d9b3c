package cluster

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

var (
	scoredAt  = time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)
	scoredRun = schemas.Setting{
		Model: "digits-mlp", BatchSize: 16, CPUs: 2, Epochs: 3, Nodes: []string{"node-a"},
	}
)

func scoredStamp(job string, run uint32, seconds float64) schemas.JobStamp {
	at := scoredAt.Add(time.Duration(seconds * float64(time.Second)))
	return schemas.JobStamp{Stamp: schemas.Stamp{At: at}, JobID: job, Run: run}
}

// answered is a submission with an SLO of 10 s, and its answer.
func answered(job, user string, confidence, probability float64) *schemas.Submitted {
	decision := schemas.BestEffort
	if probability >= confidence {
		decision = schemas.MeetsSLO
	}
	return &schemas.Submitted{
		JobStamp: scoredStamp(job, 0, 0),
		Request: schemas.JobRequest{
			JobID: job, Model: scoredRun.Model, User: user, Confidence: confidence,
			SLO: schemas.Duration(10 * time.Second),
		},
		Advice: schemas.Advice{Decision: decision, Chosen: &schemas.Alternative{
			BatchSize: 16, CPUs: 2, Epochs: 3, Probability: &probability,
		}},
	}
}

// scoreOf returns the score of all jobs.
func scoreOf(c *Cluster) *schemas.Score {
	return ScoreOf(c.Ended(), &schemas.ScoreRequest{}, scoredAt.Add(24*time.Hour))
}

// applyEnded applies a submission whose job ran and ended as given.
func applyEnded(c *Cluster, job, user string, confidence, probability float64, batch uint32, kept bool) {
	setting, took := scoredRun, 12.0
	if setting.BatchSize = batch; kept {
		took = 8
	}
	end := func(run uint32, seconds float64) *schemas.Ended {
		return &schemas.Ended{
			JobStamp: scoredStamp(job, run, seconds), Setting: setting, Outcome: schemas.EventFinished, EpochsDone: 3,
		}
	}
	for _, e := range []schemas.Event{
		answered(job, user, confidence, probability),
		&schemas.Started{JobStamp: scoredStamp(job, 1, 1), Setting: setting},
		end(1, took),
		end(1, took), // a duplicate
	} {
		c.Apply(e, 1, scoredAt.Add(time.Hour))
	}
}

// applyCutShort applies a promise with 0.95 whose job is cancelled or lost while it runs.
func applyCutShort(c *Cluster, job, user, outcome string) []schemas.Event {
	end := &schemas.Ended{JobStamp: scoredStamp(job, 1, 0), Setting: scoredRun, Outcome: outcome}
	end.EventID = schemas.EndedID(job, 1, outcome)
	if outcome == schemas.EventLost {
		end.EventID = schemas.LostID(job, 1)
	}
	events := []schemas.Event{
		answered(job, user, 0.95, 0.96),
		&schemas.Started{JobStamp: scoredStamp(job, 1, 0), Setting: scoredRun},
		end,
	}
	for _, e := range events {
		c.Apply(e, 1, scoredAt.Add(time.Minute))
	}
	return events
}

// A promise of a target accuracy is kept in time with this accuracy.
func TestCluster_ScoreCountsTheTarget(t *testing.T) {
	c := New()
	for accuracy, job := range map[float64]string{0.79: "below", 0.8: "at", 0.9: "above"} {
		q := answered(job, "ada", 0.95, 0.96)
		q.Request.TargetAccuracy = 0.8
		for _, e := range []schemas.Event{q, &schemas.Started{JobStamp: scoredStamp(job, 1, 1), Setting: scoredRun},
			&schemas.Ended{JobStamp: scoredStamp(job, 1, 8), Setting: scoredRun, Outcome: schemas.EventFinished,
				EpochsDone: 3, Accuracy: &accuracy}} {
			c.Apply(e, 1, scoredAt.Add(time.Hour))
		}
	}
	if p := scoreOf(c).Promises; p.Jobs != 3 || p.Kept != 2 {
		t.Errorf("kept %d of %d promises of a target, want 2 of 3", p.Kept, p.Jobs)
	}
}

// A job counts once: as lost, not at all after it comes back, and then by its end. Duplicates change
// nothing, and the promise does not cover a later run.
func TestCluster_ScoreCountsALostJobOnce(t *testing.T) {
	stamp := func(run uint32, seconds float64) schemas.JobStamp { return scoredStamp("a", run, seconds) }
	setting := scoredRun
	moved := setting
	moved.CPUs = 4
	epoch := &schemas.Epoch{JobStamp: stamp(1, 3), Setting: setting, Epoch: 1, DurationSeconds: 1}
	elsewhere := &schemas.Epoch{JobStamp: stamp(1, 3), Setting: moved, Epoch: 1, DurationSeconds: 1}
	finished := &schemas.Ended{
		JobStamp:   stamp(1, 8),
		Setting:    setting,
		Outcome:    schemas.EventFinished,
		EpochsDone: 3,
	}
	found := &schemas.Ended{JobStamp: stamp(1, 5), Setting: setting, Outcome: schemas.EventFound}
	again := &schemas.Started{JobStamp: stamp(2, 20), Setting: setting}
	lostAgain := &schemas.Ended{
		JobStamp: stamp(2, 30),
		Setting:  setting,
		Outcome:  schemas.EventLost,
	}
	for _, c := range []struct {
		name  string
		after []schemas.Event
		jobs  uint64
		kept  uint64
		lost  uint64
	}{
		{"lost", nil, 0, 0, 1},
		{"back", []schemas.Event{epoch}, 0, 0, 0},
		{"found", []schemas.Event{found, found}, 0, 0, 0},
		{"found and finished", []schemas.Event{found, finished}, 1, 1, 0},
		{"back with other CPUs", []schemas.Event{elsewhere}, 0, 0, 0},
		{"back and finished", []schemas.Event{epoch, finished, finished}, 1, 1, 0},
		{"finished without being back", []schemas.Event{finished}, 1, 1, 0},
		{"started again", []schemas.Event{again, lostAgain}, 0, 0, 0},
	} {
		cluster := New()
		events := applyCutShort(cluster, "a", "ada", schemas.EventLost)
		for _, e := range append(c.after, events...) { // the earlier events are late duplicates
			cluster.Apply(e, 2, scoredAt.Add(time.Minute))
		}
		if p := scoreOf(cluster).Promises; p.Jobs != c.jobs || p.Kept != c.kept || p.Lost != c.lost ||
			p.Cancelled != 0 {
			t.Errorf("%s: got tally %+v, want %d jobs, %d kept, %d lost", c.name, p.Tally, c.jobs, c.kept, c.lost)
		}
	}
}

// A job meets its SLO only with all of its epochs. If it has fewer, it is incomplete in time and
// missed after its deadline.
func TestCluster_JudgesOnlyCompleteJobs(t *testing.T) {
	at := scoredAt
	const yes, no, unknown = "met", "missed", "unknown"
	for _, c := range []struct {
		name       string
		outcome    string
		epochsDone uint32
		seconds    int
		met        string
		incomplete bool
	}{
		{"all epochs in time", schemas.EventFinished, 3, 9, yes, false},
		{"all epochs late", schemas.EventFinished, 3, 11, no, false},
		{"two of three epochs in time", schemas.EventFinished, 2, 9, unknown, true},
		{"no epochs in time", schemas.EventFinished, 0, 9, unknown, true},
		{"no epochs late", schemas.EventFinished, 0, 11, no, false},
		{"failed", schemas.EventFailed, 1, 9, no, false},
		{"cancelled", schemas.EventCancelled, 1, 9, unknown, false},
		{"cancelled late", schemas.EventCancelled, 1, 11, unknown, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cluster := New()
			events := applyCutShort(cluster, "a", "ada", schemas.EventLost)
			end := *events[len(events)-1].(*schemas.Ended)
			end.At, end.Outcome = at.Add(time.Duration(c.seconds)*time.Second), c.outcome
			end.EventID, end.EpochsDone = schemas.EndedID("a", 1, c.outcome), c.epochsDone
			cluster.Apply(&end, 2, at.Add(time.Minute))

			j := cluster.jobs["a"]
			met := unknown
			if j.MetSLO != nil {
				met = map[bool]string{true: yes, false: no}[*j.MetSLO]
			}
			if met != c.met || j.IsIncomplete() != c.incomplete {
				t.Errorf("SLO %s, incomplete %t; want %s, %t", met, j.IsIncomplete(), c.met, c.incomplete)
			}
			if n := scoreOf(cluster).Promises.Incomplete; (n == 1) != c.incomplete {
				t.Errorf("the score has %d incomplete jobs, want %t", n, c.incomplete)
			}
		})
	}
}

// The score of a log equals the example of the contract.
func TestCluster_ScoreIsTheExampleOfTheContract(t *testing.T) {
	c := New()
	applyEnded(c, "a", "ada", 0.95, 0.97, 16, true)
	applyEnded(c, "b", "ada", 0.95, 0.98, 16, true)
	applyEnded(c, "c", "grace", 0.95, 0.995, 16, true)
	applyEnded(c, "d", "grace", 0.95, 0.96, 16, false)
	applyEnded(c, "e", "ada", 0.8, 0.85, 16, true)
	applyEnded(c, "f", "ada", 0.95, 0.4, 16, false)
	applyEnded(c, "g", "ada", 0.95, 0.97, 64, false) // not as advised
	applyCutShort(c, "h", "ada", schemas.EventLost)
	applyCutShort(c, "i", "grace", schemas.EventCancelled)
	applyCutShort(c, "j", "grace", schemas.EventFinished) // without epochs
	data, err := os.ReadFile(filepath.Join("..", "..", "schemas", "testdata", "score.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want schemas.Score
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	got := scoreOf(c)
	got.From, got.Trend = want.From, want.Trend
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Errorf("score differs (-want +replayed):\n%s", diff)
	}
}

// Regardless of the number of users, the score stays small and counts every job.
func TestCluster_ScoreIsBounded(t *testing.T) {
	c := New()
	for i := range maxGroups + 50 {
		applyEnded(c, fmt.Sprint("job-", i), fmt.Sprint("user-", i), 0.9, 0.97, 16, i%2 == 0)
	}
	users := scoreOf(c).Users
	last := users[len(users)-1]
	if len(users) != maxGroups+1 || !last.Others || last.Jobs != 50 || last.Kept != 25 ||
		last.Confidence != nil {
		t.Errorf("got %d users, last line %+v; want %d users, and 50 jobs in the last line",
			len(users), last, maxGroups+1)
	}
}

// The score of a period has the jobs that ended in it, and a trend that sums to it.
func TestScoreOf_SelectsByTimeUserAndModel(t *testing.T) {
	c := New()
	for i, user := range []string{"ada", "bob", "ada", "ada"} {
		at := scoredAt.Add(time.Duration(i) * time.Hour)
		job := fmt.Sprint("j", i)
		submitted := answered(job, user, 0.95, 0.96)
		submitted.At = at
		stamp := schemas.JobStamp{Stamp: schemas.Stamp{At: at}, JobID: job, Run: 1}
		ended := &schemas.Ended{JobStamp: stamp, Setting: scoredRun, Outcome: schemas.EventFinished, EpochsDone: 3}
		if ended.At = at.Add(8 * time.Second); i == 3 {
			ended.At = at.Add(12 * time.Second)
		}
		c.Apply(submitted, uint64(3*i+1), at)
		c.Apply(&schemas.Started{JobStamp: stamp, Setting: scoredRun}, uint64(3*i+2), at)
		c.Apply(ended, uint64(3*i+3), ended.At)
	}
	now := scoredAt.Add(4 * time.Hour)
	for _, test := range []struct {
		q          schemas.ScoreRequest
		jobs, kept uint64
	}{
		{schemas.ScoreRequest{Since: scoredAt}, 4, 3},
		{schemas.ScoreRequest{User: "ada"}, 3, 2},
		{schemas.ScoreRequest{Since: scoredAt.Add(time.Hour), Until: scoredAt.Add(3 * time.Hour)}, 2, 2},
		{schemas.ScoreRequest{Since: scoredAt.Add(3 * time.Hour), User: "ada"}, 1, 0},
		{schemas.ScoreRequest{Model: "other"}, 0, 0},
	} {
		got := ScoreOf(c.Ended(), &test.q, now)
		if got.Promises.Jobs != test.jobs || got.Promises.Kept != test.kept {
			t.Errorf("score of %+v = %+v, want %d of %d", test.q, got.Promises, test.kept, test.jobs)
		}
		var trend schemas.Tally
		for _, step := range got.Trend {
			trend.Jobs, trend.Kept = trend.Jobs+step.Jobs, trend.Kept+step.Kept
		}
		if trend.Jobs != test.jobs || trend.Kept != test.kept {
			t.Errorf("trend of %+v sums to %+v, want %d of %d", test.q, trend, test.kept, test.jobs)
		}
		if from := scoredAt.Add(8 * time.Second); got.From == nil || !got.From.Equal(from) {
			t.Errorf("score of %+v is from %v, want %v", test.q, got.From, from)
		}
	}
}
