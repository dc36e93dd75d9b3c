package collector

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// advised is an advice after an epoch to go on with another batch size, whose
// ten epochs are predicted to take with seconds each, instead of without.
func advised(cause uint64, after, to uint32, with, without float64) *schemas.Advice {
	alternative := func(size uint32, seconds float64) schemas.Alternative {
		all := 10 * seconds
		return schemas.Alternative{BatchSize: size, CPUs: 1, Epochs: 10, PredictedSeconds: &all}
	}
	a := &schemas.Advice{CauseSequence: cause, Action: schemas.ActionBatch, EpochsDone: after, Alternatives: []schemas.Alternative{alternative(16, without), alternative(to, with)}}
	a.Chosen = &a.Alternatives[1]
	return a
}

func keep(cause uint64, after uint32) *schemas.Advice {
	a := advised(cause, after, 16, 1, 1)
	a.Action = schemas.ActionKeep
	return a
}

// TestMover tells stories of advice and epochs. A line is what follows: the
// batch size that is asked for, and what is told.
func TestMover(t *testing.T) {
	type event any
	type epoch struct {
		number, batch uint32
		seconds       float64
	}
	type wait time.Duration
	var (
		startup = 0.5
		unknown = advised(7, 1, 64, 0, 0)
	)
	unknown.Chosen.PredictedSeconds = nil
	tests := []struct {
		name   string
		means  string
		events []event
		want   []string
	}{
		{"kept", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 16, 1}, epoch{3, 64, 0.6}, epoch{4, 64, 0.6}, epoch{5, 64, 0.6}},
			[]string{"", "64", "", "carried_out 16→64 from 3, 1 before, 0.6 after 1", "", "kept 16→64 from 3, 1 before, 0.6 after 3"}},
		{"less than half of the gain is undone and barred", schemas.ByControl,
			[]event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 0.9}, epoch{3, 64, 0.8}, epoch{4, 64, 0.8}, advised(8, 4, 64, 0.5, 1), epoch{5, 16, 1}, advised(9, 5, 64, 0.5, 1), advised(10, 5, 64, 0.5, 1), wait(11 * time.Minute), advised(11, 5, 64, 0.5, 1)},
			[]string{"", "64", "carried_out 16→64 from 2, 1 before, 0.9 after 1", "", "16 undone 16→64 from 2, 1 before, 0.833 after 3", "", "", "refused 16→64: it was undone a short time ago", "", "", "64"}},
		{"the company is another than before", schemas.ByControl, // measured before at 0.2, but 1 is predicted without it
			[]event{epoch{1, 16, 0.2}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 0.6}, epoch{3, 64, 0.6}, epoch{4, 64, 0.6}},
			[]string{"", "64", "carried_out 16→64 from 2, 0.2 before, 0.6 after 1", "", "kept 16→64 from 2, 0.2 before, 0.6 after 3"}},
		{"the job slowed down faster than its predictions", schemas.ByControl, // without the move 1 was predicted, but it took 2 already
			[]event{epoch{1, 16, 0.4}, epoch{2, 16, 2}, advised(7, 2, 64, 0.5, 1), epoch{3, 64, 1}, epoch{4, 64, 1.2}, epoch{5, 64, 1.1}},
			[]string{"", "", "64", "carried_out 16→64 from 3, 1.2 before, 1 after 1", "", "kept 16→64 from 3, 1.2 before, 1.1 after 3"}},
		{"nothing was predicted", schemas.ByControl, []event{unknown, epoch{2, 64, 9}, epoch{3, 64, 9}, epoch{4, 64, 9}},
			[]string{"64", "carried_out 16→64 from 2, 9 after 1", "", "kept 16→64 from 2, 9 after 3"}},
		{"no epoch to undo it for", schemas.ByControl, []event{epoch{15, 16, 1}, advised(7, 15, 64, 0.5, 1), epoch{17, 64, 2}, epoch{18, 64, 2}, epoch{19, 64, 2}},
			[]string{"", "64", "carried_out 16→64 from 17, 1 before, 2 after 1", "", "kept 16→64 from 17, 1 before, 2 after 3"}},
		{"start-up within an epoch is not measured", schemas.ByControl, []event{epoch{1, 16, 0}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 0}, epoch{3, 64, 0.5}, epoch{4, 64, 0.5}, epoch{5, 64, 0.5}},
			[]string{"", "64", "carried_out 16→64 from 2", "", "", "kept 16→64 from 2, 0.5 after 3"}},
		{"copies, old news, and what runs already", schemas.ByControl,
			[]event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), advised(7, 1, 64, 0.5, 1), advised(6, 1, 32, 0.5, 1), advised(8, 1, 64, 0.5, 1), epoch{2, 64, 0.5}, advised(9, 2, 64, 0.5, 1)},
			[]string{"", "64", "", "", "", "carried_out 16→64 from 2, 1 before, 0.5 after 1", ""}},
		{"of an epoch that is still to come", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 2, 64, 0.5, 1)}, []string{"", ""}},
		{"of an epoch that is past", schemas.ByControl, []event{epoch{5, 16, 1}, advised(7, 2, 64, 0.5, 1), advised(8, 2, 64, 0.5, 1), advised(9, 3, 64, 0.5, 1)},
			[]string{"", "refused 16→64: the advice is out of date: it was given after epoch 2, and epoch 5 is over", "", "64"}},
		{"not asked for", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 48, 0.5, 1)}, []string{"", "refused 16→48: it is not among the batch sizes that were asked for: [16 32 64]"}},
		{"the last epoch runs", schemas.ByControl, []event{epoch{19, 16, 1}, advised(7, 19, 64, 0.5, 1)}, []string{"", "refused 16→64: no epoch is left for it"}},
		{"another advice takes its place", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), advised(8, 1, 32, 0.7, 1), epoch{2, 32, 0.7}},
			[]string{"", "64", "32", "carried_out 16→32 from 2, 1 before, 0.7 after 1"}},
		{"too late for another", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 16, 1}, advised(8, 2, 32, 0.7, 1), epoch{3, 64, 0.5}},
			[]string{"", "64", "", "", "carried_out 16→64 from 3, 1 before, 0.5 after 1"}},
		{"one move at a time", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 0.5}, advised(8, 2, 32, 0.7, 1)},
			[]string{"", "64", "carried_out 16→64 from 2, 1 before, 0.5 after 1", ""}},
		{"withdrawn", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), keep(8, 1), epoch{2, 16, 1}}, []string{"", "64", "16", ""}},
		{"too late to withdraw", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 16, 1}, keep(8, 2), epoch{3, 64, 0.5}},
			[]string{"", "64", "", "", "carried_out 16→64 from 3, 1 before, 0.5 after 1"}},
		{"a training that does not listen", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 16, 1}, epoch{3, 16, 1}, epoch{4, 16, 1}},
			[]string{"", "64", "", "", "16 refused 16→64: the training does not take it up: epoch 4 ran with batch size 16"}},
		{"a training with a will of its own", schemas.ByControl, []event{epoch{1, 16, 1}, epoch{2, 32, 1}, advised(7, 2, 32, 0.5, 1), advised(8, 2, 64, 0.5, 1)}, []string{"", "", "", "64"}},
		{"the end", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), nil, advised(8, 1, 32, 0.5, 1), nil}, []string{"", "64", "refused 16→64: the end", "", ""}},
		{"advice only", "", []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 1}, nil}, []string{"", "", "", ""}},
		{"within what predictions err by", schemas.ByControl, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.96, 1), advised(8, 1, 64, 0.97, 1), advised(9, 1, 64, 0.94, 1)},
			[]string{"", "refused 16→64: it saves too little: 9.6 s are predicted with it, and 10 s without", "", "64"}},
		{"worth a restart", schemas.ByRestart, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.9, 1), epoch{2, 16, 1}, epoch{3, 64, 0.9}}, []string{"", "64", "", "carried_out 16→64 from 3, 1 before, 0.9 after 1"}},
		{"not worth a restart", schemas.ByRestart, []event{epoch{1, 16, 1}, advised(7, 1, 64, 0.95, 1)}, []string{"", "refused 16→64: it saves 0.5 s and a restart costs 0.5 s: want twice that"}},
		{"perhaps worth a restart", schemas.ByRestart, []event{unknown}, []string{"refused 16→64: nobody knows whether it is worth a restart"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := newMover(tt.means, &schemas.JobRequest{BatchSizes: []int{16, 32, 64}}, &schemas.Setting{BatchSize: 16, Epochs: 20})
			m.done = 1
			now := time.Unix(1_790_000_000, 0)
			var got []string
			for _, e := range tt.events {
				var s step
				switch e := e.(type) {
				case *schemas.Advice:
					s = m.advise(e, now, 0, &startup)
				case epoch:
					s = m.epoch(e.number, e.batch, e.seconds, now)
				case wait:
					now = now.Add(time.Duration(e))
				default:
					s = m.end("the end")
				}
				got = append(got, line(s))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// line writes a step as the table has it.
func line(s step) string {
	var words []string
	if s.batch > 0 {
		words = append(words, fmt.Sprint(s.batch))
	}
	if e := s.moved; e != nil {
		text := fmt.Sprintf("%s %d→%d", e.Outcome, e.FromBatchSize, e.ToBatchSize)
		if e.Outcome == schemas.MoveRefused {
			return strings.Join(append(words, text+": "+e.Reason), " ")
		}
		text += fmt.Sprintf(" from %d", e.Epoch)
		if e.BeforeEpochSeconds != nil {
			text += fmt.Sprintf(", %.3g before", *e.BeforeEpochSeconds)
		}
		if e.AfterEpochSeconds != nil {
			text += fmt.Sprintf(", %.3g after %d", *e.AfterEpochSeconds, e.EpochsMeasured)
		}
		words = append(words, text)
	}
	return strings.Join(words, " ")
}

// What an epoch takes follows from the rest of the job as the advisor reckons
// it: what was spent on the running epoch is not in it.
func TestEpochSeconds(t *testing.T) {
	for _, tt := range []struct{ spent, want float64 }{{0, 2}, {0.5, 2}, {1.9, 2}, {5, 2}} {
		left := 10*2 - min(tt.spent, 0.95*2)
		got := epochSeconds(&schemas.Alternative{Epochs: 10, PredictedSeconds: &left}, tt.spent)
		if *got < tt.want-1e-9 || *got > tt.want+1e-9 {
			t.Errorf("epochSeconds(%g s left of 10 epochs, %g spent) = %g, want %g", left, tt.spent, *got, tt.want)
		}
	}
}

// Whatever comes, a run is asked for nothing but allowed batch sizes or the one
// it has, and nothing is told twice.
func FuzzMover(f *testing.F) {
	f.Add([]byte("a1b2c3d4e5"), true)
	f.Add([]byte{0, 200, 3, 7, 64, 9, 12, 250, 31, 1}, false)
	f.Fuzz(func(t *testing.T, script []byte, restart bool) {
		means := schemas.ByControl
		if restart {
			means = schemas.ByRestart
		}
		m := newMover(means, &schemas.JobRequest{BatchSizes: []int{16, 32, 64}}, &schemas.Setting{BatchSize: 16, Epochs: 50})
		now, startup, seen := time.Unix(1_790_000_000, 0), 0.1, []uint32{16}
		for i, b := range script {
			var s step
			batch := []uint32{16, 32, 64, 48}[b%4]
			if b&4 == 0 {
				s = m.advise(advised(uint64(b), uint32(b)>>4, batch, float64(b>>5), 1), now, time.Duration(b)*time.Millisecond, &startup)
			} else {
				seen = append(seen, batch)
				s = m.epoch(uint32(i+1), batch, float64(b)/100, now)
			}
			if s.batch > 0 && !slices.Contains(m.sizes, int(s.batch)) && !slices.Contains(seen, s.batch) {
				t.Fatalf("asked for batch size %d", s.batch)
			}
			if s.moved != nil {
				s.moved.JobStamp = schemas.JobStamp{Stamp: schemas.Stamp{EventID: "x", At: now}, JobID: "x", Run: 1}
				if err := s.moved.Validate(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
