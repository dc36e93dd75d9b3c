package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// prepareBuckets creates the buckets that are not there, and lets those be kept by
// more servers that are kept by too few. Others are left as they are, so that who may
// not create any is no worse for it.
func (b *Bus) prepareBuckets(ctx context.Context) error {
	for _, bucket := range []string{schemas.BucketAdmission, schemas.BucketChampions, schemas.BucketIntents, schemas.BucketLeases} {
		err := b.prepareBucket(ctx, "KV_"+bucket, func(ctx context.Context, there bool) error {
			write := b.js.CreateKeyValue
			if there {
				write = b.js.UpdateKeyValue
			}
			_, err := write(ctx, jetstream.KeyValueConfig{Bucket: bucket, History: 5, Storage: jetstream.FileStorage, Replicas: b.least})
			return err
		})
		if err != nil {
			return fmt.Errorf("create bucket %s: %w", bucket, unavailable(err))
		}
	}
	for _, o := range []jetstream.ObjectStoreConfig{
		{Bucket: schemas.BucketRegressors},
		{Bucket: schemas.BucketSnapshots, TTL: schemas.SnapshotAge},
	} {
		o.Storage, o.Replicas = jetstream.FileStorage, b.least
		if err := b.prepareObjects(ctx, o); err != nil {
			return fmt.Errorf("create object store %s: %w", o.Bucket, unavailable(err))
		}
	}
	return nil
}

// prepareObjects creates an object store, or lets more servers keep it.
func (b *Bus) prepareObjects(ctx context.Context, o jetstream.ObjectStoreConfig) error {
	return b.prepareBucket(ctx, "OBJ_"+o.Bucket, func(ctx context.Context, there bool) error {
		write := b.js.CreateObjectStore
		if there {
			write = b.js.UpdateObjectStore
		}
		_, err := write(ctx, o)
		return err
	})
}

// createPatience is how long the answer to the creation of a stream is waited for.
// Of two services that create it at once in a cluster of NATS, one gets none (2.15:
// its update meets a stream that has no leader yet), and finds it there afterwards.
const createPatience = time.Second

// prepareBucket creates or changes the stream behind a bucket if that is needed.
func (b *Bus) prepareBucket(ctx context.Context, stream string, create func(ctx context.Context, there bool) error) error {
	for {
		s, err := b.js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().Config.Replicas >= b.least {
			return nil
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		there, change := err == nil, "CREATE"
		if there {
			change = "UPDATE"
		}
		trying, cancel := context.WithTimeout(ctx, createPatience)
		allowed, done := b.permitted(trying, "$JS.API.STREAM."+change+"."+stream)
		err = done(create(allowed, there))
		again := errors.Is(err, jetstream.ErrBucketExists) || trying.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !again {
			return err
		}
	}
}
