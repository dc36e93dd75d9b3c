package cluster

import (
	"slices"
	"testing"
	"time"

	"courier/schemas"
)

// The events of a job with ten epochs.

func startedEvent(job string, run uint32) *schemas.Started {
	e := &schemas.Started{Setting: tenEpochs, NodeCores: 2, HeartbeatSeconds: 10}
	e.JobStamp = stampOf(job, run, schemas.StartedID(job, run))
	return e
}

func epochEvent(job string, run, number uint32) *schemas.Epoch {
	e := &schemas.Epoch{Setting: tenEpochs, Epoch: number, DurationSeconds: 0.75, NodeCores: 2}
	e.JobStamp = stampOf(job, run, schemas.EpochID(job, run, number))
	return e
}

func finishedEvent(job string, run uint32) *schemas.Ended {
	e := &schemas.Ended{Setting: tenEpochs, Outcome: schemas.EventFinished, EpochsDone: 10}
	e.JobStamp = stampOf(job, run, schemas.EndedID(job, run, schemas.EventFinished))
	return e
}

var tenEpochs = schemas.Setting{
	Model: "digits-mlp", BatchSize: 16, CPUs: 2, Epochs: 10, Nodes: []string{"node-a"},
}

func stampOf(job string, run uint32, id string) schemas.JobStamp {
	return schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: id, At: time.Now().UTC()}, JobID: job, Run: run,
	}
}

