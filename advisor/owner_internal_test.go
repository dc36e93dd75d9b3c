package advisor

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
)

// A job that is not in memory keeps its owner, and nobody else can start it.
func TestOwnerInLog(t *testing.T) {
	b := bustest.New(t)
	a := New(b, Options{}, slog.New(slog.DiscardHandler), nil) // it does not run, so its memory is empty
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	begin := func(job, user string) *schemas.Started {
		e := &schemas.Started{
			Setting: schemas.Setting{
				Model:     "m",
				BatchSize: 4,
				CPUs:      1,
				Epochs:    2,
				Nodes:     []string{"node-a"},
			},
			NodeCores: 2,
			User:      user,
		}
		e.JobStamp = schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: schemas.StartedID(job, 1), At: time.Now().UTC()},
			JobID: job,
			Run:   1,
		}
		return e
	}
	if _, err := b.Publish(ctx, begin("old", "ada")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		job, user string
		known     bool
	}{{"old", "ada", true}, {"new", "", false}} {
		if user, known, err := a.ownerOf(ctx, c.job); err != nil || user != c.user || known != c.known {
			t.Errorf("owner of %s = %q, %v, %v, want %q, %v", c.job, user, known, err, c.user, c.known)
		}
	}
	if _, err := a.personEvent(ctx, "bob", begin("old", "")); schemas.AsError(err).Code != schemas.CodeForbidden {
		t.Errorf("start of ada's job by bob = %v, want forbidden", err)
	}
}

// A person cannot fill a node by a report, or run elsewhere than their job was granted.
func TestPersonEvent_IsWithinTheGrant(t *testing.T) {
	b := bustest.New(t)
	a := New(b, Options{}, slog.New(slog.DiscardHandler), nil)
	now := time.Now().UTC()
	a.cluster.Apply(&schemas.Sample{
		Stamp: schemas.Stamp{EventID: "node-a/1", At: now}, Node: "node-a", Cores: 4, IntervalSeconds: 2,
	}, 1, now)
	granted := &schemas.Submitted{Request: schemas.JobRequest{
		JobID: "granted", Model: "m", User: "ada", CPUs: schemas.CPUs{1, 2}, Nodes: []string{"node-a"},
	}}
	granted.JobID, granted.At = "granted", now
	a.cluster.Apply(granted, 2, now)
	shaped := &schemas.Submitted{Request: schemas.JobRequest{
		JobID: "shaped", Model: "m", User: "ada", CPUs: schemas.CPUs{1}, Workers: schemas.Workers{2, 4},
	}}
	shaped.JobID, shaped.At = "shaped", now
	a.cluster.Apply(shaped, 3, now)
	for _, c := range []struct {
		job     string
		cpus    uint32
		workers uint32
		node    string
		field   string // of the refusal; "": none
	}{
		{"granted", 2, 0, "node-a", ""},
		{"granted", 2, 1, "node-a", ""},
		{"granted", 2, 2, "node-a", "workers"},
		{"granted", 4, 0, "node-a", "cpus"},
		{"granted", 2, 0, "node-b", "nodes"},
		{"shaped", 1, 2, "node-a", ""},
		{"shaped", 1, 0, "node-a", "workers"},
		{"free", 65_536, 0, "node-a", "cpus"},
		{"free", 4, 0, "node-a", ""},
		{"free", 2, 3, "node-a", "cpus"},
		{"elsewhere", 64, 0, "node-b", ""}, // nothing is known of the node
	} {
		setting := &schemas.Setting{CPUs: c.cpus, Workers: c.workers, Nodes: []string{c.node}}
		err := a.checkGranted(c.job, setting)
		if got := schemas.AsError(err); c.field == "" && err != nil || c.field != "" && got.Field != c.field {
			t.Errorf("%s with %d CPUs on %s: %v, want a refusal of %q", c.job, c.cpus, c.node, err, c.field)
		}
	}
	filling := &schemas.Epoch{Setting: schemas.Setting{
		Model: "m", BatchSize: 4, CPUs: 65_536, Nodes: []string{"node-a"},
	}, Epoch: 1, DurationSeconds: 1, DurationSource: schemas.DurationReported}
	filling.JobStamp = schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: schemas.EpochID("granted", 1, 1), At: now}, JobID: "granted", Run: 1,
	}
	if _, err := a.personEvent(t.Context(), "ada", filling); schemas.AsError(err).Field != "cpus" {
		t.Errorf("an epoch with 65,536 CPUs = %v, want a refusal", err)
	}
	for _, c := range []struct {
		cpus int
		ok   bool
	}{{4, true}, {65_536, false}} {
		q := &schemas.JobRequest{Model: "m", CPUs: schemas.CPUs{c.cpus}, Nodes: []string{"node-a"}}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := a.personSubmit(ctx, "ada", q)
		cancel()
		if (err == nil) != c.ok {
			t.Errorf("submit with %d CPUs on 4 processors = %v, want ok %t", c.cpus, err, c.ok)
		}
	}
}
