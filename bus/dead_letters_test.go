package bus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// newDead returns a dead letter with the data, as a reader that cannot decode it publishes one.
func newDead(stream string, origin uint64, subject string, data []byte) *schemas.Dead {
	d := &schemas.Dead{
		Stream:         stream,
		OriginSequence: origin,
		OriginSubject:  subject,
		Consumer:       "store-" + stream,
		Reason:         "invalid: no event has this subject",
		Data:           data,
		OriginBytes:    len(data),
	}
	d.EventID, d.At = fmt.Sprintf("%s/%d/dead", stream, origin), time.Now().UTC()
	return d
}

// letter publishes a dead letter, and returns its sequence in the stream DEAD.
func letter(t *testing.T, b *bus.Bus, d *schemas.Dead) uint64 {
	t.Helper()
	sequence, err := b.Publish(within(t), d)
	must(t, err)
	return sequence
}

// copyLetter publishes a dead letter without a message ID, as after the duplicate window.
func copyLetter(t *testing.T, js jetstream.JetStream, d *schemas.Dead) {
	t.Helper()
	data, err := schemas.Marshal(d)
	must(t, err)
	_, err = js.Publish(within(t), d.Subject(), data)
	must(t, err)
}

// body is a stored sample with a space that no encoder writes.
func body(t *testing.T, s *schemas.Sample) []byte {
	t.Helper()
	data, err := schemas.Marshal(s)
	must(t, err)
	return append([]byte(" "), data...)
}

var nodeSubject = schemas.NodeSubject("node-a", schemas.EventSample)

// lines formats letters as "sequence origin replayed".
func lines(letters []bus.Letter) string {
	var all []string
	for _, l := range letters {
		as := "-"
		if l.Replayed != nil {
			as = fmt.Sprint(l.Replayed.ReplayedSequence)
		}
		all = append(all, fmt.Sprintf("%d %s/%d %s", l.Sequence, l.Stream, l.OriginSequence, as))
	}
	return strings.Join(all, ", ")
}

