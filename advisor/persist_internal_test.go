package advisor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/advisor/cluster"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// jobPublisher publishes the events of jobs: submitted, started, and some epochs.
type jobPublisher struct {
	t *testing.T
	b *bus.Bus
}

func stampOf(job, id string, run uint32) schemas.JobStamp {
	at := schemas.Stamp{EventID: id, At: time.Now().UTC()}
	return schemas.JobStamp{Stamp: at, JobID: job, Run: run}
}

func settingOn(n int) schemas.Setting {
	return schemas.Setting{
		Model: "m", BatchSize: 16, CPUs: 1, Epochs: 3, Nodes: []string{fmt.Sprint("node-", n%3)},
	}
}

func (r *jobPublisher) beginRun(n int) (job string, last uint64) {
	r.t.Helper()
	q := nightly(3)
	q.JobID = fmt.Sprint("job-", n)
	a := advisorBehindLog(r.t, r.b, Options{})
	if _, err := a.submit(within(r.t), q); err != nil {
		r.t.Fatal(err)
	}
	return q.JobID, publish(r.t, r.b, &schemas.Started{
		JobStamp: stampOf(q.JobID, schemas.StartedID(q.JobID, 1), 1), Setting: settingOn(n),
	})
}

func (r *jobPublisher) epoch(n int, number uint32) uint64 {
	job := fmt.Sprint("job-", n)
	return publish(r.t, r.b, &schemas.Epoch{
		JobStamp: stampOf(job, schemas.EpochID(job, 1, number), 1), Setting: settingOn(n),
		Epoch: number, DurationSeconds: float64(n%5 + 1), DurationSource: schemas.DurationReported,
	})
}

func (r *jobPublisher) end(n int) uint64 {
	job := fmt.Sprint("job-", n)
	return publish(r.t, r.b, &schemas.Ended{
		JobStamp: stampOf(job, schemas.EndedID(job, 1, schemas.EventFinished), 1),
		Setting:  settingOn(n), Outcome: schemas.EventFinished, EpochsDone: 3,
	})
}

// jobs publishes some jobs and ends every other job.
func (r *jobPublisher) jobs(from, until int) (last uint64) {
	r.t.Helper()
	for n := from; n < until; n++ {
		r.beginRun(n)
		for number := range uint32(3) {
			last = r.epoch(n, number+1)
		}
		if n%2 == 0 {
			last = r.end(n)
		}
	}
	return last
}

// runAndKill runs an advisor until it has applied an event and stored a snapshot up to another, and
// ends it without the last snapshot of a clean stop.
func runAndKill(t *testing.T, b *bus.Bus, applied, saved uint64, o Options) {
	t.Helper()
	a := advisorBehindLog(t, b, o)
	if err := a.restore(within(t)); err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- a.runParts(ctx) }()
	defer func() {
		kill()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	await(t, "the advisor to come that far", func() bool {
		a.mu.RLock()
		defer a.mu.RUnlock()
		return a.applied >= applied
	})
	await(t, "a snapshot", func() bool { return restoredAdvisor(t, b).applied >= saved })
}

// frequentSnapshots makes an advisor store its state after each event.
var frequentSnapshots = Options{
	Check: time.Millisecond, SnapshotInterval: time.Millisecond, SnapshotEvents: 1,
}

