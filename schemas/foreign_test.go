package schemas_test

import (
	"encoding/json"
	"testing"
	"time"

	"courier/schemas"
)

func ratio(v float64) *float64 { return &v }

func TestRatio_IsAbsentInJSONWhereItIsUnknown(t *testing.T) {
	for _, c := range []struct {
		load schemas.Load
		want string
	}{
		{schemas.Load{ForeignCPURatio: schemas.RatioOf(0)}, `{"concurrent_jobs":0,"processes":0,` +
			`"processes_per_core":0,"foreign_cpu_ratio":0}`},
		{schemas.Load{ForeignIOWaitRatio: schemas.RatioOf(0.3)},
			`{"concurrent_jobs":0,"processes":0,` +

				`"processes_per_core":0,"foreign_io_wait_ratio":0.3}`},
	} {
		got, err := json.Marshal(c.load)
		if err != nil || string(got) != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
		var read schemas.Load
		if err := json.Unmarshal(got, &read); err != nil || read != c.load {
			t.Errorf("decoded again: %+v, %v, want %+v", read, err, c.load)
		}
	}
}

func TestForeignOf_IsWhatKnownJobsDoNotExplain(t *testing.T) {
	unknown := schemas.Ratio{}
	for _, c := range []struct {
		name        string
		cpu, ioWait *float64
		known       schemas.Known
		want        schemas.Foreign
	}{
		{"nothing is measured", nil, ratio(0.5), schemas.Known{}, schemas.Foreign{}},
		{"an idle node", ratio(0.01), ratio(0), schemas.Known{IsIOIdle: true},
			schemas.Foreign{CPU: schemas.RatioOf(0), IOWait: schemas.RatioOf(0)}},
		{"a hog alone", ratio(0.5), nil, schemas.Known{},
			schemas.Foreign{CPU: schemas.RatioOf(0.5)}},
		{"a job alone keeps the node busy", ratio(1), ratio(0),
			schemas.Known{Processes: 4, CPU: 3.9, IsIOIdle: true},
			schemas.Foreign{CPU: schemas.RatioOf(0), IOWait: unknown}},
		{"more processes than processors, and a little other work", ratio(1), nil,
			schemas.Known{Processes: 16, CPU: 3.9}, schemas.Foreign{CPU: schemas.RatioOf(0)}},
		{"a hog of two threads beside a job of one process, with room", ratio(0.75), nil,
			schemas.Known{Processes: 1, CPU: 1}, schemas.Foreign{CPU: schemas.RatioOf(0.5)}},
		{"a hog of four threads gets half of what it wants beside four processes", ratio(1), nil,
			schemas.Known{Processes: 4, CPU: 2}, schemas.Foreign{CPU: schemas.RatioOf(1)}},
		{"a hog of two threads beside four processes", ratio(1), nil,
			schemas.Known{Processes: 4, CPU: 8. / 3}, schemas.Foreign{CPU: schemas.RatioOf(0.5)}},
		{"storage that other work waits for", ratio(0.2), ratio(0.5),
			schemas.Known{Processes: 1, CPU: 0.8, IsIOIdle: true},
			schemas.Foreign{CPU: schemas.RatioOf(0), IOWait: schemas.RatioOf(0.5)}},
		{"a job that reads or writes", ratio(0.2), ratio(0.5),
			schemas.Known{Processes: 1, CPU: 0.8}, schemas.Foreign{CPU: schemas.RatioOf(0)}},
	} {
		cpu, ioWait := schemas.RatioAt(c.cpu), schemas.RatioAt(c.ioWait)
		if got := schemas.ForeignOf(4, cpu, ioWait, c.known); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	got := schemas.ForeignOf(0, schemas.RatioOf(0.5), unknown, schemas.Known{})
	if got != (schemas.Foreign{}) {
		t.Errorf("ForeignOf a node of unknown size = %+v, want no load", got)
	}
}

func TestForeignDuring_SubtractsTheJobAndItsNeighbours(t *testing.T) {
	start := time.Unix(1_790_000_000, 0).UTC()
	epoch := func(change func(*schemas.Epoch)) *schemas.Epoch {
		e := &schemas.Epoch{
			DurationSeconds: 10, DurationSource: schemas.DurationReported, NodeCores: 4,
			NodeCPURatio: ratio(0.75), NodeIOWaitRatio: ratio(0.1),
			JobCPUSeconds: ratio(10), JobReadBytes: ratio(0), JobWrittenBytes: ratio(0),
		}
		e.JobID, e.CPUs, e.Nodes, e.At = "a", 1, []string{"n"}, start.Add(10*time.Second)
		change(e)
		return e
	}
	span := func(nodes []string, cpus uint32, seconds int, u schemas.Usage) schemas.Span {
		return schemas.Span{JobID: "b", Nodes: nodes, CPUs: cpus, From: start,
			Until: start.Add(time.Duration(seconds) * time.Second), Usage: u}
	}
	half := schemas.Usage{CPUSeconds: 5, Seconds: 10, IOIdleSeconds: 10} // half a processor
	for _, c := range []struct {
		name   string
		epoch  *schemas.Epoch
		since  time.Time
		others []schemas.Span
		want   schemas.Foreign
	}{
		{"alone", epoch(func(*schemas.Epoch) {}), start, nil,
			schemas.Foreign{CPU: schemas.RatioOf(0.5), IOWait: schemas.RatioOf(0.1)}},
		{"beside a measured job", epoch(func(*schemas.Epoch) {}), start,
			[]schemas.Span{span([]string{"n"}, 1, 8, half)},
			schemas.Foreign{CPU: schemas.RatioOf(0.4), IOWait: schemas.RatioOf(0.1)}},
		{"beside a job that was not measured", epoch(func(*schemas.Epoch) {}), start,
			[]schemas.Span{span([]string{"n"}, 1, 10, schemas.Usage{})},
			schemas.Foreign{CPU: schemas.RatioOf(0.3)}},
		{"a job on another node", epoch(func(*schemas.Epoch) {}), start,
			[]schemas.Span{span([]string{"m"}, 1, 10, half)},
			schemas.Foreign{CPU: schemas.RatioOf(0.5), IOWait: schemas.RatioOf(0.1)}},
		{"the node is not measured", epoch(func(e *schemas.Epoch) { e.NodeCPURatio = nil }), start,
			nil, schemas.Foreign{}},
		{"the job is not measured", epoch(func(e *schemas.Epoch) { e.JobCPUSeconds = nil }), start,
			nil, schemas.Foreign{}},
		{"on two nodes", epoch(func(e *schemas.Epoch) { e.Nodes = []string{"n", "m"} }), start,
			nil, schemas.Foreign{}},
		{"the reports of several epochs came together", epoch(func(*schemas.Epoch) {}),
			start.Add(9 * time.Second), nil, schemas.Foreign{}},
		{"behind a long start-up", epoch(func(*schemas.Epoch) {}),
			start.Add(-10 * time.Second), nil, schemas.Foreign{}},
		{"timed by its arrival", epoch(func(e *schemas.Epoch) {
			e.DurationSource = schemas.DurationArrival
		}), time.Time{}, nil,
			schemas.Foreign{CPU: schemas.RatioOf(0.5), IOWait: schemas.RatioOf(0.1)}},
		{"it writes", epoch(func(e *schemas.Epoch) {
			e.JobWrittenBytes = ratio(1 << 20)
		}), start, nil, schemas.Foreign{CPU: schemas.RatioOf(0.5)}},
		{"it reads and writes next to nothing", epoch(func(e *schemas.Epoch) {
			e.JobWrittenBytes = ratio(4096)
		}), start, nil, schemas.Foreign{CPU: schemas.RatioOf(0.5), IOWait: schemas.RatioOf(0.1)}},
	} {
		if got := schemas.ForeignDuring(c.epoch, c.since, c.others); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

func TestForeignColumns_AnUnknownLoadIsTheTypicalOne(t *testing.T) {
	var columns schemas.ForeignColumns
	columns = columns.Add("batch_size", 64, 512).Add(schemas.ColumnForeignCPU, 0.2, 0.9)
	if len(columns) != 1 {
		t.Fatalf("columns %+v, want that of the foreign CPU", columns)
	}
	var load schemas.Load
	if cpu, ioWait := columns.Ratios(&load); cpu != 0.2 || ioWait != 0 || columns.AreKnown(&load) {
		t.Errorf("ratios of an unknown load = %g and %g, want the typical 0.2 and 0", cpu, ioWait)
	}
	busiest := columns.Busiest(load)
	if cpu, _ := columns.Ratios(&busiest); cpu != 0.9 || !columns.AreKnown(&busiest) {
		t.Errorf("busiest load = %g, want 0.9", cpu)
	}
	load.ForeignCPURatio = schemas.RatioOf(0)
	busiest = columns.Busiest(load)
	if cpu, _ := columns.Ratios(&load); cpu != 0 || busiest != load || !columns.AreKnown(&load) {
		t.Errorf("known load of 0 = %g, busiest %+v; want 0", cpu, busiest)
	}
	columns = columns.Add(schemas.ColumnForeignIOWait, 0.1, 0.4)
	if cpu, ioWait := columns.Ratios(&load); cpu != 0 || ioWait != 0.1 || columns.AreKnown(&load) {
		t.Errorf("ratios = %g and %g, want 0 and the typical 0.1", cpu, ioWait)
	}
	if columns = nil; !columns.AreKnown(&schemas.Load{}) {
		t.Error("a regressor without columns of foreign load lacks one")
	}
}
