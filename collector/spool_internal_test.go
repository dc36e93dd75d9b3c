package collector

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var quiet = slog.New(slog.DiscardHandler)

func setting() schemas.Setting {
	return schemas.Setting{Model: "m", BatchSize: 8, CPUs: 1, Epochs: 3, Nodes: []string{"n"}}
}

// epochEvent returns epoch n of run 1 of a job, an hour ago.
func epochEvent(job string, n uint32) *schemas.Epoch {
	return &schemas.Epoch{JobStamp: schemas.JobStamp{Stamp: schemas.Stamp{EventID: schemas.EpochID(job, 1, n), At: noon.Add(time.Duration(n) * time.Second)}, JobID: job, Run: 1},
		Setting: setting(), Epoch: n, DurationSeconds: 1, DurationSource: schemas.DurationReported}
}

func endedEvent(job string) *schemas.Ended {
	return &schemas.Ended{JobStamp: schemas.JobStamp{Stamp: schemas.Stamp{EventID: schemas.EndedID(job, 1, schemas.EventFinished), At: noon}, JobID: job, Run: 1},
		Outcome: schemas.EventFinished, Setting: setting()}
}

// logged returns the identities in JOB, n of them.
func logged(t *testing.T, b *bus.Bus, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var all []string
	if err := b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamJob}, func(r bus.Record) error {
		if all = append(all, r.Event.ID()); len(all) == n {
			cancel()
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestReplaySpool_PublishesInOrderOnce(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	s := newSpool(dir, "a", 1)
	for _, e := range []schemas.Event{epochEvent("a", 1), epochEvent("a", 2), epochEvent("a", 1), epochEvent("a", 3)} {
		if err := s.append(e); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := ReplaySpool(t.Context(), dir, b, quiet); n != 0 || err != nil {
		t.Errorf("ReplaySpool() = %d, %v while the run lives, want 0", n, err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Publish(t.Context(), epochEvent("a", 2)); err != nil { // it did arrive after all
		t.Fatal(err)
	}
	if n, err := ReplaySpool(t.Context(), dir, b, quiet); n != 3 || err != nil {
		t.Errorf("ReplaySpool() = %d, %v, want 3", n, err)
	}
	if diff := cmp.Diff([]string{"a/1/2", "a/1/1", "a/1/3"}, logged(t, b, 3)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("spool holds %v, want nothing", left)
	}
}

func TestReplaySpool_ToleratesWhatIsTorn(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	line, err := encodeSpooled(epochEvent("a", 1))
	if err != nil {
		t.Fatal(err)
	}
	other, err := encodeSpooled(epochEvent("b", 1))
	if err != nil {
		t.Fatal(err)
	}
	text := "\n{\n" + string(line) + `{"subject":"job.a.epoch","event":{"epoch":-1}}` + "\n" + `{"subject":"no.such.thing","event":{}}` + "\n" +
		strings.Repeat("z", 3*schemas.MaxMessageBytes) + "\n" + string(other) + string(line[:len(line)/2])
	if err := os.WriteFile(filepath.Join(dir, "a-1.jsonl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n, err := ReplaySpool(t.Context(), dir, b, quiet); n != 2 || err != nil {
		t.Errorf("ReplaySpool() = %d, %v, want 2", n, err)
	}
	if diff := cmp.Diff([]string{"a/1/1", "b/1/1"}, logged(t, b, 2)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 1 || filepath.Base(left[0]) != "notes.txt" {
		t.Errorf("folder holds %v, want only what is not ours", left)
	}
}

func TestReplaySpool_KeepsWhatNATSDoesNotTake(t *testing.T) {
	server, dir := bustest.NewServer(t), t.TempDir()
	b := server.Connect(t)
	s := newSpool(dir, "a", 1)
	if err := errors.Join(s.append(epochEvent("a", 1)), s.close()); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if n, err := ReplaySpool(ctx, dir, b, quiet); n != 0 || !errors.Is(err, schemas.ErrUnavailable) {
		t.Errorf("ReplaySpool() = %d, %v, want unavailable", n, err)
	}
	if _, err := os.Stat(s.path); err != nil {
		t.Errorf("spool file: %v, want it kept", err)
	}
	if n, err := ReplaySpool(t.Context(), filepath.Join(dir, "none"), b, quiet); n != 0 || err != nil {
		t.Errorf("ReplaySpool() of no folder = %d, %v, want 0", n, err)
	}
}

func TestSpool_TakesUpATornFile(t *testing.T) {
	dir := t.TempDir()
	s := newSpool(dir, "a", 1)
	if err := os.WriteFile(s.path, []byte(`{"subject":"job.a.ep`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.append(epochEvent("a", 2)), s.close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	torn := 0
	if err := readSpool(bytes.NewReader(text), func(e schemas.Event) error { got = append(got, e.ID()); return nil }, func([]byte, error) { torn++ }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []string{"a/1/2"}) || torn != 1 {
		t.Errorf("events %v, %d torn, want a/1/2 and 1", got, torn)
	}
}

func TestSpool_IsBounded(t *testing.T) {
	s := newSpool(t.TempDir(), "a", 1)
	if err := s.append(epochEvent("a", 1)); err != nil {
		t.Fatal(err)
	}
	s.size = maxSpoolBytes - 10
	if err := s.append(epochEvent("a", 2)); !errors.Is(err, ErrSpoolFull) {
		t.Errorf("append() to a full spool = %v, want ErrSpoolFull", err)
	}
	if err := s.append(endedEvent("a")); err != nil {
		t.Errorf("append() of the end = %v, want it taken even so", err)
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
}

func FuzzReadSpool(f *testing.F) {
	line, err := encodeSpooled(epochEvent("a", 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add(append(slices.Clone(line), line[:20]...))
	f.Add([]byte("{}\n\n{\"subject\":\"dead.x\",\"event\":null}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := readSpool(bytes.NewReader(text), func(e schemas.Event) error {
			if e.ID() == "" || e.Validate() != nil {
				t.Errorf("event %+v is not valid", e)
			}
			return nil
		}, func([]byte, error) {}); err != nil {
			t.Error(err)
		}
	})
}

func TestOutbox_NeverWaitsAndLosesNothing(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	o := newOutbox(dir, "a", 1, quiet)
	const events = outboxLength + 50 // nobody takes them yet: the rest goes to the spool
	for n := range uint32(events) {
		o.add(epochEvent("a", n+1))
	}
	if got := o.spool.count(); got != 50 {
		t.Errorf("%d events on disk, want 50", got)
	}
	connected := make(chan *bus.Bus, 1)
	connected <- b
	go o.run(t.Context(), connected)
	if left := o.finish(); left != 0 {
		t.Errorf("%d events left, want none", left)
	}
	got := map[string]bool{}
	for _, id := range logged(t, b, events) {
		got[id] = true
	}
	if len(got) != events {
		t.Errorf("%d events in the log, want %d", len(got), events)
	}
	if o.lost.Load() != 0 {
		t.Errorf("%d events lost, want none", o.lost.Load())
	}
}

func TestOutbox_CountsWhatNobodyTakes(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o := newOutbox(filepath.Join(blocked, "spool"), "a", 1, quiet) // no folder can be made there
	o.add(epochEvent("a", 1))
	go o.run(t.Context(), nil)
	if left := o.finish(); left != 0 || o.lost.Load() != 1 {
		t.Errorf("%d on disk, %d lost, want 0 and 1", left, o.lost.Load())
	}
}
