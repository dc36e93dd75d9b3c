package bus_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// advice returns a valid advice for job j1 with the given cause.
func advice(t *testing.T, cause uint64) *schemas.Advice {
	t.Helper()
	data, err := os.ReadFile("../schemas/testdata/advice.json")
	if err != nil {
		t.Fatal(err)
	}
	a := &schemas.Advice{}
	if err := json.Unmarshal(data, a); err != nil {
		t.Fatal(err)
	}
	a.JobID, a.CauseSequence, a.EventID = "j1", cause, schemas.AdviceID("j1", cause)
	return a
}

// oldLayout gives a server the streams of the releases that stored advice in JOB.
func oldLayout(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	if err := js.DeleteStream(within(t), schemas.StreamAdvice); err != nil {
		t.Fatal(err)
	}
	editStream(t, js, schemas.StreamJob, func(c *jetstream.StreamConfig) {
		admitted := schemas.JobSubject("*", schemas.EventAdmitted)
		c.Subjects = slices.DeleteFunc(c.Subjects, func(s string) bool { return s == admitted })
		c.Subjects = append(c.Subjects, schemas.JobSubject("*", schemas.EventAdvice))
	})
}

// storedIDs returns the IDs of the stored events that o selects.
func storedIDs(t *testing.T, b *bus.Bus, o bus.FollowOptions) (ids []string) {
	t.Helper()
	err := b.Read(within(t), o, func(r bus.Record) error {
		ids = append(ids, r.Event.ID())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// The streams of a release that stored advice in JOB are changed to the current layout, by the
// start of a service and by courier streams --apply. The messages in JOB stay readable.
func TestUpgrade_AdviceMovesToItsOwnStream(t *testing.T) {
	t.Parallel()
	for name, upgrade := range map[string]func(*bus.Bus) error{
		"Prepare": func(b *bus.Bus) error { return b.Prepare(within(t)) },
		"ApplyStreams": func(b *bus.Bus) error {
			states, err := b.ApplyStreams(within(t))
			for _, s := range states {
				if !s.OK() {
					err = fmt.Errorf("%s differs: %s", s.Declared.Name, formatAll(s.Differences))
				}
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := bustest.NewServer(t)
			b, js := server.Connect(t), outside(t, server.URL())
			oldLayout(t, js)
			for cause := range uint64(3) {
				if _, err := b.Publish(within(t), advice(t, cause)); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 { // the second call changes nothing
				if err := upgrade(b); err != nil {
					t.Fatal(err)
				}
			}
			sequence, err := b.Publish(within(t), advice(t, 3))
			if err != nil || sequence != 1 {
				t.Fatalf("sequence of the next advice: got %d, error %v; want the first of ADVICE",
					sequence, err)
			}
			subject := schemas.JobSubject("j1", schemas.EventAdvice)
			job := bus.FollowOptions{Stream: schemas.StreamJob}
			lastOfJob := bus.FollowOptions{
				Stream:         schemas.StreamJob,
				Subjects:       []string{subject},
				LastPerSubject: true,
			}
			for _, c := range []struct {
				o    bus.FollowOptions
				want []string
			}{
				{job, []string{"j1/0/advice", "j1/1/advice", "j1/2/advice"}},
				{lastOfJob, []string{"j1/2/advice"}},
				{bus.FollowOptions{Stream: schemas.StreamAdvice}, []string{"j1/3/advice"}},
			} {
				if got := storedIDs(t, b, c.o); !slices.Equal(got, c.want) {
					t.Errorf("%s %v holds %v, want %v", c.o.Stream, c.o.Subjects, got, c.want)
				}
			}
		})
	}
}

// A newer release has moved a subject to another stream. An older release starts nevertheless,
// and applies its other settings.
func TestPrepare_LeavesASubjectThatAnotherStreamHas(t *testing.T) {
	t.Parallel()
	server := bustest.NewServer(t)
	b, js := server.Connect(t), outside(t, server.URL())
	moved := schemas.JobSubject("*", schemas.EventMoved)
	editStream(t, js, schemas.StreamJob, func(c *jetstream.StreamConfig) {
		c.Subjects = slices.DeleteFunc(c.Subjects, func(s string) bool { return s == moved })
		c.MaxAge = time.Hour
	})
	newer := jetstream.StreamConfig{Name: "NEWER", Subjects: []string{moved}}
	if _, err := js.CreateStream(within(t), newer); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.Prepare(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	states, err := b.Streams(within(t))
	if err != nil {
		t.Fatal(err)
	}
	differences := states[0].Differences // of JOB
	if len(differences) != 1 || differences[0].Setting != "subjects" {
		t.Errorf("after Prepare JOB differs in %q, want only its subjects", formatAll(differences))
	}
}

// The dead letter of an advice that was stored in JOB is replayed into ADVICE.
func TestReplay_OfAnOldAdvice(t *testing.T) {
	t.Parallel()
	b := bustest.New(t)
	a := advice(t, 7)
	data, err := schemas.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Letter(within(t), letter(t, b, schemas.StreamJob, 1, a.Subject(), data, nil))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := b.Replay(within(t), l); err != nil || r.Fate != bus.FateReplayed || r.Sequence != 1 {
		t.Errorf("Replay = %+v, %v, want replayed as 1", r, err)
	}
	got := storedIDs(t, b, bus.FollowOptions{Stream: schemas.StreamAdvice})
	if !slices.Equal(got, []string{a.EventID}) {
		t.Errorf("events of ADVICE = %v, want only %s", got, a.EventID)
	}
}