func storedSnapshots(t *testing.T, b *bus.Bus) []bus.Snapshot {
	t.Helper()
	all, err := b.Snapshots(within(t), snapshotKind, cluster.SnapshotVersion)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// replayed returns the state of a restored advisor after the rest of the log, without the parts
// that do not follow from the log: the last heartbeats and the last advice.
func replayed(t *testing.T, a *Advisor) []byte {
	t.Helper()
	o := bus.FollowOptions{Stream: schemas.StreamJob, From: a.applied + 1}
	if err := a.bus.(*bus.Bus).Read(within(t), o, func(r bus.Record) error {
		a.apply(r, false)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	jobs, _ := a.cluster.NewestFirst("", "")
	for j := range jobs {
		j.LastSeen, j.Advice = time.Time{}, nil
	}
	var state bytes.Buffer
	if err := a.cluster.Freeze().Encode(&state); err != nil {
		t.Fatal(err)
	}
	return state.Bytes()
}

// restoredAdvisor returns an advisor that has loaded the newest snapshot.
func restoredAdvisor(t *testing.T, b *bus.Bus) *Advisor {
	t.Helper()
	a := advisorBehindLog(t, b, Options{})
	if err := a.restore(within(t)); err != nil {
		t.Fatal(err)
	}
	return a
}

// A crashed advisor continues from its last snapshot and reaches the state of a full replay, also
// after several crashes.
func TestRestore_AfterACrashEqualsAFullReplay(t *testing.T) {
	b := bustest.New(t)
	r := &jobPublisher{t, b}
	for round := range 3 {
		last := r.jobs(10*round, 10*round+10)
		runAndKill(t, b, last, last, frequentSnapshots)
		r.jobs(100+round, 101+round) // published while no advisor runs
		a := restoredAdvisor(t, b)
		if a.applied < last {
			t.Fatalf("round %d starts from event %d, want the snapshot of %d", round, a.applied, last)
		}
		if !bytes.Equal(replayed(t, a), replayed(t, advisorBehindLog(t, b, Options{}))) {
			t.Errorf("round %d: state differs from the state after a full replay", round)
		}
	}
}

// A clean stop stores the state, and the next start needs no event of the log.
func TestRun_StoresTheStateWhenItStops(t *testing.T) {
	b := bustest.New(t)
	last := (&jobPublisher{t, b}).jobs(0, 4)
	_, stop := startWith(t, b, Options{}, nil)
	stop()
	if next := restoredAdvisor(t, b); next.applied < last {
		t.Errorf("the next start begins from event %d, want %d", next.applied, last)
	}
}

// An unusable snapshot is skipped in favour of an older one, or of a full replay.
func TestRestore_SkipsUnusableSnapshots(t *testing.T) {
	garbage := func(w io.Writer) error {
		var title bytes.Buffer
		if err := cluster.New().Freeze().Encode(&title); err != nil {
			return err
		}
		line, _, _ := bytes.Cut(title.Bytes(), []byte("\n"))
		_, err := fmt.Fprintf(w, "%s\nand then nothing of the kind", line)
		return err
	}
	for _, c := range []struct {
		name   string
		change func(*bus.Snapshot)
		encode func(io.Writer) error
	}{
		{"of another version", func(s *bus.Snapshot) { s.Version++ }, nil},
		{"of another service", func(s *bus.Snapshot) { s.Kind = "other" }, nil},
		{"of a stream that was made again", func(s *bus.Snapshot) {
			s.StreamCreatedAt = s.StreamCreatedAt.Add(time.Second)
		}, nil},
		{"ahead of the stream", func(s *bus.Snapshot) { s.Sequence += 1000 }, nil},
		{"of another past", func(s *bus.Snapshot) { s.StoredAt = s.StoredAt.Add(1) }, nil},
		{"damaged", func(*bus.Snapshot) {}, garbage},
		{"cut", func(*bus.Snapshot) {}, func(w io.Writer) error {
			var whole bytes.Buffer
			if err := cluster.New().Freeze().Encode(&whole); err != nil {
				return err
			}
			_, err := w.Write(whole.Bytes()[:whole.Len()/2])
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			r := &jobPublisher{t, b}
			last := r.jobs(0, 2)
			place, err := b.StreamInfo(within(t), schemas.StreamJob)
			if err != nil {
				t.Fatal(err)
			}
			a := advisorBehindLog(t, b, Options{})
			want := replayed(t, a)
			a.applied, a.newestSnapshot.stream = place.Last, place.CreatedAt
			s, frozen := a.freeze()
			if c.change(&s); c.encode == nil {
				c.encode = frozen.Encode
			}
			if err := b.SaveSnapshot(within(t), s, c.encode); err != nil {
				t.Fatal(err)
			}
			next := restoredAdvisor(t, b)
			if next.applied != 0 {
				t.Errorf("got a start from event %d, want a replay of the whole log", next.applied)
			}
			if !bytes.Equal(replayed(t, next), want) {
				t.Error("state after the restart differs from the state after a full replay")
			}
			runAndKill(t, b, last, last, frequentSnapshots) // stores a usable snapshot
			if next := restoredAdvisor(t, b); next.applied < last {
				t.Errorf("with a usable snapshot: start from event %d, want %d", next.applied, last)
			}
		})
	}
}

// Two advisors store their state concurrently. They do not touch the snapshots of another version,
// and together keep only the newest two.
func TestSnapshots_OfTwoAdvisors(t *testing.T) {
	b := bustest.New(t)
	r := &jobPublisher{t, b}
	place, err := b.StreamInfo(within(t), schemas.StreamJob)
	if err != nil {
		t.Fatal(err)
	}
	other := bus.Snapshot{
		Kind: snapshotKind, Version: cluster.SnapshotVersion + 1, Stream: schemas.StreamJob,
		StreamCreatedAt: place.CreatedAt, WrittenAt: time.Now().UTC(),
	}
	encode := func(w io.Writer) error { _, err := io.WriteString(w, "of a newer advisor"); return err }
	for range 3 {
		other.WrittenAt = other.WrittenAt.Add(time.Second)
		if err := b.SaveSnapshot(within(t), other, encode); err != nil {
			t.Fatal(err)
		}
	}
	_, stopFirst := startWith(t, b, frequentSnapshots, nil)
	_, stopSecond := startWith(t, b, frequentSnapshots, nil)
	last := r.jobs(0, 20)
	await(t, "a snapshot of the last event", func() bool {
		all := storedSnapshots(t, b)
		return len(all) > 0 && all[0].Sequence >= last
	})
	stopFirst()
	stopSecond()
	newer, err := b.Snapshots(within(t), snapshotKind, cluster.SnapshotVersion+1)
	if err != nil || len(newer) != 2 {
		t.Errorf("got %d snapshots of the other version, error %v; want 2", len(newer), err)
	}
	a := restoredAdvisor(t, b)
	if a.applied < last {
		t.Errorf("the next start begins from event %d, want %d", a.applied, last)
	}
	if !bytes.Equal(replayed(t, a), replayed(t, advisorBehindLog(t, b, Options{}))) {
		t.Error("state after the restart differs from the state after a full replay")
	}
}

// A snapshot restores a running job whose events the log has dropped.
func TestRestore_KeepsARunningJobWhoseEventsAreDropped(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	r := &jobPublisher{t, b}
	job, last := r.beginRun(1)
	runAndKill(t, b, last, last, frequentSnapshots)
	r.epoch(1, 1)
	dropped := r.epoch(1, 2)
	_, js := connect(t, server.URL())
	if err := jobStream(t, js).Purge(within(t), jetstream.WithPurgeSequence(dropped)); err != nil {
		t.Fatal(err)
	}
	a := start(t, b)
	reply, err := a.status(within(t), &schemas.JobStatusRequest{JobID: job})
	s, ok := reply.(schemas.JobStatus)
	if err != nil || !ok || s.State != schemas.StateRunning || s.User != "ada" ||
		s.SLOSeconds != 3600 || s.EpochsDone != 2 {
		t.Errorf("status %+v, %v, want running for ada after epoch 2", reply, err)
	}
	q := nightly(3)
	q.JobID = job
	if again, err := a.submit(within(t), q); err != nil || again == nil {
		t.Errorf("the same request again = %v, %v, want its first advice", again, err)
	}
}

// connect connects to a server as an operator does, who changes streams.
func connect(t testing.TB, url string) (*nats.Conn, jetstream.JetStream) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return nc, js
}

func jobStream(t testing.TB, js jetstream.JetStream) jetstream.Stream {
	t.Helper()
	stream, err := js.Stream(within(t), schemas.StreamJob)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// limit sets the size of JOB.
func limit(t testing.TB, js jetstream.JetStream, bytes int64) {
	t.Helper()
	config := jobStream(t, js).CachedInfo().Config
	config.MaxBytes = bytes
	if _, err := js.UpdateStream(within(t), config); err != nil {
		t.Fatal(err)
	}
}

// During the replay an advisor reports its progress.
func TestReady_ReportsReplayProgress(t *testing.T) {
	b := bustest.New(t)
	last := (&jobPublisher{t, b}).jobs(0, 1)
	a := restoredAdvisor(t, b)
	err := a.Ready()
	want := fmt.Sprintf("still replaying the event log (event 0 of %d); retry in a moment", last)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Ready = %v, want %q", err, want)
	}
}

// A state with a warning that is not in the event log is not stored.
func TestFreeze_WaitsForUnsentWarnings(t *testing.T) {
	a := advisorBehindLog(t, bustest.New(t), Options{})
	a.outbox.expectRisk()
	if _, frozen := a.freeze(); frozen != nil {
		t.Error("freeze returned a state before its warning was published, want nil")
	}
	a.outbox.addRisk(riskFor("a", 1))
	if _, frozen := a.freeze(); frozen != nil {
		t.Error("freeze returned a state before its warning was published, want nil")
	}
	a.outbox.close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a.outbox.publish = func(context.Context, schemas.Event) (uint64, error) {
		return 0, errors.New("refused")
	}
	a.outbox.run(ctx)
	if _, frozen := a.freeze(); frozen == nil {
		t.Error("freeze returned nil after the warning was published, want a state")
	}
}

// The state is stored while events arrive: an event that is applied between two reads is not
// mistaken for a recreated stream.
func TestSnapshots_AreStoredWhileEventsArrive(t *testing.T) {
	b := bustest.New(t)
	log := &jobPublisher{t, b}
	job, _ := log.beginRun(1)
	a := advisorBehindLog(t, b, Options{SnapshotInterval: time.Nanosecond})
	if err := a.restore(within(t)); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(within(t))
	var parts sync.WaitGroup
	parts.Go(func() {
		_ = b.Follow(ctx, bus.FollowOptions{Stream: schemas.StreamJob, From: 1}, func(r bus.Record) error {
			a.apply(r, false)
			return nil
		})
	})
	parts.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			e := &schemas.Epoch{
				JobStamp: stampOf(job, fmt.Sprint("epoch-", n), 1), Setting: settingOn(1),
				Epoch: uint32(n), DurationSeconds: 1, DurationSource: schemas.DurationReported,
			}
			if _, err := b.Publish(ctx, e); err != nil {
				return
			}
		}
	})
	for range 50 {
		if err := a.trySnapshot(within(t)); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	parts.Wait()
}
