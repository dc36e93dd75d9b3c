package decide_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"courier/advisor/decide"
	"courier/schemas"
)

// The epoch time is unknown on a node type where the model has never run. If a job there has
// completed its epochs, 0 epochs of unknown duration are left. The forecast must end it immediately
// instead of looping forever.
func TestDecide_TerminatesForACompletedJob(t *testing.T) {
	r := evidenceRegressors(t)
	unknown := schemas.Hardware{Cores: 8, CPUModel: "never used"}
	for _, hardware := range []schemas.Hardware{evidenceNode, unknown} {
		done := evidenceNeighbour("done", 20, 20)
		done.Hardware = []schemas.Hardware{hardware}

		q := evidenceQuestion(nil)
		q.Hardware, q.Others = done.Hardware, []decide.Member{done}
		want := schemas.MeetsSLO
		if hardware == unknown {
			want = schemas.Exploring
		}
		if a := decide.Decide(q, r, evidenceBegin); a.Decision != want {
			t.Errorf("co-located on %v: decision %s (%s), want %s",
				hardware, a.Decision, a.Message, want)
		}

		q = evidenceQuestion(nil)
		q.Hardware, q.JobID, q.Run, q.Self = done.Hardware, "done", 1, &done
		if a := decide.Decide(q, r, evidenceBegin); a.Decision == "" {
			t.Errorf("advice for a finished epoch on %v has no decision", hardware)
		}
	}
}

// For any co-located jobs Decide returns, with finite figures.
func TestDecide_TerminatesForAnyCoLocatedJobs(t *testing.T) {
	r := evidenceRegressors(t)
	random := rand.New(rand.NewPCG(17, 1))
	types := []schemas.Hardware{evidenceNode, {Cores: 8, CPUModel: "never used"}, {}}
	for range 2000 {
		hardware := types[random.IntN(len(types))]
		q := evidenceQuestion(func(q *schemas.JobRequest) {
			q.Epochs = 1 + random.IntN(40)
			q.SLO = schemas.Duration(time.Duration(1+random.IntN(3600)) * time.Second)
		})
		q.Hardware = []schemas.Hardware{hardware}
		for i := range random.IntN(4) {
			m := evidenceNeighbour(fmt.Sprint("job-", i), uint32(1+random.IntN(40)), 0)
			m.Hardware = q.Hardware
			m.EpochsDone = uint32(random.IntN(int(m.Setting.Epochs) + 1))
			if random.IntN(4) == 0 {
				m.Setting.Model = "never-ran"
			}
			m.Since = time.Duration(random.IntN(1000)) * time.Second
			q.Others = append(q.Others, m)
		}
		if random.IntN(2) == 0 && len(q.Others) > 0 {
			q.JobID, q.Run, q.Self, q.Others = q.Others[0].JobID, 1, &q.Others[0], q.Others[1:]
		}
		a := decide.Decide(q, r, evidenceBegin)
		if strings.Contains(a.Message, "NaN") || strings.Contains(a.Message, "Inf") {
			t.Fatalf("co-located with %+v: message %q, want finite numbers", q.Others, a.Message)
		}
		for _, x := range a.Alternatives {
			if x.PredictedSeconds != nil && !(*x.PredictedSeconds >= 0) {
				t.Fatalf("co-located with %+v: predicted %v s, want 0 or more",
					q.Others, *x.PredictedSeconds)
			}
		}
	}
}

// evidenceNeighbour is a running job of the fixture's model on the node of the question.
func evidenceNeighbour(id string, epochs, done uint32) decide.Member {
	return decide.Member{
		JobID: id,
		Setting: schemas.Setting{
			Model: evidenceModel, BatchSize: 64, CPUs: 1, Epochs: epochs, Nodes: []string{"node-a"},
		},
		Hardware:   []schemas.Hardware{evidenceNode},
		EpochsDone: done,
		Since:      time.Second,
	}
}
