package bus

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Snapshot describes a stored state: what a service knew after an event of a stream.
type Snapshot struct {
	Kind            string    `json:"kind"`              // what the state is of, [a-z]+
	Version         int       `json:"version"`           // of its encoding
	Stream          string    `json:"stream"`            // that it was rebuilt from
	StreamCreatedAt time.Time `json:"stream_created_at"` // tells a stream from one made again
	Sequence        uint64    `json:"sequence"`          // of the last event that it holds
	StoredAt        time.Time `json:"stored_at"`         // when the stream stored that event
	WrittenAt       time.Time `json:"written_at"`

	Name  string `json:"-"` // in the object store
	Bytes uint64 `json:"-"` // size of the state

	nuid   string
	chunks uint32
}

// ErrSnapshot says that a snapshot cannot be used: it is damaged, or does not belong to
// the stream as it is now.
var ErrSnapshot = errors.New("the snapshot cannot be used")

// snapshotHeader is the key of the metadata of an object that holds a Snapshot as JSON.
const snapshotHeader = "courier-snapshot"

// SaveSnapshot stores the state that encode writes. It is seen by Snapshots when it is
// complete; its digest is stored with it. Any number of processes may do that at once.
func (b *Bus) SaveSnapshot(ctx context.Context, s Snapshot, encode func(io.Writer) error) error {
	objects, err := b.snapshots(ctx)
	if err != nil {
		return err
	}
	header, err := json.Marshal(s)
	if err != nil {
		return err
	}
	meta := jetstream.ObjectMeta{
		Name:     fmt.Sprintf("%s.v%d.%d.%s", s.Kind, s.Version, s.Sequence, rand.Text()),
		Metadata: map[string]string{snapshotHeader: string(header)},
	}
	read, write := io.Pipe()
	encoded := make(chan struct{})
	go func() {
		defer close(encoded)
		buffered := bufio.NewWriterSize(write, snapshotChunk)
		write.CloseWithError(errors.Join(encode(buffered), buffered.Flush()))
	}()
	_, err = objects.Put(ctx, meta, read)
	read.CloseWithError(err) // ends the encoder where Put failed
	<-encoded
	if err != nil {
		return fmt.Errorf("store snapshot %s: %w", meta.Name, unavailable(err))
	}
	return nil
}

// snapshotChunk is how many bytes of a snapshot are sent in one message.
const snapshotChunk = 128 << 10

// Snapshots lists the complete snapshots of a kind and version, the one with the last
// event first. Those whose header cannot be read are left out.
func (b *Bus) Snapshots(ctx context.Context, kind string, version int) ([]Snapshot, error) {
	objects, err := b.snapshots(ctx)
	if err != nil {
		return nil, err
	}
	list, err := listObjects(ctx, objects)
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", unavailable(err))
	}
	var all []Snapshot
	for _, info := range list {
		var s Snapshot
		if err := json.Unmarshal([]byte(info.Metadata[snapshotHeader]), &s); err != nil {
			b.log.Warn("snapshot skipped", "name", info.Name, "error", err)
			continue
		}
		if s.Kind == kind && s.Version == version {
			s.Name, s.nuid, s.chunks, s.Bytes = info.Name, info.NUID, info.Chunks, info.Size
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y Snapshot) int {
		return cmp.Or(cmp.Compare(y.Sequence, x.Sequence), y.WrittenAt.Compare(x.WrittenAt))
	})
	return all, nil
}

// listObjects lists the objects of a bucket; none is no error. A list that got stuck, as
// snapshotListTimeout says, is begun again.
func listObjects(ctx context.Context, objects jetstream.ObjectStore) (
	list []*jetstream.ObjectInfo, err error,
) {
	for range snapshotListTries {
		listing, cancel := context.WithTimeout(ctx, snapshotListTimeout)
		list, err = objects.List(listing)
		cancel()
		if errors.Is(err, jetstream.ErrNoObjectsFound) {
			return nil, nil
		}
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			break
		}
	}
	return list, err
}

// CheckSnapshot returns ErrSnapshot if a snapshot does not belong to its stream as it is
// now: the stream was made again, or was restored to an earlier state.
func (b *Bus) CheckSnapshot(ctx context.Context, s Snapshot, now StreamPlace) error {
	switch {
	case !s.StreamCreatedAt.Equal(now.CreatedAt):
		return fmt.Errorf("%w: stream %s was created again", ErrSnapshot, s.Stream)
	case s.Sequence > now.Last:
		return fmt.Errorf("%w: it is ahead of stream %s, %d of %d", ErrSnapshot, s.Stream,
			s.Sequence, now.Last)
	case s.Sequence < now.First:
		return nil // its last event is dropped already
	}
	msg, err := b.storedFrom(ctx, s.Stream, s.Sequence)
	if err != nil {
		return err
	}
	if msg != nil && msg.Sequence == s.Sequence && !msg.Time.Equal(s.StoredAt) {
		return fmt.Errorf("%w: stream %s has another event at %d", ErrSnapshot, s.Stream, s.Sequence)
	}
	return nil
}

