package bus_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

func bytesOf(data []byte) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	}
}

// snapshotAt describes the state after the last event of the stream of samples.
func snapshotAt(t *testing.T, b *bus.Bus) bus.Snapshot {
	t.Helper()
	place, err := b.StreamInfo(within(t), schemas.StreamNode)
	must(t, err)
	records, err := b.Last(within(t), schemas.StreamNode, sample(1).Subject())
	if err != nil || len(records) != 1 {
		t.Fatalf("found %d records, want 1 (%v)", len(records), err)
	}
	return bus.Snapshot{
		Kind: "test", Version: 1, Stream: schemas.StreamNode, StreamCreatedAt: place.CreatedAt,
		Sequence: place.Last, StoredAt: records[0].StoredAt, WrittenAt: time.Now().UTC(),
	}
}

func save(t *testing.T, b *bus.Bus, s bus.Snapshot, data []byte) {
	t.Helper()
	must(t, b.SaveSnapshot(within(t), s, bytesOf(data)))
}

func load(t *testing.T, b *bus.Bus, s bus.Snapshot) (data []byte, err error) {
	t.Helper()
	err = b.LoadSnapshot(within(t), s, func(r io.Reader) (err error) {
		data, err = io.ReadAll(r)
		return err
	})
	return data, err
}

func snapshots(t *testing.T, b *bus.Bus) []bus.Snapshot {
	t.Helper()
	all, err := b.Snapshots(within(t), "test", 1)
	must(t, err)
	return all
}

func TestSnapshots_AreTheLastTwo(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	if all := snapshots(t, b); len(all) != 0 {
		t.Fatalf("got %d snapshots in an empty bucket, want 0", len(all))
	}
	large := bytes.Repeat([]byte("0123456789"), 100_000)
	for n, data := range [][]byte{[]byte("first"), []byte("second"), large} {
		publish(t, b, uint64(n+1), uint64(n+2))
		save(t, b, snapshotAt(t, b), data)
	}
	other := snapshotAt(t, b)
	other.Version = 2
	save(t, b, other, []byte("of another version"))
	all := snapshots(t, b)
	if len(all) != 2 || all[0].Sequence != 3 || all[1].Sequence != 2 || all[0].Bytes != uint64(len(large)) {
		t.Fatalf("got snapshots %+v, want the snapshots of events 3 and 2", all)
	}
	if data, err := load(t, b, all[0]); err != nil || !bytes.Equal(data, large) {
		t.Errorf("got %d bytes, error %v; want %d", len(data), err, len(large))
	}
	stream, err := js.Stream(within(t), "OBJ_"+schemas.BucketSnapshots)
	must(t, err)
	chunks := uint64(len(large)/(128<<10) + 1)
	if n := stream.CachedInfo().State.Msgs; n != chunks+5 { // three headers, two small states
		t.Errorf("got %d messages, want those of three snapshots", n)
	}
}

func TestSaveSnapshot_OfAnEncoderThatFails(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	publish(t, b, 1, 2)
	failure := errors.New("of the test")
	err := b.SaveSnapshot(within(t), snapshotAt(t, b), func(w io.Writer) error {
		_, err := w.Write(make([]byte, 1<<20))
		return errors.Join(err, failure)
	})
	if !errors.Is(err, failure) || len(snapshots(t, b)) != 0 {
		t.Errorf("SaveSnapshot = %v with %d snapshots, want the failure and none", err, len(snapshots(t, b)))
	}
}

// A snapshot with a missing chunk or changed bytes, or one that makes its decoder panic,
// returns an error without waiting.
func TestLoadSnapshot_Damaged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(*testing.T, jetstream.JetStream)
		decode func(io.Reader) error
	}{
		{"a missing chunk", func(t *testing.T, js jetstream.JetStream) {
			damageObject(t, js, func(s jetstream.Stream, chunks []*jetstream.RawStreamMsg) error {
				return s.DeleteMsg(within(t), chunks[1].Sequence)
			})
		}, nil},
		{"a changed chunk", func(t *testing.T, js jetstream.JetStream) {
			damageObject(t, js, func(s jetstream.Stream, chunks []*jetstream.RawStreamMsg) error {
				last := chunks[len(chunks)-1]
				_, err := js.Publish(within(t), last.Subject, bytes.ToUpper(last.Data))
				return errors.Join(err, s.DeleteMsg(within(t), last.Sequence))
			})
		}, nil},
		{"a decoder that panics", nil, func(io.Reader) error { panic("of the test") }},
		{"a decoder that fails", nil, func(io.Reader) error { return errors.New("of the test") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := bustest.NewServer(t)
			b := server.Connect(t)
			publish(t, b, 1, 2)
			save(t, b, snapshotAt(t, b), bytes.Repeat([]byte("abc"), 200_000))
			if c.damage != nil {
				c.damage(t, outside(t, server.URL()))
			}
			decode := func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }
			if c.decode != nil {
				decode = c.decode
			}
			err := b.LoadSnapshot(within(t), snapshots(t, b)[0], decode)
			if !errors.Is(err, bus.ErrSnapshot) {
				t.Errorf("LoadSnapshot = %v, want ErrSnapshot", err)
			}
		})
	}
}

// damageObject changes the chunks of the only object in the bucket.
func damageObject(
	t *testing.T,
	js jetstream.JetStream,
	damage func(jetstream.Stream, []*jetstream.RawStreamMsg) error,
) {
	t.Helper()
	s, err := js.Stream(within(t), "OBJ_"+schemas.BucketSnapshots)
	must(t, err)
	var chunks []*jetstream.RawStreamMsg
	for n := uint64(1); n < s.CachedInfo().State.LastSeq; n++ { // the last is the header
		m, err := s.GetMsg(within(t), n)
		must(t, err)
		chunks = append(chunks, m)
	}
	must(t, damage(s, chunks))
}

// A snapshot does not match a stream that was created again, is shorter, or has different events
// after a restore.
func TestCheckSnapshot_MatchesItsStream(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	publish(t, b, 1, 4)
	s := snapshotAt(t, b)
	place, err := b.StreamInfo(within(t), schemas.StreamNode)
	must(t, err)
	again, short, dropped := place, place, place
	again.CreatedAt = again.CreatedAt.Add(time.Second)
	short.Last--
	dropped.First, dropped.Last = s.Sequence+1, s.Sequence+1
	other := s
	other.StoredAt = other.StoredAt.Add(time.Nanosecond)
	for i, c := range []struct {
		s     bus.Snapshot
		place bus.StreamInfo
		want  error
	}{
		{s, place, nil}, {s, dropped, nil},
		{s, again, bus.ErrSnapshot}, {s, short, bus.ErrSnapshot}, {other, place, bus.ErrSnapshot},
	} {
		if err := b.CheckSnapshot(within(t), c.s, c.place); !errors.Is(err, c.want) {
			t.Error(fmt.Errorf("case %d: CheckSnapshot = %w, want %v", i, err, c.want))
		}
	}
}
