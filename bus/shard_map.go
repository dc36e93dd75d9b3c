package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// ShardMaps returns the recorded maps of clusters and their revision, or 0 if none was recorded.
func (b *Bus) ShardMaps(ctx context.Context) (schemas.ShardMaps, uint64, error) {
	maps := make(schemas.ShardMaps)
	kv, err := b.js.KeyValue(ctx, schemas.BucketIntents)
	if err != nil {
		return nil, 0, fmt.Errorf("open bucket %s: %w", schemas.BucketIntents, unavailable(err))
	}
	entry, err := kv.Get(ctx, schemas.KeyShardMaps)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return maps, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the shard maps: %w", unavailable(err))
	}
	if err := json.Unmarshal(entry.Value(), &maps); err != nil {
		return nil, 0, fmt.Errorf("read the shard maps: %w", err)
	}
	return maps, entry.Revision(), nil
}

// SetShardMaps records maps if the key still has the given revision (0: there is none). Otherwise
// the error matches schemas.ErrConflict.
func (b *Bus) SetShardMaps(ctx context.Context, maps schemas.ShardMaps, revision uint64) error {
	kv, err := b.js.KeyValue(ctx, schemas.BucketIntents)
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", schemas.BucketIntents, unavailable(err))
	}
	data, err := json.Marshal(maps)
	if err != nil {
		return err
	}
	_, err = kv.Update(ctx, schemas.KeyShardMaps, data, revision)
	if isRevisionConflict(err) {
		message := "another process has recorded a shard map"
		return &schemas.Error{Code: schemas.CodeConflict, Message: message}
	}
	if err != nil {
		return fmt.Errorf("record the shard maps: %w", unavailable(err))
	}
	return nil
}
