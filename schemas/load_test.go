package schemas_test

import (
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var (
	small = schemas.Hardware{Cores: 2, CPUModel: "old", Speed: 1e9}
	large = schemas.Hardware{Cores: 16, CPUModel: "new", Speed: 2e9}
)

// Three different jobs run on two different nodes: small has 2 processors, large 16.
//
//	seconds   0    10    20    30    40
//	a small   |-------------------------  (2 CPUs)
//	b both         |-----------|          (4 CPUs)
//	c large        |-----|                (8 CPUs)
func threeJobs() []schemas.Span {
	at := func(s int) time.Time { return time.Unix(int64(1_790_000_000+s), 0) }
	return []schemas.Span{
		{
			JobID:    "a",
			Nodes:    []string{"small"},
			CPUs:     2,
			From:     at(0),
			Hardware: []schemas.Hardware{small},
		},
		{
			JobID:    "b",
			Nodes:    []string{"small", "large"},
			CPUs:     4,
			From:     at(10),
			Until:    at(30),
			Hardware: []schemas.Hardware{small, large},
		},
		{
			JobID:    "c",
			Nodes:    []string{"large"},
			CPUs:     8,
			From:     at(10),
			Until:    at(20),
			Hardware: []schemas.Hardware{large},
		},
	}
}

func TestLoadBetween(t *testing.T) {
	jobs := threeJobs()
	at := func(s int) time.Time { return jobs[0].From.Add(time.Duration(s) * time.Second) }
	unknown := jobs[1]
	unknown.Hardware = nil
	for _, c := range []struct {
		name        string
		self        schemas.Span
		from, until int
		want        schemas.Load
		on          schemas.Hardware
	}{
		{
			"alone", jobs[0], 0, 10,
			schemas.Load{ConcurrentJobs: 1, Processes: 2, ProcessesPerCore: 1},
			small,
		},
		{
			"beside b all the time", jobs[0], 12, 28,
			schemas.Load{ConcurrentJobs: 2, Processes: 6, ProcessesPerCore: 3},
			small,
		},
		{
			"beside b half of the time", jobs[0], 0, 20,
			schemas.Load{
				ConcurrentJobs:   1.5,
				Processes:        4,
				ProcessesPerCore: 2,
			},
			small,
		},
		{
			"b comes and goes: its longest stretch counts", jobs[0], 5, 35,
			schemas.Load{
				ConcurrentJobs:   1 + 2.0/3,
				Processes:        2 + 4*2.0/3,
				ProcessesPerCore: 1 + 4.0/3,
			},
			small,
		},
		{
			"c beside b", jobs[2], 10, 20,
			schemas.Load{
				ConcurrentJobs:   2,
				Processes:        12,
				ProcessesPerCore: 0.75,
			},
			large,
		},
		{
			"on two nodes the one with most processes per core counts, though the other has more processes",
			jobs[1], 10, 20,
			schemas.Load{
				ConcurrentJobs:   2,
				Processes:        6,
				ProcessesPerCore: 3,
			},
			small,
		},
		{
			"on two nodes of unknown size the one with most processes counts", unknown, 10, 20,
			schemas.Load{ConcurrentJobs: 2, Processes: 12}, schemas.Hardware{},
		},
		{
			"no time at all", jobs[2], 10, 10,
			schemas.Load{
				ConcurrentJobs:   1,
				Processes:        8,
				ProcessesPerCore: 0.5,
			},
			large,
		},
	} {
		got, on := schemas.LoadBetween(c.self, jobs, at(c.from), at(c.until))
		if d := cmp.Diff(c.want, got, cmp.Comparer(func(a, b float64) bool {
			return a-b < 1e-9 && b-a < 1e-9
		})); d != "" || on != c.on {
			t.Errorf("%s: on %+v, want %+v (-want +got):\n%s", c.name, on, c.on, d)
		}
	}
}

func TestLoadNow_CountsWhatStillRuns(t *testing.T) {
	jobs := threeJobs()
	got, on := schemas.LoadNow(schemas.Span{
		JobID:    "d",
		Nodes:    []string{"small"},
		CPUs:     1,
		Hardware: []schemas.Hardware{small},
	}, jobs)
	want := schemas.Load{ConcurrentJobs: 2, Processes: 3, ProcessesPerCore: 1.5}
	if got != want || on != small {
		t.Errorf("LoadNow = %+v on %+v, want %+v", got, on, want)
	}
	if got, _ := schemas.LoadNow(jobs[0], jobs); got.ConcurrentJobs != 1 {
		t.Errorf("LoadNow of a job among the spans = %+v, want one concurrent job", got)
	}
}
