package bus

import (
	"context"
	"encoding/json"
	"errors"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

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
		if sleep(ctx, retryDelay) != nil {
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
