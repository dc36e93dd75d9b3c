package advisor_test

import (
	"testing"
	"time"

	"courier/advisor"
	"courier/schemas"
)

// silentAt applies events that are stored one second apart, and returns the jobs that are silent
// some time after the last event.
func silentAt(after time.Duration, events ...schemas.Event) string {
	c := advisor.NewCluster()
	now := time.Unix(1_790_000_000, 0)
	for i, e := range events {
		now = now.Add(time.Second)
		c.Apply(e, uint64(i+1), now)
	}
	s := ""
	for _, j := range c.Silent(now.Add(after)) {
		s += j.ID + " "
	}
	return s
}

func TestCluster_Silent(t *testing.T) {
	alive := startedEvent("a", 1)
	quiet := startedEvent("a", 1)
	quiet.HeartbeatSeconds = 0
	long := epochEvent("a", 1, 1)
	long.DurationSeconds = 60
	withSLO := &schemas.Submitted{
		Request: schemas.JobRequest{JobID: "a", SLO: schemas.Duration(time.Hour)},
	}
	withSLO.JobID, withSLO.At = "a", time.Unix(1_790_000_000, 0)
	withSLO.Advice.Chosen = &schemas.Alternative{}
	lost := &schemas.Ended{Outcome: schemas.EventLost}
	lost.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: "a/1/lost", At: time.Now()},
		JobID: "a",
		Run:   1,
	}
	for _, c := range []struct {
		name   string
		after  time.Duration
		events []schemas.Event
		want   string
	}{
		{"just heard", time.Second, []schemas.Event{alive}, ""},
		{
			"thirty seconds without the heartbeat that it promised", 31 * time.Second,
			[]schemas.Event{alive}, "a ",
		},
		{
			"nothing is known of its epochs, and it has no SLO", 24 * time.Hour,
			[]schemas.Event{quiet}, "",
		},
		{
			"a day without anything is too long", 24*time.Hour + time.Second,
			[]schemas.Event{quiet}, "a ",
		},
		{"nothing is known of its epochs", 10 * time.Hour, []schemas.Event{withSLO, quiet}, ""},
		{
			"ten SLOs without anything are too long", 10*time.Hour + time.Second,
			[]schemas.Event{withSLO, quiet}, "a ",
		},
		{
			"promised none: twice its longest epoch is not too long", 2 * time.Minute,
			[]schemas.Event{quiet, long}, "",
		},
		{
			"promised none: three times its longest epoch is", 3*time.Minute + time.Second,
			[]schemas.Event{quiet, long}, "a ",
		},
		{"finished", time.Hour, []schemas.Event{alive, finishedEvent("a", 1)}, ""},
		{"lost already", time.Hour, []schemas.Event{alive, lost}, ""},
		{"lost, and back", time.Hour, []schemas.Event{alive, lost, epochEvent("a", 1, 1)}, "a "},
	} {
		if got := silentAt(c.after, c.events...); got != c.want {
			t.Errorf("%s: silent %q, want %q", c.name, got, c.want)
		}
	}
}

// An imported past run is on no node, is not lost, and ends with its outcome. A job with a recent
// event runs, regardless of its start time.
func TestCluster_ImportedRunsUseNoNode(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	ago := func(e schemas.Event, d time.Duration) schemas.Event {
		switch e := e.(type) {
		case *schemas.Started:
			e.At = now.Add(-d)
		case *schemas.Epoch:
			e.At = now.Add(-d)
		case *schemas.Ended:
			e.At = now.Add(-d)
		}
		return e
	}
	const year = 365 * 24 * time.Hour
	for _, c := range []struct {
		name      string
		events    []schemas.Event
		state     schemas.State
		colocated float64 // jobs that a new one on the node counts, itself included
	}{
		{"it has begun", []schemas.Event{ago(startedEvent("a", 1), year)}, schemas.StateLost, 1},
		{
			"it has an epoch",
			[]schemas.Event{ago(startedEvent("a", 1), year), ago(epochEvent("a", 1, 1), year)},
			schemas.StateLost, 1,
		},
		{
			"it has ended",
			[]schemas.Event{
				ago(startedEvent("a", 1), year), ago(epochEvent("a", 1, 1), year),
				ago(finishedEvent("a", 1), year),
			},
			schemas.StateFinished, 1,
		},
		{
			"a long spool has brought it up to now",
			[]schemas.Event{
				ago(startedEvent("a", 1), 3*time.Hour), ago(epochEvent("a", 1, 1), time.Minute),
			},
			schemas.StateRunning, 2,
		},
	} {
		cluster := advisor.NewCluster()
		var j *advisor.Job
		for i, e := range c.events {
			if j = cluster.Apply(e, uint64(i+1), now); j == nil {
				t.Fatalf("%s: event %d changed no job, want a change", c.name, i+1)
			}
			if risks := cluster.Watch(e, j, uint64(i+1), regressors(t), now); len(risks) > 0 {
				t.Errorf("%s: got warnings %v, want none", c.name, risks)
			}
		}
		q := cluster.Ask(schemas.JobRequest{
			Model:  model,
			CPUs:   schemas.CPUs{1},
			Epochs: 3,
			Nodes:  running.Nodes,
		}, now)
		if j.State != c.state || float64(1+len(q.Others)) != c.colocated {
			t.Errorf("%s: got state %s and %d co-located jobs, want %s and %g", c.name, j.State,
				len(q.Others), c.state, c.colocated)
		}
		if silent := cluster.Silent(now.Add(year)); c.state != schemas.StateRunning &&
			len(silent) > 0 {
			t.Errorf("%s: got silent jobs %v, want none", c.name, silent)
		}
	}
}

