package trainer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/trainer"
)

func list(t testing.TB, b *bus.Bus, target string) []schemas.RegressorVersion {
	t.Helper()
	var reply schemas.RegressorList
	if err := b.Request(within(t), schemas.SubjectRegressorList,
		&schemas.RegressorListRequest{Target: target}, &reply); err != nil {
		t.Fatal(err)
	}
	return reply.Regressors
}

func TestTrainer_PromotesAndRollsBackOnRequest(t *testing.T) {
	b := bustest.New(t)
	publishStudy(t, b, "a", 0, 1)
	runTrainer(t, b, nil, onRequest)
	first := train(t, b).Promoted[0]
	var promoted schemas.Promoted
	rollback := func() error {
		return b.Request(within(t), schemas.SubjectRegressorRollback, &schemas.RollbackRequest{
			Target: schemas.TargetEpochTime,
			Reason: "jobs are late",
		}, &promoted)
	}
	promote := func(digits string) error {
		return b.Request(within(t), schemas.SubjectRegressorPromote, &schemas.PromoteRequest{
			Target:      schemas.TargetEpochTime,
			ModelDigest: digits,
		}, &promoted)
	}
	if err := rollback(); !errors.Is(err, schemas.ErrNotFound) {
		t.Errorf("rollback of the first regressor: %v, want not_found", err)
	}
	publishStudy(t, b, "b", 1000, 1)
	second := train(t, b).Promoted[0]
	if err := rollback(); err != nil || promoted.ModelDigest != first.ModelDigest ||
		promoted.Reason != "rolled back: jobs are late" ||
		promoted.DecidedBy != schemas.DecidedRequest {
		t.Errorf("rollback promoted %+v, %v, want the first regressor", promoted, err)
	}
	if err := promote(second.ModelDigest[:8]); err != nil ||
		promoted.ModelDigest != second.ModelDigest {
		t.Errorf("promotion = %+v, %v, want the second regressor", promoted, err)
	}
	for digits, want := range map[string]error{
		second.ModelDigest[:8]: schemas.ErrConflict,
		"012345678":            schemas.ErrNotFound,
		"0123":                 schemas.ErrInvalid,
		"not-hex-at-all":       schemas.ErrInvalid,
	} {
		if err := promote(digits); !errors.Is(err, want) {
			t.Errorf("promote %s: %v, want %v", digits, err, want)
		}
	}
	if c, revision, err := b.Champion(within(t), schemas.TargetEpochTime); err != nil ||
		c.ModelDigest != second.ModelDigest || revision != promoted.Revision {
		t.Errorf("Champion = %v, revision %d, %v, want the second regressor", c, revision, err)
	}
}

// Only the files of the last eight champions are kept, and these can be promoted.
func TestTrainer_KeepsTheLastChampions(t *testing.T) {
	b := bustest.New(t)
	runTrainer(t, b, nil, onRequest)
	for n := range 10 {
		publishStudy(t, b, fmt.Sprint("study-", n), float64(1000*n), 1)
		train(t, b)
	}
	kept := 0
	for i, v := range list(t, b, schemas.TargetEpochTime) {
		_, err := b.Artifact(within(t), v.ModelDigest)
		if there := err == nil; there != v.Kept {
			t.Errorf("regressor %d: files exist = %v, want %v like Kept (%v)", i, there, v.Kept, err)
		}
		if v.Kept {
			kept++
		}
	}
	if kept != 8 {
		t.Errorf("%d regressors are kept, want 8", kept)
	}
}

