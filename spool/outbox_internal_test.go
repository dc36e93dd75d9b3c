package spool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func setting() schemas.Setting {
	return schemas.Setting{Model: "m", BatchSize: 8, CPUs: 1, Epochs: 3, Nodes: []string{"n"}}
}

func stamp(job, eventID string, at time.Time) schemas.JobStamp {
	return schemas.JobStamp{
		Stamp: schemas.Stamp{EventID: eventID, At: at},
		JobID: job,
		Run:   1,
	}
}

func epochEvent(job string, n uint32) *schemas.Epoch {
	at := noon.Add(time.Duration(n) * time.Second)
	return &schemas.Epoch{
		JobStamp:        stamp(job, schemas.EpochID(job, 1, n), at),
		Setting:         setting(),
		Epoch:           n,
		DurationSeconds: 1,
		DurationSource:  schemas.DurationReported,
	}
}

func endedEvent(job string) *schemas.Ended {
	return &schemas.Ended{
		JobStamp: stamp(job, schemas.EndedID(job, 1, schemas.EventFinished), noon),
		Outcome:  schemas.EventFinished,
		Setting:  setting(),
	}
}

// storedIDs waits for n events in the stream JOB and returns their identities.
func storedIDs(t *testing.T, b *bus.Bus, n int) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []string
	collect := func(r bus.Record) error {
		if all = append(all, r.Event.ID()); len(all) == n {
			cancel()
		}
		return nil
	}
	o := bus.FollowOptions{Stream: schemas.StreamJob}
	must(t, b.Follow(ctx, o, collect))
	return all
}

func TestReplay_PublishesEachEventOnceAndInOrder(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	f := newRunFile(dir, "", "a", 1)
	for _, n := range []uint32{1, 2, 1, 3} {
		must(t, f.append(epochEvent("a", n)))
	}
	if n, err := Replay(t.Context(), dir, b, quiet); n != 0 || err != nil {
		t.Errorf("Replay() = %d, %v while the run is alive, want 0", n, err)
	}
	must(t, f.close())
	// Epoch 2 was published before, but its acknowledgement was lost.
	if _, err := b.Publish(t.Context(), epochEvent("a", 2)); err != nil {
		t.Fatal(err)
	}
	if n, err := Replay(t.Context(), dir, b, quiet); n != 3 || err != nil {
		t.Errorf("Replay() = %d, %v, want 3", n, err)
	}
	if diff := cmp.Diff([]string{"a/1/2", "a/1/1", "a/1/3"}, storedIDs(t, b, 3)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("spool holds %v, want nothing", left)
	}
}

func TestReplay_SkipsUnreadableLines(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	line, err := encodeLine(epochEvent("a", 1))
	must(t, err)
	other, err := encodeLine(epochEvent("b", 1))
	must(t, err)
	text := "\n{\n" + string(line) +
		`{"subject":"job.a.epoch","event":{"epoch":-1}}` + "\n" +
		`{"subject":"no.such.thing","event":{}}` + "\n" +
		strings.Repeat("z", 3*schemas.MaxMessageBytes) + "\n" +
		string(other) + string(line[:len(line)/2])
	must(t, os.WriteFile(filepath.Join(dir, "a-1.jsonl"), []byte(text), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600))
	if n, err := Replay(t.Context(), dir, b, quiet); n != 2 || err != nil {
		t.Errorf("Replay() = %d, %v, want 2", n, err)
	}
	if diff := cmp.Diff([]string{"a/1/1", "b/1/1"}, storedIDs(t, b, 2)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	if len(left) != 1 || filepath.Base(left[0]) != "notes.txt" {
		t.Errorf("directory holds %v, want only notes.txt", left)
	}
}

func TestReplay_KeepsFilesWhileNATSIsUnreachable(t *testing.T) {
	server, dir := bustest.NewServer(t), t.TempDir()
	b := server.Connect(t)
	f := newRunFile(dir, "", "a", 1)
	must(t, errors.Join(f.append(epochEvent("a", 1)), f.close()))
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if n, err := Replay(ctx, dir, b, quiet); n != 0 || !errors.Is(err, schemas.ErrUnavailable) {
		t.Errorf("Replay() = %d, %v, want unavailable", n, err)
	}
	if _, err := os.Stat(f.path); err != nil {
		t.Errorf("spool file: %v, want it kept", err)
	}
	if n, err := Replay(t.Context(), filepath.Join(dir, "none"), b, quiet); n != 0 || err != nil {
		t.Errorf("Replay() of a missing directory = %d, %v, want 0", n, err)
	}
}

func TestRunFile_ContinuesADamagedFile(t *testing.T) {
	dir := t.TempDir()
	f := newRunFile(dir, "", "a", 1)
	must(t, os.WriteFile(f.path, []byte(`{"subject":"job.a.ep`), 0o600))
	must(t, errors.Join(f.append(epochEvent("a", 2)), f.close()))
	text, err := os.ReadFile(f.path)
	must(t, err)
	var got []string
	skipped := 0
	collect := func(e schemas.Event, _ int64) error { got = append(got, e.ID()); return nil }
	skip := func([]byte, error) { skipped++ }
	if _, err := readLines(bytes.NewReader(text), collect, skip); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []string{"a/1/2"}) || skipped != 1 {
		t.Errorf("events %v, %d lines skipped, want a/1/2 and 1", got, skipped)
	}
}

