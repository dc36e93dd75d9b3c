package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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

// fillLog publishes samples and epochs, and returns the last sequence of each stream.
func fillLog(t *testing.T, b *bus.Bus) map[string]uint64 {
	t.Helper()
	s := newTestLog()
	last := make(map[string]uint64)
	for n := range uint64(400) {
		s.at = s.at.Add(time.Duration(n%3) * time.Second)
		s.sample(fmt.Sprintf("node-%d", n%2), n)
	}
	s.job("alpha", time.Minute, schemas.EventFinished)
	s.regressors()
	for _, e := range s.events {
		sequence, err := b.Publish(t.Context(), e)
		must(t, err)
		last[stream(e)] = sequence
	}
	return last
}

// rebuild rebuilds the tables of streams, by default all.
func rebuild(t *testing.T, b *bus.Bus, d *store.Database, streams ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o := store.RebuildOptions{Streams: streams, MaxMessages: 100}
	must(t, store.Rebuild(ctx, b, d, slog.New(slog.DiscardHandler), o))
}

// Rebuild corrects wrong columns, missing and duplicate rows and wrong roll-ups, and restores a
// lost database.
func TestRebuild_RestoresTheTablesFromTheLog(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute on a busy machine")
	}
	server := bustest.NewServer(t)
	b, d := server.Connect(t), storetest.New(t)
	last := fillLog(t, b)
	fill(t, b, d, last)
	for _, statement := range []string{
		"ALTER TABLE node_sample UPDATE cpu_ratio = 0.5, load_average = 99 WHERE number % 5 = 0 SETTINGS " +
			"mutations_sync = 1",
		"ALTER TABLE job_epoch UPDATE duration_seconds = 1000 WHERE epoch = 1 SETTINGS mutations_sync = 1",
		"DELETE FROM node_sample WHERE number < 20", "DELETE FROM job_ended WHERE 1", "DELETE FROM node_hour WHERE 1",
		"INSERT INTO job_epoch SELECT * FROM job_epoch SETTINGS insert_deduplicate = 0",
	} {
		must(t, d.Exec(t.Context(), statement))
	}
	rebuild(t, b, d)
	compare(t, b, d)
	clean(t, b, d, "after a rebuild")
	if n := selectNumber(t, d,
		"SELECT countIf(load_average = 99) + (SELECT countIf(duration_seconds > 999) FROM job_epoch) AS n "+
			"FROM node_sample"); n > 0 {
		t.Errorf("%d values are still wrong, want 0", n)
	}
	nc, err := nats.Connect(server.URL())
	must(t, err)
	defer nc.Close()
	must(
		t,
		nc.Publish(schemas.NodeSubject("node-0", schemas.EventSample), []byte("garbage")),
	) // the last message of the log becomes a dead letter
	must(t, nc.Flush())
	lost := storetest.New(t)
	rebuild(t, b, lost)
	compare(t, b, lost)
	finish := run(t, newStore(t, b, lost)) // the store continues after the rebuild
	s := newTestLog()
	s.sample("node-9", 1)
	sequence, err := b.Publish(t.Context(), s.events[0])
	must(t, err)
	awaitSequences(t, lost, map[string]uint64{schemas.StreamNode: sequence})
	finish()
	compare(t, b, lost)
}

// Rows of events that the log has dropped stay, and count once in the roll-ups.
func TestRebuild_KeepsWhatTheLogHasDropped(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, d := server.Connect(t), storetest.New(t)
	last := fillLog(t, b)
	fill(t, b, d, last)
	var before, after []minute
	must(t, d.Query(t.Context(), &before, minutesOf))
	nc, err := nats.Connect(server.URL())
	must(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	must(t, err)
	node, err := js.Stream(t.Context(), schemas.StreamNode)
	must(t, err)
	must(t, node.Purge(t.Context(), jetstream.WithPurgeSequence(150)))
	must(t, d.Exec(t.Context(),
		"ALTER TABLE node_sample UPDATE cpu_ratio = 0.5 WHERE sequence > 200 SETTINGS mutations_sync = 1"))
	rebuild(t, b, d)
	clean(t, b, d, "after a rebuild")
	if n := selectNumber(t, d, "SELECT uniqExact(event_id) AS n FROM node_sample"); n != 400 ||
		n != selectNumber(t, d, "SELECT count() AS n FROM node_sample") {
		t.Errorf("node_sample has %d distinct events, want 400 without duplicates", n)
	}
	must(t, d.Query(t.Context(), &after, minutesOf))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("roll-up (-before +after):\n%s", diff)
	}
	compareRollUps(t, d)
}

// A running store rebuilds the tables itself. If a rebuild is interrupted, the next store completes
// it.
func TestRebuild_IsDoneByAStore(t *testing.T) {
	t.Parallel()
	d, b := storetest.New(t), bustest.New(t)
	last := fillLog(t, b)
	finish := run(t, newStore(t, b, d))
	awaitSequences(t, d, last)
	must(t, d.Exec(t.Context(), "DELETE FROM node_sample WHERE number < 20"))
	must(t, d.Exec(t.Context(), "TRUNCATE TABLE job_started"))
	rebuild(t, b, d, schemas.StreamNode)
	_, got := verify(t, b, d, store.VerifyOptions{}, 0)
	if diff := cmp.Diff(map[string]found{"job_started": {Missing: 1}}, got); diff != "" {
		t.Errorf("differences after the rebuild of NODE (-want +got):\n%s", diff)
	}
	finish()

	dying, die := context.WithCancel(t.Context())
	o := store.RebuildOptions{MaxMessages: 20, Progress: func(doing string, done, _ uint64) {
		if doing == "replay" && done > 0 {
			die()
		}
	}}
	if err := store.Rebuild(dying, b, d, slog.New(slog.DiscardHandler), o); err == nil {
		t.Error("an interrupted rebuild is recorded as complete")
	}
	fill(t, b, d, last)
	clean(t, b, d, "at the end")
	compare(t, b, d)
}

