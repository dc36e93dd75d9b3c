package schemas_test

import (
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// Three unlike jobs on two unlike nodes: small has 2 processors, large 16.
//
//	seconds   0    10    20    30    40
//	a small   |-------------------------  (2 CPUs)
//	b both         |-----------|          (4 CPUs)
//	c large        |-----|                (8 CPUs)
func threeJobs() []schemas.Span {
	at := func(s int) time.Time { return time.Unix(int64(1_790_000_000+s), 0) }
	return []schemas.Span{
		{JobID: "a", Nodes: []string{"small"}, CPUs: 2, From: at(0)},
		{JobID: "b", Nodes: []string{"small", "large"}, CPUs: 4, From: at(10), Until: at(30)},
		{JobID: "c", Nodes: []string{"large"}, CPUs: 8, From: at(10), Until: at(20)},
	}
}

func TestLoadBetween(t *testing.T) {
	jobs := threeJobs()
	at := func(s int) time.Time { return jobs[0].From.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		name        string
		self        int
		cores       uint32
		from, until int
		want        schemas.Load
	}{
		{"alone", 0, 2, 0, 10, schemas.Load{ConcurrentJobs: 1, Processes: 2, ProcessesPerCore: 1, StableTimeRatio: 1}},
		{"beside b all the time", 0, 2, 12, 28, schemas.Load{ConcurrentJobs: 2, Processes: 6, ProcessesPerCore: 3, StableTimeRatio: 1}},
		{"beside b half of the time", 0, 2, 0, 20, schemas.Load{ConcurrentJobs: 1.5, Processes: 4, ProcessesPerCore: 2, StableTimeRatio: 0.5}},
		{"b comes and goes: its longest stretch counts", 0, 2, 5, 35, schemas.Load{ConcurrentJobs: 1 + 2.0/3, Processes: 2 + 4*2.0/3, ProcessesPerCore: 1 + 4.0/3, StableTimeRatio: 2.0 / 3}},
		{"on two nodes the most loaded counts", 1, 16, 10, 20, schemas.Load{ConcurrentJobs: 2, Processes: 12, ProcessesPerCore: 0.75, StableTimeRatio: 1}},
		{"unknown size of the node", 2, 0, 10, 20, schemas.Load{ConcurrentJobs: 2, Processes: 12, StableTimeRatio: 1}},
		{"no time at all", 2, 16, 10, 10, schemas.Load{ConcurrentJobs: 1, Processes: 8, ProcessesPerCore: 0.5, StableTimeRatio: 1}},
	} {
		got := schemas.LoadBetween(jobs[c.self], jobs, c.cores, at(c.from), at(c.until))
		if d := cmp.Diff(c.want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, d)
		}
	}
}

func TestLoadNow_CountsWhatStillRuns(t *testing.T) {
	jobs := threeJobs()
	got := schemas.LoadNow(schemas.Span{JobID: "d", Nodes: []string{"small"}, CPUs: 1}, jobs, 2)
	want := schemas.Load{ConcurrentJobs: 2, Processes: 3, ProcessesPerCore: 1.5, StableTimeRatio: 1}
	if got != want {
		t.Errorf("LoadNow = %+v, want %+v", got, want)
	}
	if got := schemas.LoadNow(jobs[0], jobs, 2); got.ConcurrentJobs != 1 {
		t.Errorf("LoadNow of a job among the spans counts it twice: %+v", got)
	}
}

func TestExampleWeight(t *testing.T) {
	for _, c := range []struct{ stable, want float64 }{{1, 1}, {0.5, 0.5}, {0.49, 0}} {
		if got := (schemas.Load{StableTimeRatio: c.stable}).ExampleWeight(); got != c.want {
			t.Errorf("ExampleWeight(%g) = %g, want %g", c.stable, got, c.want)
		}
	}
}

func TestColumns_NameEveryFeature(t *testing.T) {
	f := schemas.Features{BatchSize: 64, CPUs: 2, ModelCode: 1, EpochsDone: 5, Load: schemas.Load{ConcurrentJobs: 1.6, Processes: 3.1}}
	columns := schemas.ColumnsOf(schemas.TargetAccuracy)
	var names []string
	for _, c := range columns {
		names = append(names, c.String())
	}
	back, err := schemas.ParseColumns(names)
	if err != nil || cmp.Diff(columns, back) != "" {
		t.Fatalf("ParseColumns(%v) = %v, %v", names, back, err)
	}
	row := make([]float64, len(columns))
	f.Fill(row, columns)
	if d := cmp.Diff([]float64{64, 2, 1.5, 3, 1, 5}, row); d != "" {
		t.Errorf("Fill (-want +got):\n%s", d)
	}
	if _, err := schemas.ParseColumns([]string{"batch_size", "phase_of_the_moon"}); err == nil {
		t.Error("ParseColumns took a feature that does not exist")
	}
}