func TestLetters_OldestFirstWithoutCopies(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	letter(t, b, newDead("NODE", 7, nodeSubject, body(t, sample(7))))
	broken := newDead("JOB", 3, "job.a.epoch", []byte("{"))
	broken.Reason = "invalid: not JSON at byte 1"
	letter(t, b, broken)
	letter(t, b, newDead("NODE", 9, nodeSubject, []byte("x")))
	copyLetter(t, js, newDead("NODE", 7, nodeSubject, body(t, sample(7))))
	copyLetter(t, js, newDead("NODE", 7, nodeSubject, []byte("the same sequence in a new stream")))
	for _, subject := range []string{"dead.node", "dead.node.replayed"} {
		if _, err := js.Publish(within(t), subject, []byte("\x00garbage")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		sequences []uint64
		want      string
	}{
		{nil, "1 NODE/7 -, 2 JOB/3 -, 3 NODE/9 -, 5 NODE/7 -, 6 DEAD/6 -, 7 DEAD/7 -"},
		{[]uint64{4, 2, 4}, "2 JOB/3 -, 4 NODE/7 -"}, // also a copy
	} {
		got, err := b.Letters(within(t), c.sequences...)
		if err != nil || lines(got) != c.want {
			t.Errorf("Letters(%v) = %s, %v\nwant %s", c.sequences, lines(got), err, c.want)
		}
		for _, l := range got {
			if l.Data != nil || len(l.Digest) != 64 || l.Reason == "" {
				t.Errorf("got letter %+v, want one with digest and reason, without data", l)
			}
		}
	}
	if r := replay(t, b, 1); r.Fate != bus.FateReplayed {
		t.Fatalf("Replay = %+v, want fate replayed", r)
	}
	for _, sequence := range []uint64{0, 8, 9} { // 8 marks letter 1 as replayed
		if _, err := b.Letters(within(t), sequence); !errors.Is(err, schemas.ErrNotFound) ||
			!strings.Contains(err.Error(), fmt.Sprint("letter: stream DEAD has no letter ", sequence)) {
			t.Errorf("Letters(%d) = %v, want not found", sequence, err)
		}
	}
	moved, err := b.Letters(within(t), 2) // as if the stream had been created again
	must(t, err)
	moved[0].Sequence = 8
	if r, err := b.Replay(within(t), &moved[0], false); err != nil || r.Fate != bus.FateRefused {
		t.Errorf("Replay of a letter that is now a mark = %+v, %v, want it refused", r, err)
	}
}

// replay replays the letter at a sequence.
func replay(t *testing.T, b *bus.Bus, sequence uint64) bus.Replay {
	t.Helper()
	letters, err := b.Letters(within(t), sequence)
	must(t, err)
	r, err := b.Replay(within(t), &letters[0], false)
	must(t, err)
	return r
}

// A replay keeps bytes, subject and identity of the message. The letter and its copies stay
// marked as replayed.
func TestReplay_PublishesTheBytesOnceAndMarksTheLetter(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	if _, err := js.Publish(within(t), nodeSubject,
		body(t, sample(7))); err != nil { // by a client that sets no message ID
		t.Fatal(err)
	}
	at := letter(t, b, newDead("NODE", 1, nodeSubject, body(t, sample(7))))
	letters, err := b.Letters(within(t))
	if err != nil || len(letters) != 1 {
		t.Fatalf("Letters = %+v, %v, want one", letters, err)
	}
	if r, err := b.Replay(within(t), &letters[0], true); err != nil || r.Fate != bus.FateReplayable ||
		r.EventID != sample(7).ID() {
		t.Errorf("dry run = %+v, %v; want a replayable sample 7", r, err)
	}
	if last, err := b.LastSequence(within(t), schemas.StreamNode); err != nil || last != 1 {
		t.Fatalf("the dry run published a message: NODE ends at %d, %v", last, err)
	}
	r, err := b.Replay(within(t), &letters[0], false)
	if err != nil || r.Fate != bus.FateReplayed || r.Sequence != 2 {
		t.Fatalf("Replay = %+v, %v, want fate replayed", r, err)
	}
	stream, err := js.Stream(within(t), schemas.StreamNode)
	must(t, err)
	msg, err := stream.GetMsg(within(t), 2)
	if err != nil || string(msg.Data) != string(body(t, sample(7))) || msg.Subject != nodeSubject ||
		msg.Header.Get(jetstream.MsgIDHeader) != sample(7).ID() {
		t.Errorf("replayed message = %+v, %v, want sample 7 with its ID", msg, err)
	}
	copyLetter(t, js, newDead("NODE", 1, nodeSubject, body(t, sample(7)))) // of a reader that still cannot decode it
	if letters, err = b.Letters(within(t)); err != nil ||
		lines(letters) != "1 NODE/1 2" {
		t.Errorf("Letters = %s, %v, want one letter", lines(letters), err)
	}
	for _, sequence := range []uint64{at, 3} { // the copy is newer than the mark
		if r := replay(t, b, sequence); r.Fate != bus.FateAlreadyReplayed || r.Sequence != 2 {
			t.Errorf("second Replay = %+v, want already replayed as 2", r)
		}
	}
	if last, err := b.LastSequence(within(t), schemas.StreamNode); err != nil || last != 2 {
		t.Errorf("NODE ends at %d, %v, want 2", last, err)
	}
}

func TestReplay_Refuses(t *testing.T) {
	t.Parallel()
	alive := &schemas.Alive{}
	alive.EventID, alive.At, alive.JobID, alive.Run = "a/1/alive/1", time.Now().UTC(), "a", 1
	aliveBody, err := schemas.Marshal(alive)
	must(t, err)
	long := []byte(strings.Repeat("x", schemas.MaxDeadBytes))
	for _, c := range []struct {
		name    string
		stream  string
		subject string
		data    []byte
		cut     int // bytes
		want    string
	}{
		{
			"broken",
			"NODE",
			nodeSubject,
			[]byte("{broken"),
			0,
			"still cannot be decoded: invalid: not JSON at byte 2",
		},
		{"empty", "NODE", nodeSubject, nil, 0, "still cannot be decoded: invalid: "},
		{
			"another node's",
			"NODE",
			"node.node-b.sample",
			body(t, sample(5)),
			0,
			`still cannot be decoded: invalid: the body belongs on subject "node.node-a.sample", not on "node.node-b.sample"`,
		},
		{
			"cut",
			"NODE",
			nodeSubject,
			long,
			200_000 - schemas.MaxDeadBytes,
			"the letter was cut to 131072 bytes of 200000; stream NODE may still have the message at 50",
		},
		{"maximum length", "NODE", nodeSubject, long, 0, "still cannot be decoded"},
		{
			"not stored by any stream", "JOB", "job.a.alive", aliveBody, 0,
			"no stream stores job.a.alive now",
		},
		{
			"rejected by its stream",
			"JOB",
			nodeSubject,
			body(t, sample(6)),
			0,
			"stream JOB rejects it: expected stream does not match",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bustest.New(t)
			d := newDead(c.stream, 50, c.subject, c.data)
			d.OriginBytes += c.cut
			r := replay(t, b, letter(t, b, d))
			if r.Fate != bus.FateRefused || !strings.HasPrefix(r.Reason, c.want) {
				t.Errorf("Replay = %+v, want refused: %s", r, c.want)
			}
			letters, err := b.Letters(within(t))
			if err != nil || lines(letters) != "1 "+c.stream+"/50 -" {
				t.Errorf("Letters = %s, %v, want one letter", lines(letters), err)
			}
		})
	}
}