// Duplicates, events of earlier runs and events after the end change nothing.
func TestCluster_ApplyIgnoresOldEvents(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	for _, c := range []struct {
		name     string
		baseline []schemas.Event
		event    schemas.Event
		changed  bool
	}{
		{"a first start", nil, startedEvent("a", 1), true},
		{"a copy of the start", []schemas.Event{startedEvent("a", 1)}, startedEvent("a", 1), false},
		{
			"a new run", []schemas.Event{startedEvent("a", 1), finishedEvent("a", 1)},
			startedEvent("a", 2), true,
		},
		{
			"the next epoch", []schemas.Event{startedEvent("a", 1), epochEvent("a", 1, 1)},
			epochEvent("a", 1, 2), true,
		},
		{
			"an epoch again", []schemas.Event{startedEvent("a", 1), epochEvent("a", 1, 2)},
			epochEvent("a", 1, 2), false,
		},
		{
			"an epoch that goes back",
			[]schemas.Event{startedEvent("a", 1), epochEvent("a", 1, 2)}, epochEvent("a", 1, 1),
			false,
		},
		{
			"an epoch of an earlier run", []schemas.Event{startedEvent("a", 2)},
			epochEvent("a", 1, 7), false,
		},
		{
			"an epoch after the end", []schemas.Event{startedEvent("a", 1), finishedEvent("a", 1)},
			epochEvent("a", 1, 3), false,
		},
		{
			"a second end", []schemas.Event{startedEvent("a", 1), finishedEvent("a", 1)},
			finishedEvent("a", 1), false,
		},
		{"an epoch without its start", nil, epochEvent("a", 1, 3), true},
	} {
		cluster := advisor.NewCluster()
		for i, e := range c.baseline {
			cluster.Apply(e, uint64(i+1), now)
		}
		if got := cluster.Apply(c.event, 100, now) != nil; got != c.changed {
			t.Errorf("%s: changed = %t, want %t", c.name, got, c.changed)
		}
	}
}

// A job runs from the first to the eleventh second of its SLO of 20 s, regardless of the clock of
// its runner. Events from a spool count from the time when they happened.
func TestCluster_CorrectsTheClockOfTheRunner(t *testing.T) {
	for _, c := range []struct {
		name  string
		clock time.Duration // of the runner, ahead of the advisor's
		late  time.Duration // by which events are stored after they happened
		met   bool
	}{
		{"clocks agree", 0, 0, true},
		{"an hour ahead", time.Hour, 0, true},
		{"an hour behind", -time.Hour, 0, true},
		{"a minute in the spool", 0, time.Minute, true},
	} {
		cluster, begin := advisor.NewCluster(), time.Unix(1_790_000_000, 0).UTC()
		q := request(slo(20 * time.Second))
		q.JobID = "a"
		sub := &schemas.Submitted{
			Request: q,
			Advice:  *advisor.Decide(cluster.Ask(q, begin), regressors(t), begin),
		}
		sub.JobID, sub.At = "a", begin
		cluster.Apply(sub, 1, begin)
		start, end := startedEvent("a", 1), finishedEvent("a", 1)
		start.At, end.At = begin.Add(time.Second+c.clock), begin.Add(11*time.Second+c.clock)
		cluster.Apply(start, 2, begin.Add(time.Second+c.late))
		j := cluster.Apply(end, 3, begin.Add(11*time.Second+c.late))
		if j == nil || j.MetSLO == nil || *j.MetSLO != c.met {
			t.Errorf("%s: got job %+v, want SLO met: %v", c.name, j, c.met)
		}
		if took := j.EndedAt.Sub(j.StartedAt); took != 10*time.Second {
			t.Errorf("%s: got run time %s, want 10 s", c.name, took)
		}
	}
}
