package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func history(t testing.TB, d *store.Database, since time.Time) (all []schemas.Event) {
	t.Helper()
	must(t, store.NewHistory(d).Events(t.Context(), since, func(e schemas.Event) error {
		all = append(all, e)
		return nil
	}))
	return all
}

func eventsSince(events []schemas.Event, since time.Time) (all []schemas.Event) {
	for _, e := range events {
		switch e := e.(type) {
		case *schemas.Started:
			if !e.At.Before(since) {
				all = append(all, e)
			}
		case *schemas.Epoch:
			if !e.At.Before(since) {
				all = append(all, e)
			}
		case *schemas.Ended:
			if !e.At.Before(since) {
				all = append(all, e)
			}
		}
	}
	return all
}

func TestHistory_ReturnsThePublishedEvents(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	b := bustest.New(t)
	s := newTestLog()
	s.job("alpha", time.Minute, schemas.EventFinished)
	s.started("beta", 1)
	s.epoch("beta", 1, 1)
	s.ended("beta", 1, schemas.EventLost)
	s.started("alpha", 2)
	s.epoch("beta", 1, 2)
	s.ended("beta", 1, schemas.EventCancelled)
	s.ended("alpha", 2, schemas.EventFailed)
	run(t, newStore(t, b, d))
	awaitSequences(t, d, publish(t, b, s.events))
	third := s.events[2].(*schemas.Epoch).At
	for _, since := range []time.Time{{}, third, s.at.Add(time.Nanosecond)} {
		if diff := cmp.Diff(eventsSince(s.events, since), history(t, d, since),
			cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("history since %v (-published +got):\n%s", since, diff)
		}
	}
}

func TestHistory_ReturnsDuplicatesOnce(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	s := newTestLog()
	s.started("alpha", 1)
	s.epoch("alpha", 1, 1)
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, s.events...))
	must(t, d.Exec(t.Context(), "INSERT INTO job_epoch SELECT * REPLACE (9 AS sequence) FROM job_epoch"))
	must(t, d.Exec(t.Context(), "INSERT INTO log_position SELECT 'JOB', 9, now64(9)"))
	if diff := cmp.Diff(s.events, history(t, d, time.Time{})); diff != "" {
		t.Errorf("history of a table with duplicates (-want +got):\n%s", diff)
	}
}

// The test reads the history while only some tables have the rows of a batch.
func TestHistory_HasNoGaps(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	w := newStore(t, nil, d)
	s := newTestLog()
	s.started("alpha", 1)
	write(t, w, batch(schemas.StreamJob, 1, s.events...))
	next := newTestLog()
	next.epoch("alpha", 1, 1)
	next.ended("alpha", 1, schemas.EventFinished)
	must(t, d.Exec(t.Context(), "RENAME TABLE job_ended TO hidden"))
	if err := w.Write(t.Context(), batch(schemas.StreamJob, 2, next.events...)); err == nil {
		t.Fatal("writing a batch to a missing table succeeded, want an error")
	}
	must(t, d.Exec(t.Context(), "RENAME TABLE hidden TO job_ended"))
	if diff := cmp.Diff(s.events, history(t, d, time.Time{})); diff != "" {
		t.Errorf("history during an incomplete batch (-want +got):\n%s", diff)
	}
	write(t, w, batch(schemas.StreamJob, 2, next.events...))
	if diff := cmp.Diff(append(s.events, next.events...), history(t, d, time.Time{})); diff != "" {
		t.Errorf("history after the batch (-want +got):\n%s", diff)
	}
}

func TestHistory_StopsAtAnErrorOfYield(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	s := newTestLog()
	for n := range uint32(5) {
		s.epoch("alpha", 1, n+1)
	}
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, s.events...))
	enough, n := errors.New("enough"), 0
	err := store.NewHistory(d).Events(t.Context(), time.Time{}, func(schemas.Event) error {
		if n++; n == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || n != 2 {
		t.Errorf("Events = %v after %d events, want %v after 2", err, n, enough)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := store.NewHistory(d).Events(ctx, time.Time{}, func(schemas.Event) error { return nil }); !errors.Is(
		err, context.Canceled) {
		t.Errorf("Events with a context that has ended = %v, want %v", err, context.Canceled)
	}
}

// A history may take longer than a statement.
func TestHistory_OutlastsTheTimeoutOfAStatement(t *testing.T) {
	t.Parallel()
	const epochs = 300_000 // more than clickhouse-go reads ahead
	patient, o := migrated(t)
	must(t, patient.Exec(t.Context(), fmt.Sprintf("INSERT INTO job_epoch "+
		"(event_id, sequence, at, job_id) "+
		"SELECT toString(number), number + 1, now64(9), 'alpha' FROM numbers(%d)", epochs)))
	must(t, patient.Exec(t.Context(), fmt.Sprintf(
		"INSERT INTO log_position SELECT 'JOB', %d, now64(9)", epochs)))
	d, err := store.Open(t.Context(), o, discard, nil)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })

	statement, cancel := context.WithTimeout(t.Context(), o.Timeout)
	defer cancel()
	n := 0
	err = store.NewHistory(d).Events(t.Context(), time.Time{}, func(schemas.Event) error {
		<-statement.Done() // the timeout of a statement that had begun with the history
		n++
		return nil
	})
	if err != nil || n != epochs {
		t.Errorf("Events = %v after %d events, want %d", err, n, epochs)
	}
}

// A history that gets no rows ends.
func TestHistory_GivesUpAStalledQuery(t *testing.T) {
	t.Parallel()
	_, p, o := openStalling(t, "FROM job_epoch WHERE at")
	d, err := store.Open(t.Context(), o, discard, nil)
	must(t, err)
	t.Cleanup(func() { must(t, d.Close()) })
	if err, left := readAll(t, d), p.left(); err == nil || len(left) > 0 {
		t.Errorf("history: error %v, no query was stalled with %q", err, left)
	}
}

// Each reader holds three connections of a bounded pool.
func TestHistory_ConcurrentReaders(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	s := newTestLog()
	for job := range 50 {
		s.job(fmt.Sprintf("job-%d", job), time.Minute, schemas.EventFinished)
	}
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, s.events...))
	h := store.NewHistory(d)
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			n := 0
			if err := h.Events(t.Context(), time.Time{},
				func(schemas.Event) error { n++; return nil }); err != nil ||
				n != 250 {
				t.Errorf("Events = %v after %d events, want 250", err, n)
			}
		})
	}
	all.Wait()
}