// Within the duplicate window the stream would drop a replay, because it has the message ID of the
// dead original or of a valid message that was stored later.
func TestReplay_InsideTheWindow(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	publish(t, b, 1, 3)
	for _, c := range []struct {
		origin   uint64
		number   uint64
		fate     bus.Fate
		sequence uint64
		reason   string
	}{
		{
			1,
			1,
			bus.FateRefused,
			0,
			"stream NODE takes it for a duplicate of its original; replay it again in 2m",
		},
		{9, 2, bus.FateAlreadyStored, 2, ""},
	} {
		at := letter(t, b, newDead("NODE", c.origin, nodeSubject, body(t, sample(c.number))))
		r := replay(t, b, at)
		letters, err := b.Letters(within(t), at)
		must(t, err)
		isMarked := letters[0].Replayed != nil
		if r.Fate != c.fate || r.Sequence != c.sequence || r.Reason != c.reason ||
			isMarked != (c.fate == bus.FateAlreadyStored) {
			t.Errorf("Replay(sample %d) = %+v, marked %v; want fate %s, sequence %d and reason %q",
				c.number, r, isMarked, c.fate, c.sequence, c.reason)
		}
	}
	if last, err := b.LastSequence(within(t), schemas.StreamNode); err != nil || last != 2 {
		t.Errorf("NODE ends at %d, %v, want 2", last, err)
	}
}

// If a replay is interrupted between the message and its mark, the next replay completes it
// and stores no duplicate.
func TestReplay_CompletesAnInterruptedReplay(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	at := letter(t, b, newDead("NODE", 40, nodeSubject, body(t, sample(7))))
	stream, err := js.Stream(within(t), schemas.StreamDead)
	must(t, err)
	c := stream.CachedInfo().Config
	c.Subjects = []string{schemas.DeadSubject("*")} // no mark can be written
	if _, err := js.UpdateStream(within(t), c); err != nil {
		t.Fatal(err)
	}
	letters, err := b.Letters(within(t), at)
	must(t, err)
	if r, err := b.Replay(within(t), &letters[0], false); err == nil ||
		!strings.Contains(err.Error(), "letter 1 is replayed as NODE 1, but not marked") ||
		r.Fate != bus.FateReplayed {
		t.Fatalf("Replay = %+v, %v, want fate replayed", r, err)
	}
	must(t, b.Prepare(within(t)))
	if r := replay(t, b, at); r.Fate != bus.FateAlreadyStored || r.Sequence != 1 {
		t.Errorf("Replay after the crash = %+v, want already stored as 1", r)
	}
	letters, err = b.Letters(within(t))
	if last, _ := b.LastSequence(within(t), schemas.StreamNode); err != nil ||
		lines(letters) != "1 NODE/40 1" ||
		last != 1 {
		t.Errorf("Letters = %s, NODE ends at %d, %v; want one letter, replayed as 1",
			lines(letters), last, err)
	}
}

// A message on an unknown subject becomes a dead letter and does not stop its reader.
func TestFollow_UnknownSubjectBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	for _, token := range []string{
		strings.Repeat("n", 2000), "\x01\x1b[2J", "\xff\xfe", "ünï", "A",
	} {
		if _, err := js.Publish(within(t), schemas.NodeSubject(token, schemas.EventSample),
			[]byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, b, 1, 2)
	follow(t, b, bus.FollowOptions{}, 1)
	letters, err := b.Letters(within(t))
	if err != nil || len(letters) != 5 || len(letters[0].OriginSubject) != 2000+len("node..sample") {
		t.Errorf("Letters = %s, %v, want 5", lines(letters), err)
	}
	for i := range letters {
		if r, err := b.Replay(within(t), &letters[i], false); err != nil || r.Fate != bus.FateRefused {
			t.Errorf("Replay(%q) = %+v, %v, want fate refused", letters[i].OriginSubject, r, err)
		}
	}
}

func TestLetters_ReportsAnUnreachableServer(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b := server.Connect(t)
	letter(t, b, newDead("NODE", 7, nodeSubject, body(t, sample(7))))
	letters, err := b.Letters(within(t), 1)
	must(t, err)
	server.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, list := b.Letters(ctx)
	_, again := b.Replay(ctx, &letters[0], false)
	for name, err := range map[string]error{"Letters": list, "Replay": again} {
		if !errors.Is(err, schemas.ErrUnavailable) {
			t.Errorf("%s without a server = %v, want unavailable", name, err)
		}
	}
}
