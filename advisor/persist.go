package advisor

import (
	"context"
	"errors"
	"io"
	"time"

	"courier/advisor/cluster"
	"courier/bus"
	"courier/schemas"
)

const (
	snapshotKind = "advisor" // name of these snapshots in the bucket

	// idleSnapshotInterval is the maximum age of the newest snapshot if no events arrive. It is
	// well below schemas.SnapshotAge, after which snapshots are removed.
	idleSnapshotInterval = 24 * time.Hour

	snapshotTimeout     = time.Minute     // for writing a snapshot
	lastSnapshotTimeout = 5 * time.Second // for writing the last snapshot

	restoreRetry = 250 * time.Millisecond // while NATS is unavailable
)

// restore loads the newest usable snapshot. Without one the whole event log is replayed. It waits
// while NATS is unavailable, and returns an error only if ctx ends.
func (a *Advisor) restore(ctx context.Context) error {
	for warned := false; ; {
		err := a.tryRestore(ctx)
		if err == nil || ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, schemas.ErrUnavailable) {
			a.log.Warn("snapshots not readable, replaying the whole event log", "error", err)
			return nil
		}
		if !warned {
			a.log.Warn("waiting for NATS to load a snapshot", "error", err)
			warned = true
		}
		_ = bus.Sleep(ctx, restoreRetry) // the next attempt ends with ctx
	}
}

func (a *Advisor) tryRestore(ctx context.Context) error {
	stream, err := a.logInfo(ctx)
	if err != nil {
		return err
	}
	a.newestSnapshot = snapshotRecord{at: time.Now(), stream: stream.CreatedAt}
	a.replayTo.Store(stream.Last)
	all, err := a.bus.Snapshots(ctx, snapshotKind, cluster.SnapshotVersion)
	if err != nil {
		return err
	}
	for _, s := range all {
		c, err := a.stateOf(ctx, s, stream)
		if errors.Is(err, schemas.ErrUnavailable) {
			return err
		}
		if err != nil {
			a.metrics.snapshots.WithLabelValues("ignored").Inc()
			a.log.Warn("snapshot ignored", "sequence", s.Sequence, "error", err)
			continue
		}
		a.adopt(c, s, stream)
		return nil
	}
	return nil
}

// stateOf loads the state of a snapshot if it belongs to the current stream.
func (a *Advisor) stateOf(
	ctx context.Context, s bus.Snapshot, stream bus.StreamInfo,
) (c *cluster.Cluster, err error) {
	if err := a.bus.CheckSnapshot(ctx, s, stream); err != nil {
		return nil, err
	}
	err = a.bus.LoadSnapshot(ctx, s, func(r io.Reader) (err error) {
		c, err = cluster.Decode(r)
		return err
	})
	return c, err
}

// adopt continues from a snapshot.
func (a *Advisor) adopt(c *cluster.Cluster, s bus.Snapshot, stream bus.StreamInfo) {
	a.mu.Lock()
	a.cluster, a.applied, a.appliedAt = c, s.Sequence, s.StoredAt
	a.mu.Unlock()
	a.noteSaved(s)
	a.metrics.snapshots.WithLabelValues("loaded").Inc()
	a.log.Info("snapshot loaded", "sequence", s.Sequence, "last", stream.Last, "bytes", s.Bytes)
	if s.Sequence+1 < stream.First {
		a.log.Warn("events between the snapshot and the event log are lost",
			"after", s.Sequence, "before", stream.First)
	}
}

func (a *Advisor) noteSaved(s bus.Snapshot) {
	a.newestSnapshot.sequence, a.newestSnapshot.at = s.Sequence, time.Now()
	a.metrics.savedAt.Set(float64(s.WrittenAt.Unix()))
	if s.Bytes > 0 {
		a.metrics.savedBytes.Set(float64(s.Bytes))
	}
}

// keepSnapshots stores the state regularly, also during the replay.
func (a *Advisor) keepSnapshots(ctx context.Context) error {
	return every(ctx, a.o.Check, func() {
		if a.snapshotDue(time.Now()) && a.bus.Connected() {
			writing, cancel := context.WithTimeout(ctx, snapshotTimeout)
			defer cancel()
			a.snapshot(writing)
		}
	})
}

// snapshotDue reports whether enough events or enough time have passed for the next snapshot.
func (a *Advisor) snapshotDue(now time.Time) bool {
	a.mu.RLock()
	events := a.applied - min(a.applied, a.newestSnapshot.sequence)
	a.mu.RUnlock()
	since := now.Sub(a.newestSnapshot.at)
	switch {
	case events >= a.o.SnapshotEvents:
		return since >= a.o.SnapshotInterval/10
	case events > 0:
		return since >= a.o.SnapshotInterval
	}
	return since >= idleSnapshotInterval
}

// lastSnapshot stores the state after all parts have ended.
func (a *Advisor) lastSnapshot(ctx context.Context) {
	a.mu.RLock()
	applied := a.applied
	a.mu.RUnlock()
	if applied == a.newestSnapshot.sequence || !a.bus.Connected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSnapshotTimeout)
	defer cancel()
	a.snapshot(ctx)
}

// snapshot stores the state.
func (a *Advisor) snapshot(ctx context.Context) {
	if err := a.trySnapshot(ctx); err != nil {
		a.newestSnapshot.at = time.Now() // the next attempt is made when a snapshot would be due
		a.metrics.snapshots.WithLabelValues("failed").Inc()
		a.log.Warn("snapshot not stored", "error", err)
	}
}

func (a *Advisor) trySnapshot(ctx context.Context) error {
	s, frozen := a.freeze()
	if frozen == nil {
		return nil
	}
	// The stream is examined after the state was copied. In the other order the stream could grow in
	// between, and the state would seem to belong to another stream.
	stream, err := a.logInfo(ctx)
	if err != nil {
		return err
	}
	if !stream.CreatedAt.Equal(s.StreamCreatedAt) || s.Sequence > stream.Last {
		return errors.New("the JOB stream was deleted and recreated; restart the advisor")
	}
	if err := a.bus.SaveSnapshot(ctx, s, frozen.Encode); err != nil {
		return err
	}
	a.metrics.snapshots.WithLabelValues("written").Inc()
	a.noteSaved(s)
	return nil
}

// freeze returns the current state and its header. It returns nil while the state has a warning
// that is not in the event log.
func (a *Advisor) freeze() (bus.Snapshot, *cluster.Frozen) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.outbox.unsentRisks() > 0 {
		return bus.Snapshot{}, nil
	}
	return bus.Snapshot{
		Kind:            snapshotKind,
		Version:         cluster.SnapshotVersion,
		Stream:          schemas.StreamJob,
		StreamCreatedAt: a.newestSnapshot.stream,
		Sequence:        a.applied,
		StoredAt:        a.appliedAt,
		WrittenAt:       a.now(),
	}, a.cluster.Freeze()
}
