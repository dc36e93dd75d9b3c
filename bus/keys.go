package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// readKey decodes the value of a key into value, and returns its revision. If the key does not
// exist, it returns 0 and leaves value unchanged.
func (b *Bus) readKey(ctx context.Context, bucket, key string, value any) (uint64, error) {
	watched, done := b.permissions.watch(ctx, b.api+"STREAM.INFO.KV_"+bucket)
	kv, err := b.js.KeyValue(watched, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		err = &schemas.Error{Code: schemas.CodeNotFound, Message: "bucket not found"}
	}
	if err = done(err); err != nil {
		return 0, fmt.Errorf("open bucket %s: %w", bucket, unavailable(err))
	}
	entry, err := kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read key %s of %s: %w", key, bucket, unavailable(err))
	}
	if err := json.Unmarshal(entry.Value(), value); err != nil {
		return 0, fmt.Errorf("read key %s of %s: %w", key, bucket, err)
	}
	return entry.Revision(), nil
}

// writeKey stores the value of a key if the key still has the given revision (0: it does not exist),
// and returns the new revision. Otherwise the error matches schemas.ErrConflict.
func (b *Bus) writeKey(ctx context.Context, bucket, key string, value any, revision uint64) (uint64, error) {
	kv, err := b.js.KeyValue(ctx, bucket)
	if err != nil {
		return 0, fmt.Errorf("open bucket %s: %w", bucket, unavailable(err))
	}
	data, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	next, err := kv.Update(ctx, key, data, revision)
	if isRevisionConflict(err) {
		message := fmt.Sprintf("another process has written key %s of %s", key, bucket)
		return 0, &schemas.Error{Code: schemas.CodeConflict, Message: message}
	}
	if err != nil {
		return 0, fmt.Errorf("write key %s of %s: %w", key, bucket, unavailable(err))
	}
	return next, nil
}

// Ticket returns the cluster's last admission and the revision of its key. Before the first
// admission it returns an empty ticket and 0.
func (b *Bus) Ticket(ctx context.Context) (schemas.Ticket, uint64, error) {
	var t schemas.Ticket
	revision, err := b.readKey(ctx, schemas.BucketAdmission, schemas.AdmissionPool, &t)
	return t, revision, err
}

// TakeTicket stores the cluster's last admission if the key still has the given revision
// (0: it does not exist). Otherwise the error matches schemas.ErrConflict.
func (b *Bus) TakeTicket(ctx context.Context, t schemas.Ticket, revision uint64) error {
	_, err := b.writeKey(ctx, schemas.BucketAdmission, schemas.AdmissionPool, t, revision)
	return err
}

// ShardMaps returns the recorded maps of clusters and their revision, or 0 if none was recorded.
func (b *Bus) ShardMaps(ctx context.Context) (schemas.ShardMaps, uint64, error) {
	maps := make(schemas.ShardMaps)
	revision, err := b.readKey(ctx, schemas.BucketIntents, schemas.KeyShardMaps, &maps)
	return maps, revision, err
}

// SetShardMaps records maps if the key still has the given revision (0: there is none). Otherwise
// the error matches schemas.ErrConflict.
func (b *Bus) SetShardMaps(ctx context.Context, maps schemas.ShardMaps, revision uint64) error {
	_, err := b.writeKey(ctx, schemas.BucketIntents, schemas.KeyShardMaps, maps, revision)
	return err
}

// Champion returns the champion of a target and the revision of its key. If there is none, the
// error matches schemas.ErrNotFound.
func (b *Bus) Champion(ctx context.Context, target string) (schemas.Champion, uint64, error) {
	var c schemas.Champion
	revision, err := b.readKey(ctx, schemas.BucketChampions, target, &c)
	if err == nil && revision == 0 {
		message := "no regressor for " + target + " yet"
		return c, 0, &schemas.Error{Code: schemas.CodeNotFound, Message: message}
	}
	return c, revision, err
}

// SetChampion stores the champion of a target if its key still has the given revision (0: it
// does not exist), and returns the new revision. Otherwise the error matches
// schemas.ErrConflict.
func (b *Bus) SetChampion(ctx context.Context, c schemas.Champion, revision uint64) (uint64, error) {
	return b.writeKey(ctx, schemas.BucketChampions, c.Target, c, revision)
}

// WatchChampions calls handle with each champion and its revision, and again at every change.
// It returns nil when ctx ends.
func (b *Bus) WatchChampions(ctx context.Context, handle func(c schemas.Champion, revision uint64)) error {
	for {
		err := b.watchChampions(ctx, handle)
		if ctx.Err() != nil {
			return nil
		}
		b.log.Debug("watch champions again", "error", err)
		if Sleep(ctx, retryDelay) != nil {
			return nil
		}
	}
}

func (b *Bus) watchChampions(ctx context.Context, handle func(c schemas.Champion, revision uint64)) error {
	kv, err := b.js.KeyValue(ctx, schemas.BucketChampions)
	if err != nil {
		return err
	}
	w, err := kv.WatchAll(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }() // the connection may be closed already
	for {
		select {
		case <-ctx.Done():
			return nil
		case entry, ok := <-w.Updates():
			if !ok {
				return errors.New("the watch ended")
			}
			if entry == nil || entry.Operation() != jetstream.KeyValuePut {
				continue
			}
			var c schemas.Champion
			if err := json.Unmarshal(entry.Value(), &c); err != nil {
				b.log.Error("champion cannot be decoded", "key", entry.Key(), "error", err)
				continue
			}
			handle(c, entry.Revision())
		}
	}
}
