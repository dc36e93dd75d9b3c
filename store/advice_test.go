package store_test

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// storeAdviceInJob gives a server the streams of the releases that stored advice in JOB.
func storeAdviceInJob(t *testing.T, url string) {
	t.Helper()
	nc, err := nats.Connect(url)
	must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(t, err)
	must(t, js.DeleteStream(t.Context(), schemas.StreamAdvice))
	job, err := js.Stream(t.Context(), schemas.StreamJob)
	must(t, err)
	c := job.CachedInfo().Config
	c.Subjects = append(c.Subjects, schemas.JobSubject("*", schemas.EventAdvice))
	_, err = js.UpdateStream(t.Context(), c)
	must(t, err)
}

type advisedAt struct {
	EventID  string `ch:"event_id"`
	Stream   string `ch:"stream"`
	Sequence uint64 `ch:"sequence"`
}

// adviceRows returns the origin of the rows of job_advice.
func adviceRows(t *testing.T, d *store.Database) (rows []advisedAt) {
	t.Helper()
	const all = "SELECT event_id, stream, sequence FROM job_advice ORDER BY event_id, stream, sequence"
	must(t, d.Query(t.Context(), &rows, all))
	return rows
}

// upgraded returns a log that holds advice in JOB and in ADVICE, tables that a store has filled
// from it, and the rows of job_advice.
func upgraded(t *testing.T) (*bus.Bus, *store.Database, []advisedAt) {
	t.Helper()
	server, d := bustest.NewServer(t), storetest.New(t)
	b := server.Connect(t)
	storeAdviceInJob(t, server.URL())
	old, fresh := newTestLog(), newTestLog()
	old.job("alpha", time.Minute, schemas.EventFinished)
	fresh.job("beta", time.Minute, schemas.EventFinished)
	last := uint64(0)
	for _, e := range old.events {
		sequence, err := b.Publish(t.Context(), e)
		must(t, err)
		last = max(last, sequence)
	}
	must(t, b.Prepare(t.Context()))

	stop := run(t, newStore(t, b, d))
	awaitSequences(t, d, map[string]uint64{schemas.StreamJob: last})
	awaitSequences(t, d, publish(t, b, fresh.events))
	stop()

	var want []advisedAt
	for _, name := range []string{schemas.StreamJob, schemas.StreamAdvice} {
		for _, r := range readLog(t, b, name) {
			if _, ok := r.Event.(*schemas.Advice); ok {
				want = append(want, advisedAt{r.Event.ID(), name, r.Sequence})
			}
		}
	}
	if len(want) != 6 || want[0].Stream == want[5].Stream {
		t.Fatalf("the log holds the advice %v, want three in JOB and three in ADVICE", want)
	}
	slices.SortFunc(want, func(a, b advisedAt) int { return strings.Compare(a.EventID, b.EventID) })
	return b, d, want
}

// Advice from both streams is in its table once, although the sequences overlap. It stays so
// through verify, repair and rebuild.
func TestStore_SeparatesTheAdviceOfOldLogs(t *testing.T) {
	t.Parallel()
	b, d, want := upgraded(t)
	same := func(after string) {
		t.Helper()
		if diff := cmp.Diff(want, adviceRows(t, d)); diff != "" {
			t.Errorf("job_advice after %s (-log +table):\n%s", after, diff)
		}
	}
	same("the upgrade")
	if _, differ := verify(t, b, d, store.VerifyOptions{}, 0); len(differ) > 0 {
		t.Errorf("differences %+v, want none", differ)
	}

	must(t, d.Exec(t.Context(), "DELETE FROM job_advice WHERE sequence <= 5"))
	lost := uint64(6 - len(adviceRows(t, d)))
	if lost == 0 {
		t.Fatal("no row was deleted")
	}
	_, differ := verify(t, b, d, store.VerifyOptions{Repair: true}, 0)
	if f := differ["job_advice"]; f.Missing != lost || !f.Mended || f.Extra+f.Double > 0 {
		t.Errorf("differences before the repair %+v, want %d missing rows, all repaired", f, lost)
	}
	same("a repair")

	const double = "INSERT INTO job_advice SELECT * FROM job_advice WHERE stream = 'ADVICE'"
	must(t, d.Exec(t.Context(), double))
	_, differ = verify(t, b, d, store.VerifyOptions{Repair: true}, 0)
	if differ["job_advice"].Double != 3 {
		t.Errorf("differences before the repair %+v, want three duplicates", differ)
	}
	same("a repair of duplicates")

	must(t, store.Rebuild(t.Context(), b, d, slog.New(slog.DiscardHandler), store.RebuildOptions{}))
	same("a rebuild")
}

// A duplicate of an advice in the other stream is dropped even if it has the same sequence.
func TestStore_DropsTheDuplicateOfAnOldAdvice(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	w := newStore(t, nil, d)
	s := newTestLog()
	s.advice("alpha", 7)
	write(t, w, batch(schemas.StreamJob, 1, s.events...))
	write(t, w, batch(schemas.StreamAdvice, 1, s.events...))
	want := []advisedAt{{s.events[0].ID(), schemas.StreamJob, 1}}
	if diff := cmp.Diff(want, adviceRows(t, d)); diff != "" {
		t.Errorf("job_advice (-want +got):\n%s", diff)
	}
}
