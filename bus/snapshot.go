package bus

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Snapshot describes the stored state of a service after an event of a stream.
type Snapshot struct {
	Kind            string    `json:"kind"`              // name of the state, [a-z]+
	Version         int       `json:"version"`           // of the encoding
	Stream          string    `json:"stream"`            // source of the events
	StreamCreatedAt time.Time `json:"stream_created_at"` // identifies the stream if it is recreated
	Sequence        uint64    `json:"sequence"`          // of the last event in the state
	StoredAt        time.Time `json:"stored_at"`         // when the stream stored that event
	WrittenAt       time.Time `json:"written_at"`

	Name  string `json:"-"` // in the object store
	Bytes uint64 `json:"-"` // size of the state

	nuid   string
	chunks uint32
}

// ErrSnapshot reports a snapshot that is damaged or does not match the current stream.
var ErrSnapshot = errors.New("the snapshot cannot be used")

const snapshotHeader = "courier-snapshot"

// snapshotSlots returns the names of the objects with the snapshots of a kind and version: the last
// snapshot, and the previous one in case the last one is damaged.
func snapshotSlots(kind string, version int) [2]string {
	name := fmt.Sprintf("%s.v%d", kind, version)
	return [...]string{name + ".a", name + ".b"}
}

// SaveSnapshot stores the state that encode writes, with its digest. It replaces a snapshot that does not
// match the stream, otherwise the earlier of two. Snapshots lists it once it is complete. Any number of
// processes may call it at the same time.
func (b *Bus) SaveSnapshot(ctx context.Context, s Snapshot, encode func(io.Writer) error) error {
	objects, err := b.objects(ctx, schemas.BucketSnapshots)
	if err != nil {
		return err
	}
	name, err := b.freeSlot(ctx, s)
	if err != nil {
		return err
	}
	header, err := json.Marshal(s)
	if err != nil {
		return err
	}
	meta := jetstream.ObjectMeta{Name: name, Metadata: map[string]string{snapshotHeader: string(header)}}

	var state bytes.Buffer
	err = encode(&state)
	if err == nil {
		_, err = objects.Put(ctx, meta, &state)
	}
	if err != nil {
		return fmt.Errorf("store snapshot %s: %w", name, unavailable(err))
	}
	return nil
}

// freeSlot returns the name of the object that a snapshot may replace.
func (b *Bus) freeSlot(ctx context.Context, s Snapshot) (string, error) {
	stream, err := b.StreamInfo(ctx, s.Stream)
	if err != nil {
		return "", err
	}
	all, err := b.Snapshots(ctx, s.Kind, s.Version)
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(all, func(o Snapshot) bool { return b.CheckSnapshot(ctx, o, stream) != nil })
	slots := snapshotSlots(s.Kind, s.Version)
	if len(all) > 0 && all[0].Name == slots[0] {
		return slots[1], nil
	}
	return slots[0], nil
}

// Snapshots lists the complete snapshots of a kind and version, the latest event first. It leaves out
// snapshots whose header cannot be decoded.
func (b *Bus) Snapshots(ctx context.Context, kind string, version int) ([]Snapshot, error) {
	objects, err := b.objects(ctx, schemas.BucketSnapshots)
	if err != nil {
		return nil, err
	}
	var all []Snapshot
	for _, name := range snapshotSlots(kind, version) {
		info, err := objects.GetInfo(ctx, name)
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("find snapshot %s: %w", name, unavailable(err))
		}
		s := Snapshot{Name: name, Bytes: info.Size, nuid: info.NUID, chunks: info.Chunks}
		if err := json.Unmarshal([]byte(info.Metadata[snapshotHeader]), &s); err != nil {
			b.log.Warn("snapshot skipped", "name", name, "error", err)
			continue
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(x, y Snapshot) int {
		return cmp.Or(cmp.Compare(y.Sequence, x.Sequence), y.WrittenAt.Compare(x.WrittenAt))
	})
	return all, nil
}

// CheckSnapshot returns ErrSnapshot if a snapshot does not match the current stream: the stream
// was created again, or restored to an earlier state.
func (b *Bus) CheckSnapshot(ctx context.Context, s Snapshot, current StreamInfo) error {
	switch {
	case !s.StreamCreatedAt.Equal(current.CreatedAt):
		return fmt.Errorf("%w: stream %s was created again", ErrSnapshot, s.Stream)
	case s.Sequence > current.Last:
		return fmt.Errorf("%w: it is ahead of stream %s, %d of %d",
			ErrSnapshot, s.Stream, s.Sequence, current.Last)
	case s.Sequence < current.First:
		return nil // the stream has dropped the event
	}
	msg, err := b.nextStored(ctx, s.Stream, s.Sequence)
	if err != nil {
		return err
	}
	if msg != nil && msg.Sequence == s.Sequence && !msg.Time.Equal(s.StoredAt) {
		return fmt.Errorf("%w: stream %s has a different event at %d", ErrSnapshot, s.Stream, s.Sequence)
	}
	return nil
}

// LoadSnapshot reads a snapshot, checks its digest, and calls decode with the state. The error
// matches ErrSnapshot if the snapshot cannot be read or decoded.
func (b *Bus) LoadSnapshot(ctx context.Context, s Snapshot, decode func(io.Reader) error) error {
	data, err := b.readSnapshot(ctx, s)
	if err != nil {
		return fmt.Errorf("read snapshot %s: %w", s.Name, err)
	}
	if err := decodeState(decode, bytes.NewReader(data)); err != nil {
		return fmt.Errorf("decode snapshot %s: %w: %w", s.Name, ErrSnapshot, err)
	}
	return nil
}

// readSnapshot returns the bytes of a snapshot; the client checks their digest. It reads them
// before they are decoded, because the server does not wait for a slow decoder.
func (b *Bus) readSnapshot(ctx context.Context, s Snapshot) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	if err := b.checkComplete(ctx, s); err != nil {
		return nil, err
	}
	objects, err := b.objects(ctx, schemas.BucketSnapshots)
	if err != nil {
		return nil, err
	}
	// If another advisor deletes a chunk now, the client waits for it until the deadline of
	// its context; without a deadline it gives up after some seconds.
	object, err := objects.Get(context.WithoutCancel(ctx), s.Name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	closeObject := func() { _ = object.Close() } // ends a read
	defer closeObject()
	defer context.AfterFunc(ctx, closeObject)()
	data, err := io.ReadAll(object)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return data, nil
}

const snapshotTimeout = 30 * time.Second // to read a snapshot

// checkComplete checks that the bucket has all chunks: a reader would wait for a missing one.
func (b *Bus) checkComplete(ctx context.Context, s Snapshot) error {
	stream, err := b.stream(ctx, snapshotStream)
	if err != nil {
		return err
	}
	subject := "$O." + schemas.BucketSnapshots + ".C." + s.nuid
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return fmt.Errorf("inspect snapshot %s: %w", s.Name, unavailable(err))
	}
	if n := info.State.Subjects[subject]; n != uint64(s.chunks) {
		return fmt.Errorf("%w: %s has %d of %d chunks", ErrSnapshot, s.Name, n, s.chunks)
	}
	return nil
}

func decodeState(decode func(io.Reader) error, r io.Reader) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the decoder panicked: %v", p)
		}
	}()
	return decode(r)
}

const snapshotStream = "OBJ_" + schemas.BucketSnapshots

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
