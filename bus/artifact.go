package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// maxArtifact bounds what is read from the object store, in bytes.
const maxArtifact = 256 << 20

// PutArtifact stores bytes for ever under their sha256, which it returns in hex.
func (b *Bus) PutArtifact(ctx context.Context, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	store, err := b.js.ObjectStore(ctx, schemas.BucketRegressors)
	if err != nil {
		return "", fmt.Errorf("open object store %s: %w", schemas.BucketRegressors, unavailable(err))
	}
	if _, err := store.GetInfo(ctx, digest); err == nil {
		return digest, nil
	}
	if _, err := store.PutBytes(ctx, digest, data); err != nil {
		return "", fmt.Errorf("store artifact %.12s: %w", digest, unavailable(err))
	}
	return digest, nil
}

// Artifact returns the bytes whose sha256 is digest; other bytes are an error.
func (b *Bus) Artifact(ctx context.Context, digest string) ([]byte, error) {
	store, err := b.js.ObjectStore(ctx, schemas.BucketRegressors)
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", schemas.BucketRegressors, unavailable(err))
	}
	info, err := store.GetInfo(ctx, digest)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, &schemas.Error{Code: schemas.CodeNotFound, Message: "no artifact " + digest}
	}
	if err != nil {
		return nil, fmt.Errorf("read artifact %.12s: %w", digest, unavailable(err))
	}
	if info.Size > maxArtifact {
		return nil, fmt.Errorf("read artifact %.12s: %d bytes are more than %d", digest, info.Size, maxArtifact)
	}
	data, err := store.GetBytes(ctx, digest)
	if errors.Is(err, jetstream.ErrObjectNotFound) { // it asks for the info again, perhaps another server
		return nil, &schemas.Error{Code: schemas.CodeNotFound, Message: "no artifact " + digest}
	}
	if err != nil {
		return nil, fmt.Errorf("read artifact %.12s: %w", digest, unavailable(err))
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("read artifact %.12s: its bytes have another sha256", digest)
	}
	return data, nil
}

// DropArtifact deletes the bytes whose sha256 is digest; that there are none is
// no error.
func (b *Bus) DropArtifact(ctx context.Context, digest string) error {
	store, err := b.js.ObjectStore(ctx, schemas.BucketRegressors)
	if err != nil {
		return fmt.Errorf("open object store %s: %w", schemas.BucketRegressors, unavailable(err))
	}
	if err := store.Delete(ctx, digest); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete artifact %.12s: %w", digest, unavailable(err))
	}
	return nil
}

// Champion returns the regressor in use for a target and the revision of its
// key; schemas.ErrNotFound if there is none.
func (b *Bus) Champion(ctx context.Context, target string) (schemas.Champion, uint64, error) {
	var c schemas.Champion
	kv, err := b.js.KeyValue(ctx, schemas.BucketChampions)
	if err != nil {
		return c, 0, fmt.Errorf("open bucket %s: %w", schemas.BucketChampions, unavailable(err))
	}
	entry, err := kv.Get(ctx, target)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return c, 0, &schemas.Error{Code: schemas.CodeNotFound, Message: "no regressor for " + target + " yet"}
	}
	if err != nil {
		return c, 0, fmt.Errorf("read champion %s: %w", target, unavailable(err))
	}
	if err := json.Unmarshal(entry.Value(), &c); err != nil {
		return c, 0, fmt.Errorf("read champion %s: %w", target, err)
	}
	return c, entry.Revision(), nil
}

// SetChampion puts a regressor in use if the key still has the given revision
// (0: it does not exist); schemas.ErrConflict otherwise.
func (b *Bus) SetChampion(ctx context.Context, c schemas.Champion, revision uint64) (uint64, error) {
	kv, err := b.js.KeyValue(ctx, schemas.BucketChampions)
	if err != nil {
		return 0, fmt.Errorf("open bucket %s: %w", schemas.BucketChampions, unavailable(err))
	}
	data, err := json.Marshal(c)
	if err != nil {
		return 0, err
	}
	next, err := kv.Update(ctx, c.Target, data, revision)
	if taken(err) {
		return 0, &schemas.Error{Code: schemas.CodeConflict, Message: "the champion of " + c.Target + " was changed by another"}
	}
	if err != nil {
		return 0, fmt.Errorf("set champion %s: %w", c.Target, unavailable(err))
	}
	return next, nil
}

// WatchChampions calls handle with every champion there is and every change,
// until ctx ends; then it returns nil.
func (b *Bus) WatchChampions(ctx context.Context, handle func(schemas.Champion, uint64)) error {
	for {
		err := b.watchChampions(ctx, handle)
		if ctx.Err() != nil {
			return nil
		}
		b.log.Debug("watch champions again", "error", err)
		if wait(ctx, retryDelay) != nil {
			return nil
		}
	}
}

func (b *Bus) watchChampions(ctx context.Context, handle func(schemas.Champion, uint64)) error {
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
				b.log.Error("champion cannot be read", "key", entry.Key(), "error", err)
				continue
			}
			handle(c, entry.Revision())
		}
	}
}
