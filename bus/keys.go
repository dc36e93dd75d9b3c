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
	kv, err := b.js.KeyValue(ctx, bucket)
	if err != nil {
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