// A trainer crashes after each step in turn. After the next trainer has started, every champion is
// readable and has one event, and no revision of a key belongs to two regressors.
func TestTrainer_RecoversFromACrashAfterEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector; its goroutines meet in shorter tests, too")
	}
	for _, step := range []string{"fitted", "stored", "trained", "promoted", "published"} {
		t.Run(step, func(t *testing.T) {
			b := bustest.New(t)
			f := newFleet(b, "a", "b")
			f.run(t, 60)
			ctx, cancel := context.WithTimeout(t.Context(), maxWait)
			defer cancel()
			dead := false
			o := trainer.DieAfter(onRequest, func(name string) error {
				if dead = dead || name == step; !dead {
					return nil
				}
				cancel()
				return context.Canceled
			})
			if err := trainer.New(b, nil, o, slog.New(slog.DiscardHandler), nil).Run(ctx); err != nil || !dead {
				t.Fatalf("the trainer ended with %v, stopped %v, want a stop after %q", err, dead, step)
			}
			runTrainer(t, b, nil, onRequest)
			reply := train(t, b)
			if len(reply.Promoted) != len(schemas.Targets()) {
				t.Fatalf("reply of the next trainer: %+v, want a champion of every target", reply)
			}
			checkConsistency(t, b)
			if got, want := reply.Promoted[0].Examples, uint64(
				len(collect(t, b).Examples(schemas.TargetEpochTime)),
			); got != want {
				t.Errorf("fitted on %d examples, want all %d", got, want)
			}
		})
	}
}

// checkConsistency compares the keys with the events and the files.
func checkConsistency(t testing.TB, b *bus.Bus) {
	t.Helper()
	promoted := map[string]string{} // target and revision to digest
	last := map[string]uint64{}
	ctx, cancel := context.WithCancel(within(t))
	err := b.Follow(ctx, bus.FollowOptions{
		Stream:   schemas.StreamRegressor,
		CaughtUp: cancel,
	}, func(r bus.Record) error {
		if e, ok := r.Event.(*schemas.Promoted); ok {
			k := fmt.Sprint(e.Target, "/", e.Revision)
			if promoted[k] != "" {
				t.Errorf("two promotion events for %s", k)
			}
			promoted[k], last[e.Target] = e.ModelDigest, e.Revision
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for target, told := range last {
		c, revision, err := b.Champion(within(t), target)
		if err != nil || revision != told ||
			promoted[fmt.Sprint(target, "/", revision)] != c.ModelDigest {
			t.Errorf("%s: champion %.12s, revision %d (%v); the last event has revision %d",
				target, c.ModelDigest, revision, err, told)
		}
		for _, digest := range []string{c.ModelDigest, c.ManifestDigest} {
			if _, err := b.Artifact(within(t), digest); err != nil {
				t.Errorf("%s: %v", target, err)
			}
		}
	}
}

// Of two trainers one works; the other takes over when the first stops.
func TestTrainer_SecondTrainerTakesOver(t *testing.T) {
	server := bustest.NewServer(t)
	b := server.Connect(t)
	publishStudy(t, b, "a", 0, 1)
	stop := startTrainer(t, b, onRequest)
	train(t, b)
	runTrainer(t, server.Connect(t), nil, onRequest)
	stop()
	publishStudy(t, b, "b", 1000, 1)
	if r := train(t, b); len(r.Promoted) != 3 || r.Promoted[0].Examples != 48 {
		t.Errorf("reply of the second trainer: %+v, want 48 examples", r)
	}
	checkConsistency(t, b)
}

// The files of a champion are lost. The next fit equals the champion, stores them again, and promotes
// nothing.
func TestTrainer_RestoresALostFile(t *testing.T) {
	b := bustest.New(t)
	publishStudy(t, b, "a", 0, 1)
	runTrainer(t, b, nil, onRequest)
	first := train(t, b)
	if len(first.Promoted) != 3 {
		t.Fatalf("promoted %+v, want three regressors", first.Promoted)
	}
	before := train(t, b) // a fit of the champion's state and the same runs is the champion again
	for _, p := range before.Promoted {
		for _, digest := range []string{p.ModelDigest, p.ManifestDigest} {
			if err := b.DropArtifact(within(t), digest); err != nil {
				t.Fatal(err)
			}
		}
	}
	after := train(t, b)
	for i, p := range after.Promoted {
		if p.ManifestDigest != before.Promoted[i].ManifestDigest || p.Revision != before.Promoted[i].Revision {
			t.Errorf("%s: revision %d, want the champion's revision %d", p.Target, p.Revision,
				before.Promoted[i].Revision)
		}
	}
	checkConsistency(t, b)
}
