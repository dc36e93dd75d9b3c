package main

import (
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An older release created the stream DEAD, which cannot store marks of replayed letters. Courier
// publishes nothing, and the error names the command that repairs the stream.
func TestDeadReplay_NeedsTheSubjectOfMarks(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	sample := &schemas.Sample{
		Node:            "node-b",
		BootID:          "boot",
		Number:          1,
		IntervalSeconds: 2,
		Cores:           2,
	}
	sample.EventID, sample.At = schemas.SampleID(
		sample.Node, sample.BootID, sample.Number,
	), time.Now().UTC()
	data, err := schemas.Marshal(sample)
	if err != nil {
		t.Fatal(err)
	}
	dead := &schemas.Dead{
		Stream:         schemas.StreamNode,
		OriginSequence: 9,
		OriginSubject:  sample.Subject(),
		Reason:         "invalid",
		Data:           data,
		OriginBytes:    len(data),
	}
	dead.EventID, dead.At = "NODE/9/dead", time.Now().UTC()
	if _, err := b.Publish(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), schemas.StreamDead)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.Subjects = []string{schemas.DeadSubject("*")}
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	c := deadReplay{natsFlags: natsFlags{NATSURL: server.URL()}, All: true}
	w, _ := testEnvironment(t.Context())
	if err := c.Run(w); err == nil ||
		!strings.Contains(err.Error(),
			"could not be marked: DEAD: subjects is dead.*, want dead.* dead.*.replayed; run"+
				" courier streams --apply") {
		t.Errorf("dead replay = %v, want a hint at courier streams --apply", err)
	}
	if last, err := b.LastSequence(t.Context(), schemas.StreamNode); err != nil || last != 0 {
		t.Errorf("NODE ends at %d, %v, want an empty stream", last, err)
	}
	if _, err := b.ApplyStreams(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, out := testEnvironment(t.Context())
	if err := c.Run(w); err != nil ||
		out.String() != "1  NODE 9 node.node-b.sample: replayed as NODE 1\n1 replayed\n" {
		t.Errorf("dead replay printed %q, %v, want one replayed letter", out.String(), err)
	}
}