// LoadSnapshot reads a snapshot, checks its digest, and calls decode with the state. What
// cannot be read or decoded is ErrSnapshot.
func (b *Bus) LoadSnapshot(ctx context.Context, s Snapshot, decode func(io.Reader) error) error {
	data, err := b.readSnapshot(ctx, s)
	if err != nil {
		return fmt.Errorf("read snapshot %s: %w", s.Name, err)
	}
	if err := guarded(decode, bytes.NewReader(data)); err != nil {
		return fmt.Errorf("decode snapshot %s: %w: %w", s.Name, ErrSnapshot, err)
	}
	return nil
}

// readSnapshot returns the bytes of a snapshot, whose digest the client checks. They are
// read as a whole, because a decoder may take longer than the server waits for a reader.
func (b *Bus) readSnapshot(ctx context.Context, s Snapshot) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	if err := b.complete(ctx, s); err != nil {
		return nil, err
	}
	objects, err := b.snapshots(ctx)
	if err != nil {
		return nil, err
	}
	// The client waits until the deadline of its context for a part that another advisor has
	// deleted meanwhile; without a deadline, for some seconds.
	object, err := objects.Get(context.WithoutCancel(ctx), s.Name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	defer func() { _ = object.Close() }()
	data, err := io.ReadAll(boundedReader{ctx, object})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, err)
	}
	return data, nil
}

const (
	snapshotTimeout = 30 * time.Second // to read a snapshot
	// snapshotListTimeout bounds a list of snapshots. The client waits until the deadline of
	// its context where an entry is replaced while it lists.
	snapshotListTimeout = 3 * time.Second
	snapshotListTries   = 3
)

// boundedReader reads until its context ends.
type boundedReader struct {
	ctx context.Context
	r   io.Reader
}

func (r boundedReader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// complete checks that the bucket has all parts of a snapshot: a reader would wait for
// one that is missing.
func (b *Bus) complete(ctx context.Context, s Snapshot) error {
	stream, err := b.js.Stream(ctx, snapshotStream)
	if err != nil {
		return fmt.Errorf("open stream %s: %w", snapshotStream, unavailable(err))
	}
	subject := "$O." + schemas.BucketSnapshots + ".C." + s.nuid
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subject))
	if err != nil {
		return fmt.Errorf("look at snapshot %s: %w", s.Name, unavailable(err))
	}
	if n := info.State.Subjects[subject]; n != uint64(s.chunks) {
		return fmt.Errorf("%w: %s has %d parts of %d", ErrSnapshot, s.Name, n, s.chunks)
	}
	return nil
}

// guarded calls decode; a panic over damaged bytes is an error.
func guarded(decode func(io.Reader) error, r io.Reader) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the decoder panicked: %v", p)
		}
	}()
	return decode(r)
}

// DropSnapshot deletes a snapshot and what its deletion would leave behind. One that is
// gone already is no error.
func (b *Bus) DropSnapshot(ctx context.Context, s Snapshot) error {
	objects, err := b.snapshots(ctx)
	if err != nil {
		return err
	}
	if err := objects.Delete(ctx, s.Name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("delete snapshot %s: %w", s.Name, unavailable(err))
	}
	stream, err := b.js.Stream(ctx, snapshotStream)
	if err != nil {
		return fmt.Errorf("open stream %s: %w", snapshotStream, unavailable(err))
	}
	mark := "$O." + schemas.BucketSnapshots + ".M." + base64.URLEncoding.EncodeToString([]byte(s.Name))
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(mark)); err != nil {
		return fmt.Errorf("delete the mark of snapshot %s: %w", s.Name, unavailable(err))
	}
	return nil
}

// snapshotStream is the stream behind the bucket of snapshots.
const snapshotStream = "OBJ_" + schemas.BucketSnapshots

func (b *Bus) snapshots(ctx context.Context) (jetstream.ObjectStore, error) {
	objects, err := b.js.ObjectStore(ctx, schemas.BucketSnapshots)
	if err != nil {
		return nil, fmt.Errorf("open object store %s: %w", schemas.BucketSnapshots, unavailable(err))
	}
	return objects, nil
}