// silentAt applies events that are stored one second apart, and returns the jobs that are silent
// some time after the last event.
func silentAt(after time.Duration, events ...schemas.Event) string {
	c := New()
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

// A queued job holds the queue only while its runner sends heartbeats, or if it has none.
func TestCluster_SilentInTheQueue(t *testing.T) {
	c, now := New(), time.Unix(1_790_000_000, 0)
	for i, id := range []string{"a", "b"} {
		e := &schemas.Submitted{Request: schemas.JobRequest{JobID: id}}
		e.JobID, e.At = id, now
		e.Advice.Chosen = &schemas.Alternative{}
		e.Advice.Admission = &schemas.Admission{Verdict: schemas.Queued}
		c.Apply(e, uint64(i+1), now)
	}
	c.Job("b").HasHeartbeat = true
	for _, test := range []struct {
		after time.Duration
		want  []string
	}{{29 * time.Second, nil}, {31 * time.Second, []string{"b"}}} {
		var got []string
		for _, j := range c.Silent(now.Add(test.after)) {
			got = append(got, j.ID)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("silent after %s: %v, want %v", test.after, got, test.want)
		}
	}
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
	found, cancelled := *lost, *lost // of the same run
	found.Outcome, cancelled.Outcome = schemas.EventFound, schemas.EventCancelled
	for _, c := range []struct {
		name   string
		after  time.Duration
		events []schemas.Event
		want   string
	}{
		{"just heard", time.Second, []schemas.Event{alive}, ""},
		{
			"the heartbeats that it promised may still arrive", schemas.LostAfter - time.Second,
			[]schemas.Event{alive}, "",
		},
		{
			"a minute without the heartbeats that it promised", schemas.LostAfter + time.Second,
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
		{"lost, and found", time.Hour, []schemas.Event{alive, lost, &found}, "a "},
		{"found before it was lost", time.Hour, []schemas.Event{alive, &found, lost}, ""},
		{"cancelled, and found", time.Hour, []schemas.Event{alive, lost, &cancelled, &found}, ""},
	} {
		if got := silentAt(c.after, c.events...); got != c.want {
			t.Errorf("%s: silent %q, want %q", c.name, got, c.want)
		}
	}
}

// The events of a clock that is hours slow look like those of a past run, until a heartbeat arrives.
func TestCluster_CorrectsAClockThatIsHoursSlow(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	slow := now.Add(-2 * time.Hour)
	started, epoch, ended := startedEvent("a", 1), epochEvent("a", 1, 1), finishedEvent("a", 1)
	started.At, epoch.At, ended.At = slow, slow.Add(time.Minute), slow.Add(2*time.Minute)
	found := &schemas.Ended{JobStamp: started.JobStamp, Outcome: schemas.EventFound}
	found.At = now
	c := New()
	j := c.Apply(started, 1, now)
	if j.State != schemas.StateLost {
		t.Errorf("after its start the job is %s, want lost", j.State)
	}
	j.HeardAt(now.Add(-time.Second), now) // delayed: that says nothing about a clock
	if j.ClockLag != 0 {
		t.Errorf("a delayed heartbeat makes the clock %s slow", j.ClockLag)
	}
	j.HeardAt(slow, now)
	c.Apply(found, 2, now)
	c.Apply(epoch, 3, now.Add(time.Minute))
	if j.State != schemas.StateRunning || c.RunningJobs() != 1 {
		t.Errorf("after a heartbeat and an epoch the job is %s, want running", j.State)
	}
	c.Apply(ended, 4, now.Add(2*time.Minute))
	if want := now.Add(2 * time.Minute); !j.EndedAt.Equal(want) {
		t.Errorf("the job ended at %s, want %s", j.EndedAt, want)
	}
}

// The event of a first epoch is stored with that of the second one. A clock of the runner that is wrong, or
// set back, makes no epoch last longer than it did.
func TestCluster_KnowsWhenAnEpochEndedThatIsStoredLate(t *testing.T) {
	now := time.Unix(1_790_000_000, 0)
	for _, clock := range []time.Duration{0, time.Hour, -time.Minute} {
		for _, setBack := range []time.Duration{0, time.Hour} {
			started, first, second := startedEvent("a", 1), epochEvent("a", 1, 1), epochEvent("a", 1, 2)
			started.At, first.At = now.Add(clock), now.Add(clock+3*time.Second)
			second.At = now.Add(clock + 4*time.Second - setBack)
			second.DurationSeconds = 1
			c := New()
			j, stored := c.Apply(started, 1, now), now.Add(4*time.Second)
			c.Apply(first, 2, stored)
			if at := now.Add(3 * time.Second); clock <= 0 && !j.ProgressAt.Equal(at) {
				t.Errorf("clock ahead by %s: the first epoch ended at %s, want %s", clock, j.ProgressAt, at)
			}
			c.Apply(second, 3, stored)
			if !j.ProgressAt.Equal(stored) {
				t.Errorf("clock ahead by %s, set back by %s: the second epoch ended at %s, want %s",
					clock, setBack, j.ProgressAt, stored)
			}
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
		state := New()
		var j *Job
		for i, e := range c.events {
			if j = state.Apply(e, uint64(i+1), now); j == nil {
				t.Fatalf("%s: event %d changed no job, want a change", c.name, i+1)
			}
		}
		isRunning := c.state == schemas.StateRunning
		if affected := state.Affected(c.events[len(c.events)-1], j, now); len(affected) > 0 != isRunning {
			t.Errorf("%s: got %d jobs to predict again", c.name, len(affected))
		}
		others := state.Colocated(j.Setting.Nodes, "", now)
		if j.State != c.state || float64(1+len(others)) != c.colocated {
			t.Errorf("%s: got state %s and %d co-located jobs, want %s and %g", c.name, j.State,
				len(others), c.state, c.colocated)
		}
		if silent := state.Silent(now.Add(year)); c.state != schemas.StateRunning &&
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
		state := New()
		for i, e := range c.baseline {
			state.Apply(e, uint64(i+1), now)
		}
		if got := state.Apply(c.event, 100, now) != nil; got != c.changed {
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
		state, begin := New(), time.Unix(1_790_000_000, 0).UTC()
		sub := &schemas.Submitted{
			Request: schemas.JobRequest{JobID: "a", SLO: schemas.Duration(20 * time.Second)},
			Advice:  schemas.Advice{Chosen: &schemas.Alternative{BatchSize: 16, CPUs: 2, Epochs: 10}},
		}
		sub.JobID, sub.At = "a", begin
		state.Apply(sub, 1, begin)
		start, end := startedEvent("a", 1), finishedEvent("a", 1)
		start.At, end.At = begin.Add(time.Second+c.clock), begin.Add(11*time.Second+c.clock)
		state.Apply(start, 2, begin.Add(time.Second+c.late))
		j := state.Apply(end, 3, begin.Add(11*time.Second+c.late))
		if j == nil || j.MetSLO == nil || *j.MetSLO != c.met {
			t.Errorf("%s: got job %+v, want SLO met: %v", c.name, j, c.met)
		}
		if took := j.EndedAt.Sub(j.StartedAt); took != 10*time.Second {
			t.Errorf("%s: got run time %s, want 10 s", c.name, took)
		}
	}
}