// If the tables hold later sequences than the log, Rebuild keeps them: the log was restored from
// a backup, or created again.
func TestRebuild_RejectsALogOlderThanTheTables(t *testing.T) {
	t.Parallel()
	b, d := bustest.New(t), storetest.New(t)
	last := fillLog(t, b)
	fill(t, b, d, last)
	other := bustest.New(t)
	s := newTestLog()
	s.sample("node-9", 1)
	_, err := other.Publish(t.Context(), s.events[0])
	must(t, err)
	if err := store.Rebuild(t.Context(), other, d, slog.New(slog.DiscardHandler),
		store.RebuildOptions{}); !errors.Is(err, store.ErrOtherLog) {
		t.Errorf("Rebuild = %v, want ErrOtherLog", err)
	}
	compare(t, b, d)
}

// breakParts empties the files of a table's parts on disk, like a merge on a full disk. It stops
// merges of the table: a merge that has already read the parts would replace them by an intact
// part.
func breakParts(t *testing.T, d *store.Database, table string) {
	t.Helper()
	must(t, d.Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL"))
	must(t, d.Exec(t.Context(), "SYSTEM STOP MERGES "+table))
	await(t, "the merges of "+table+" to end", func() bool {
		const merges = "SELECT count() AS n FROM system.merges" +
			" WHERE database = currentDatabase() AND table = ?"
		return selectNumber(t, d, merges, table) == 0
	})
	if emptyParts(t, d, table) == 0 {
		t.Fatalf("%s has no parts", table)
	}
	must(t, d.Exec(t.Context(), "SYSTEM START MERGES "+table))
}

// emptyParts empties the marks and data of a table's parts and returns the number of files. Empty
// marks alone do not suffice: the marks of a part that was read are cached.
func emptyParts(t *testing.T, d *store.Database, table string) (files int) {
	t.Helper()
	for _, path := range partPaths(t, d, table) {
		for _, kind := range []string{"*mrk*", "*.bin"} {
			names, err := filepath.Glob(filepath.Join(path, kind))
			must(t, err)
			for _, name := range names {
				must(t, os.Truncate(name, 0))
				files++
			}
		}
	}
	return files
}

// The store reloads tables that it cannot read, and rebuilds those that lack rows then. A rebuild
// restores a table that nothing has reloaded.
func TestStore_RebuildsUnreadableParts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute on a busy machine")
	}
	if os.Getenv(storetest.ServerVariable) != "" {
		t.Skip("the files of a remote server cannot be damaged")
	}
	d, b := storetest.New(t), bustest.New(t)
	finish := run(t, newStore(t, b, d))
	stop := publishAll(t, b)
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 100, schemas.StreamJob: 50})
	for _, table := range []string{"node_sample", "node_minute", "job_run"} {
		breakParts(t, d, table)
	}
	awaitSequences(t, d, map[string]uint64{schemas.StreamNode: 200, schemas.StreamJob: 100})
	last := stop()
	awaitSequences(t, d, last)
	await(t, "the end of the rebuild", func() bool {
		r, err := store.Verify(t.Context(), b, d, store.VerifyOptions{})
		return err == nil && r.Different == 0
	})
	finish() // which may interrupt a further rebuild
	await(t, "the end of an interrupted rebuild", func() bool {
		fill(t, b, d, last)
		r, err := store.Verify(t.Context(), b, d, store.VerifyOptions{})
		return err == nil && r.Different == 0
	})
	want := []string{"job_run", "node_minute", "node_sample"}
	if diff := cmp.Diff(want, unreadableTables(t, d)); diff != "" {
		t.Errorf("tables with unreadable parts (-want +got):\n%s", diff)
	}

	breakParts(t, d, "job_epoch")
	_, err := store.Verify(t.Context(), b, d, store.VerifyOptions{})
	if err == nil || !strings.Contains(err.Error(), "run courier store rebuild") {
		t.Errorf("Verify with an unreadable part = %v, want an error that names the remedy", err)
	}
	rebuild(t, b, d, schemas.StreamJob)
	clean(t, b, d, "after a rebuild")
	compare(t, b, d)
}

// unreadableTables returns the tables with parts that were set aside as unreadable.
func unreadableTables(t *testing.T, d *store.Database) []string {
	t.Helper()
	return values[string](t, d, "SELECT DISTINCT table FROM system.detached_parts"+
		" WHERE database = currentDatabase() AND startsWith(reason, 'broken') ORDER BY table")
}

// partPaths returns the directories of a table's active parts.
func partPaths(t *testing.T, d *store.Database, table string) []string {
	t.Helper()
	return values[string](t, d, "SELECT path FROM system.parts"+
		" WHERE database = currentDatabase() AND table = ? AND active", table)
}
