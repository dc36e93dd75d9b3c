package advisor_test

import (
	"testing"
	"time"

	"courier/advisor"
	"courier/schemas"
)

// A worker that does as it is told sees every configuration once, so that a
// regressor has the five settings that it needs; the first runs are far apart.
func TestDecide_ExploresWhatTheLogHasNot(t *testing.T) {
	cluster := advisor.NewCluster()
	var order []advisor.Configuration
	for n := range uint32(6) {
		q := cluster.Ask(request(func(q *schemas.JobRequest) { q.BatchSizes, q.CPUs = []int{4, 16, 64}, schemas.CPUs{1, 2} }), time.Unix(0, 0))
		chosen := advisor.Decide(q, advisor.Regressors{}, time.Unix(0, 0)).Chosen
		order = append(order, advisor.Configuration{BatchSize: chosen.BatchSize, CPUs: chosen.CPUs})
		e := &schemas.Epoch{Setting: schemas.Setting{Model: model, BatchSize: chosen.BatchSize, CPUs: chosen.CPUs, Epochs: 1, Nodes: []string{"n"}}, Epoch: 1, DurationSeconds: 1}
		e.JobID, e.Run = string(rune('a'+n)), 1
		cluster.Apply(e, uint64(n+1), time.Unix(0, 0))
	}
	if first, second := (advisor.Configuration{BatchSize: 64, CPUs: 2}), (advisor.Configuration{BatchSize: 4, CPUs: 1}); order[0] != first || order[1] != second {
		t.Errorf("explored %v, want %v, then the opposite corner %v", order, first, second)
	}
	seen := map[advisor.Configuration]bool{}
	for _, c := range order {
		if seen[c] {
			t.Errorf("explored %v: %v twice before the others", order, c)
		}
		seen[c] = true
	}
}
