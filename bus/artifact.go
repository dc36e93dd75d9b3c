package bus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// maxArtifactBytes bounds the artifacts that are read into memory.
const maxArtifactBytes = 256 << 20

// PutArtifact stores bytes under their sha256, which it returns in hex. They never expire.
func (b *Bus) PutArtifact(ctx context.Context, data []byte) (string, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	store, err := b.objects(ctx, schemas.BucketRegressors)
	if err != nil {
		return "", err
	}
	if _, err := store.GetInfo(ctx, digest); err == nil {
		return digest, nil
	}
	if _, err := store.PutBytes(ctx, digest, data); err != nil {
		return "", fmt.Errorf("store artifact %.12s: %w", digest, unavailable(err))
	}
	return digest, nil
}

// Artifact returns the bytes with the sha256 digest, which it verifies.
func (b *Bus) Artifact(ctx context.Context, digest string) ([]byte, error) {
	store, err := b.objects(ctx, schemas.BucketRegressors)
	if err != nil {
		return nil, err
	}
	object, err := store.Get(ctx, digest)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, &schemas.Error{Code: schemas.CodeNotFound, Message: "no artifact " + digest}
	}
	if err != nil {
		return nil, fmt.Errorf("read artifact %.12s: %w", digest, unavailable(err))
	}
	defer func() { _ = object.Close() }() // a failed Read has returned the error
	data, err := io.ReadAll(io.LimitReader(object, maxArtifactBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read artifact %.12s: %w", digest, unavailable(err))
	}
	if len(data) > maxArtifactBytes {
		return nil, fmt.Errorf("read artifact %.12s: it has more than %d bytes", digest, maxArtifactBytes)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("read artifact %.12s: its bytes have a different sha256", digest)
	}
	return data, nil
}

func (b *Bus) objects(ctx context.Context, bucket string) (jetstream.ObjectStore, error) {
	objects, err := b.js.ObjectStore(ctx, bucket)
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", bucket, unavailable(err))
	}
	return objects, nil
}

// DropArtifact deletes the bytes with the sha256 digest. A missing artifact is not an error.
func (b *Bus) DropArtifact(ctx context.Context, digest string) error {
	store, err := b.objects(ctx, schemas.BucketRegressors)
	if err != nil {
		return err
	}
	err = store.Delete(ctx, digest)
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete artifact %.12s: %w", digest, unavailable(err))
	}
	return nil
}