func TestRunFile_IsBounded(t *testing.T) {
	f := newRunFile(t.TempDir(), "", "a", 1)
	must(t, f.append(epochEvent("a", 1)))
	f.sizeBytes = maxFileBytes - 10
	if err := f.append(epochEvent("a", 2)); !errors.Is(err, ErrFull) {
		t.Errorf("append() to a full file = %v, want ErrFull", err)
	}
	if err := f.append(endedEvent("a")); err != nil {
		t.Errorf("append() of the end = %v, want nil", err)
	}
	must(t, f.close())
}

func FuzzReadLines(f *testing.F) {
	line, err := encodeLine(epochEvent("a", 1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add(append(slices.Clone(line), line[:20]...))
	f.Add([]byte("{}\n\n{\"subject\":\"dead.x\",\"event\":null}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		validate := func(e schemas.Event, _ int64) error {
			if e.ID() == "" || e.Validate() != nil {
				t.Errorf("the outbox returned the invalid event %+v", e)
			}
			return nil
		}
		skip := func([]byte, error) {}
		if _, err := readLines(bytes.NewReader(text), validate, skip); err != nil {
			t.Error(err)
		}
	})
}

func TestOutbox_SpoolsWhatTheQueueCannotHold(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	o := NewOutbox(dir, "", "a", 1, quiet)
	const events = maxQueued + 50 // Run has not started: the first 50 go to the spool file
	for n := range uint32(events) {
		o.Add(epochEvent("a", n+1))
	}
	if got := o.file.waiting(); got != 50 {
		t.Errorf("%d events on disk, want 50", got)
	}
	connected := make(chan *bus.Bus, 1)
	connected <- b
	go o.Run(t.Context(), connected)
	if left := o.Finish(); left != 0 {
		t.Errorf("%d events left, want none", left)
	}
	checkOrder(t, storedIDs(t, b, events), events)
	if o.lost.Load() != 0 {
		t.Errorf("%d events lost, want none", o.lost.Load())
	}
}

// checkOrder fails unless the identities are those of epochs 1 to want of job a, in order.
func checkOrder(t *testing.T, ids []string, want int) {
	t.Helper()
	if len(ids) != want {
		t.Errorf("%d events in the log, want %d", len(ids), want)
	}
	for n, id := range ids {
		if want := epochEvent("a", uint32(n+1)).ID(); id != want {
			t.Fatalf("event %d of the log is %s, want %s", n+1, id, want)
		}
	}
}

// The queue overflows during the publish of its oldest event, which then fails.
func TestOutbox_KeepsOrderWhenItOverflowsDuringAPublish(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	o := NewOutbox(dir, "", "a", 1, quiet)
	o.Add(epochEvent("a", 1))
	publishing := o.queue[0]
	const events = maxQueued + 2
	for n := uint32(2); n <= events; n++ {
		o.Add(epochEvent("a", n))
	}
	o.remove([]schemas.Event{publishing}, false)
	if got := o.file.waiting(); got != 2 {
		t.Errorf("%d events on disk, want 2", got)
	}
	connected := make(chan *bus.Bus, 1)
	connected <- b
	go o.Run(t.Context(), connected)
	if left := o.Finish(); left != 0 {
		t.Errorf("%d events left, want none", left)
	}
	checkOrder(t, storedIDs(t, b, events), events)
}

func TestOutbox_CountsLostEvents(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	must(t, os.WriteFile(blocked, nil, 0o600))
	o := NewOutbox(filepath.Join(blocked, "spool"), "", "a", 1, quiet) // the directory cannot be created
	o.Add(epochEvent("a", 1))
	go o.Run(t.Context(), nil)
	if left := o.Finish(); left != 0 || o.lost.Load() != 1 {
		t.Errorf("%d on disk, %d lost, want 0 and 1", left, o.lost.Load())
	}
}

func TestDefaultDir_IsBelowTheCache(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	if got, want := DefaultDir(), filepath.Join(cache, "courier", "spool"); got != want {
		t.Errorf("DefaultDir() = %q, want %q", got, want)
	}
}

// Events that were spooled for one cluster wait for it, and are not published to another. After a month
// they are removed.
func TestReplay_PublishesToTheClusterOfTheEvents(t *testing.T) {
	first, second, dir := bustest.NewServer(t).Connect(t), bustest.NewServer(t).Connect(t), t.TempDir()
	cluster, err := first.ClusterID(t.Context())
	must(t, err)
	addresses := map[string]string{"a": "", "old": first.Address(), "any": "", "unknown": first.Address()}
	for job, address := range addresses {
		f := newRunFile(dir, address, job, 1)
		must(t, f.append(epochEvent(job, 1)))
		if job == "a" || job == "old" {
			must(t, f.belongTo(cluster))
		}
		must(t, f.append(endedEvent(job)))
		must(t, f.close())
	}
	long := time.Now().Add(-2 * maxForeignAge)
	must(t, os.Chtimes(filepath.Join(dir, clusterPrefix+cluster, "old-1"+fileSuffix), long, long))
	for _, step := range []struct {
		name string
		b    *bus.Bus
		want int
	}{
		{"the other cluster gets what belongs to none", second, 2},
		{"nothing is left for it", second, 0},
		{"the first one gets its own, and what waits for its address", first, 4},
	} {
		if n, err := Replay(t.Context(), dir, step.b, quiet); n != step.want || err != nil {
			t.Errorf("%s: Replay() = %d, %v, want %d", step.name, n, err, step.want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
		t.Errorf("spool holds %v, want nothing", left)
	}
}

// A run that has begun on one cluster publishes nothing to another one, which may have taken over the address
// while the client was not connected.
func TestOutbox_LeavesEventsOfAnotherCluster(t *testing.T) {
	for name, isReplaced := range map[string]bool{"from the start": false, "after a reconnect": true} {
		server := bustest.NewServer(t)
		b, o := server.Connect(t), NewOutbox(t.TempDir(), "", "a", 1, quiet)
		if isReplaced {
			o.replay(t.Context(), b)
			server.Stop()
			server.Restart(t)
			for b.Connections() < 2 {
				runtime.Gosched()
			}
		}
		must(t, o.file.belongTo("gone"))
		o.Add(epochEvent("a", 1))
		connected := make(chan *bus.Bus, 1)
		connected <- b
		go o.Run(t.Context(), connected)
		if n := o.Finish(); n != 1 {
			t.Errorf("%s: %d events wait, want 1", name, n)
		}
		if last, err := b.LastSequence(t.Context(), schemas.StreamJob); last != 0 || err != nil {
			t.Errorf("%s: %d events in the log, %v; want none", name, last, err)
		}
	}
}

// Samples on disk that were measured for another cluster are dropped, and counted.
func TestSampleOutbox_DropsSamplesOfAnotherCluster(t *testing.T) {
	b := bustest.New(t)
	o := NewSampleOutbox(t.TempDir(), quiet)
	o.spool(sample(1))
	must(t, o.file.belongTo("gone"))
	connected := make(chan *bus.Bus, 1)
	connected <- b
	o.replay(t.Context(), b)
	o.Add(sample(2))
	go o.Run(t.Context(), connected)
	if n := o.Finish(); n != 0 || o.Lost() != 1 || o.Published() != 1 {
		t.Errorf("%d samples wait, %d lost, %d published; want 0, 1 and 1", n, o.Lost(), o.Published())
	}
}

func sample(n uint64) *schemas.Sample {
	s := &schemas.Sample{Node: "n", BootID: "boot", Number: n, IntervalSeconds: 2, Cores: 1}
	s.EventID, s.At = schemas.SampleID("n", "boot", n), noon.Add(time.Duration(n)*time.Second)
	return s
}

// sampleMessages returns the numbers of the samples in each message of the stream NODE.
func sampleMessages(t *testing.T, b *bus.Bus) (messages [][]uint64) {
	t.Helper()
	last := uint64(0)
	must(t, b.Read(t.Context(), bus.FollowOptions{Stream: schemas.StreamNode}, func(r bus.Record) error {
		if r.Sequence != last {
			messages = append(messages, nil)
		}
		last = r.Sequence
		end := len(messages) - 1
		messages[end] = append(messages[end], r.Event.(*schemas.Sample).Number)
		return nil
	}))
	return messages
}

// Samples that are added together form a message, without those that are invalid.
func TestSampleOutbox_PublishesMessages(t *testing.T) {
	b := bustest.New(t)
	o := NewSampleOutbox(t.TempDir(), quiet)
	invalid := sample(4)
	invalid.Cores = 0
	o.replay(t.Context(), b) // finds that NATS is of the cluster of the samples
	for _, message := range [][]schemas.Event{{sample(1), sample(2)}, {sample(3), invalid, sample(5)}} {
		if !o.publish(t.Context(), b, message) {
			t.Errorf("samples %v are spooled, want them published", message)
		}
	}
	if o.Published() != 4 || o.Lost() != 1 {
		t.Errorf("%d published, %d lost, want 4 and 1", o.Published(), o.Lost())
	}
	if diff := cmp.Diff([][]uint64{{1, 2}, {3}, {5}}, sampleMessages(t, b)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// The samples of a process that was killed are published in full messages. After an interruption, the
// next attempt begins with the first message that was not published.
func TestSampleOutbox_SurvivesARestart(t *testing.T) {
	b, dir := bustest.New(t), t.TempDir()
	o := NewSampleOutbox(dir, quiet)
	var text bytes.Buffer
	for n := range uint64(250) {
		o.Add(sample(n + 1))
		line, err := encodeLine(sample(n + 1))
		must(t, err)
		text.Write(line)
	}
	if at := o.WaitingSince(); !at.Equal(sample(1).At) {
		t.Errorf("samples wait since %s, want %s", at, sample(1).At)
	}
	go o.Run(t.Context(), nil)
	if n := o.Finish(); n != 250 || !o.WaitingSince().Equal(sample(1).At) {
		t.Errorf("%d samples wait since %s, want 250", n, o.WaitingSince())
	}

	whole := text.Len()
	broken := io.MultiReader(bytes.NewReader(text.Bytes()[:whole*3/5]), iotest.ErrReader(errors.New("broken")))
	n, done, err := publishLines(t.Context(), b, broken, quiet)
	lines := bytes.Count(text.Bytes()[:done], []byte("\n"))
	if n != 100 || lines != 100 || !errors.Is(err, errUnreadable) {
		t.Errorf("%d samples published, %d lines, %v; want 100", n, lines, err)
	}
	if n, err := Replay(t.Context(), dir, b, quiet); n != 250 || err != nil {
		t.Errorf("Replay() = %d, %v, want 250", n, err)
	}
	var sizes []int
	for _, m := range sampleMessages(t, b) {
		sizes = append(sizes, len(m))
	}
	if diff := cmp.Diff([]int{100, 100, 50}, sizes); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// patience limits how long a test waits, so that a failing test cannot hang. No machine
// is too slow for it.
const patience = 5 * time.Minute

var quiet = slog.New(slog.DiscardHandler)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
