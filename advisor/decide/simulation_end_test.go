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
