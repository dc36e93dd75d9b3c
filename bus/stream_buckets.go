package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// prepareBuckets creates missing buckets and raises the number of replicas where it is too
// low. It does not touch other buckets, so a user without the right to create buckets can
// call it once they exist.
func (b *Bus) prepareBuckets(ctx context.Context) error {
	for _, bucket := range []string{
		schemas.BucketAdmission,
		schemas.BucketChampions,
		schemas.BucketIntents,
		schemas.BucketLeases,
	} {
		if err := b.prepareKeyValue(ctx, bucket); err != nil {
			return fmt.Errorf("create bucket %s: %w", bucket, unavailable(err))
		}
	}
	for _, o := range []jetstream.ObjectStoreConfig{
		{Bucket: schemas.BucketRegressors},
		{Bucket: schemas.BucketSnapshots, TTL: schemas.SnapshotAge},
	} {
		o.Storage, o.Replicas = jetstream.FileStorage, b.minReplicas
		if err := b.prepareObjects(ctx, o); err != nil {
			return fmt.Errorf("create object store %s: %w", o.Bucket, unavailable(err))
		}
	}
	return nil
}

// prepareKeyValue creates a key-value bucket, or raises its number of replicas.
func (b *Bus) prepareKeyValue(ctx context.Context, bucket string) error {
	config := jetstream.KeyValueConfig{
		Bucket:   bucket,
		History:  5,
		Storage:  jetstream.FileStorage,
		Replicas: b.minReplicas,
	}
	return b.prepareBucket(ctx, "KV_"+bucket, func(ctx context.Context, exists bool) error {
		write := b.js.CreateKeyValue
		if exists {
			write = b.js.UpdateKeyValue
		}
		_, err := write(ctx, config)
		return err
	})
}

// prepareObjects creates an object store, or raises its number of replicas.
func (b *Bus) prepareObjects(ctx context.Context, o jetstream.ObjectStoreConfig) error {
	return b.prepareBucket(ctx, "OBJ_"+o.Bucket, func(ctx context.Context, exists bool) error {
		write := b.js.CreateObjectStore
		if exists {
			write = b.js.UpdateObjectStore
		}
		_, err := write(ctx, o)
		return err
	})
}

// createTimeout bounds one attempt to create a bucket. If two services create it at the same
// time in a NATS cluster, one of them gets no answer (2.15: its update reaches a stream
// without a leader). At the next attempt the bucket exists.
const createTimeout = time.Second

// prepareBucket calls write if the stream of a bucket is missing or has too few replicas.
func (b *Bus) prepareBucket(
	ctx context.Context, stream string, write func(ctx context.Context, exists bool) error,
) error {
	for {
		s, err := b.js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().Config.Replicas >= b.minReplicas {
			return nil
		}
		if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return err
		}
		exists, verb := err == nil, "CREATE"
		if exists {
			verb = "UPDATE"
		}

		attempt, cancel := context.WithTimeout(ctx, createTimeout)
		watched, done := b.watchPermission(attempt, "$JS.API.STREAM."+verb+"."+stream)
		err = done(write(watched, exists))
		timedOut := attempt.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !timedOut && !errors.Is(err, jetstream.ErrBucketExists) {
			return err
		}
	}
}
