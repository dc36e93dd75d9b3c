package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// ShardMap returns the recorded map of a cluster's shards and its revision, or nil and 0 if none
// was recorded.
func (b *Bus) ShardMap(ctx context.Context) (*schemas.ShardMap, uint64, error) {
	kv, err := b.js.KeyValue(ctx, schemas.BucketIntents)
	if err != nil {
		return nil, 0, fmt.Errorf("open bucket %s: %w", schemas.BucketIntents, unavailable(err))
	}
	entry, err := kv.Get(ctx, schemas.KeyShardMap)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read the shard map: %w", unavailable(err))
	}
	m := new(schemas.ShardMap)
	if err := json.Unmarshal(entry.Value(), m); err != nil {
		return nil, 0, fmt.Errorf("read the shard map: %w", err)
	}
	return m, entry.Revision(), nil
}

// SetShardMap records a map if the key still has the given revision (0: there is none).
// Otherwise the error matches schemas.ErrConflict.
func (b *Bus) SetShardMap(ctx context.Context, m *schemas.ShardMap, revision uint64) error {
	kv, err := b.js.KeyValue(ctx, schemas.BucketIntents)
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", schemas.BucketIntents, unavailable(err))
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = kv.Update(ctx, schemas.KeyShardMap, data, revision)
	if isRevisionConflict(err) {
		message := "another process has recorded a shard map"
		return &schemas.Error{Code: schemas.CodeConflict, Message: message}
	}
	if err != nil {
		return fmt.Errorf("record the shard map: %w", unavailable(err))
	}
	return nil
}
