package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// advised returns advice to change to a batch size after an epoch. The ten remaining epochs are
// predicted to take with seconds each, instead of without seconds.
func advised(cause uint64, after, to uint32, with, without float64) *schemas.Advice {
	alternative := func(size uint32, seconds float64) schemas.Alternative {
		return schemas.Alternative{BatchSize: size, CPUs: 1, Epochs: 10, PredictedSeconds: new(10 * seconds)}
	}
	a := &schemas.Advice{
		CauseSequence: cause,
		Action:        schemas.ActionBatch,
		EpochsDone:    after,
		Alternatives:  []schemas.Alternative{alternative(16, without), alternative(to, with)},
	}
	a.Chosen = &a.Alternatives[1]
	return a
}

func keep(cause uint64, after uint32) *schemas.Advice {
	a := advised(cause, after, 16, 1, 1)
	a.Action = schemas.ActionKeep
	return a
}

// Each test is a sequence of advice and epochs. The wanted lines are the steps that follow: the
// requested batch size and the published move.
func TestAdaptation(t *testing.T) {
	type event any
	type epoch struct {
		number, batch uint32
		seconds       float64
	}
	type wait time.Duration
	epochs := func(first, last, batch uint32, seconds float64) (all []event) {
		for n := first; n <= last; n++ {
			all = append(all, epoch{n, batch, seconds})
		}
		return all
	}
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
		{
			"kept",
			schemas.ByControl,
			[]event{
				epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 16, 1}, epoch{3, 64, 0.6},
				epoch{4, 64, 0.6}, epoch{5, 64, 0.6},
			},
			[]string{
				"", "64", "", "carried_out 16→64 from 3, 1 before, 0.6 after 1", "",
				"kept 16→64 from 3, 1 before, 0.6 after 3",
			},
		},
		{"undone below half of the gain, and barred", schemas.ByControl,
			[]event{
				epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 0.9}, epoch{3, 64, 0.8},
				epoch{4, 64, 0.8}, advised(8, 4, 64, 0.5, 1), epoch{5, 16, 1},
				advised(9, 5, 64, 0.5, 1), advised(10, 5, 64, 0.5, 1), wait(11 * time.Minute),
				advised(11, 5, 64, 0.5, 1),
			},
			[]string{
				"", "64", "carried_out 16→64 from 2, 1 before, 0.9 after 1", "",
				"16 undone 16→64 from 2, 1 before, 0.833 after 3", "", "",
				"refused 16→64: it was undone or failed recently", "", "", "64",
			}},
		{
			"other co-located jobs than before",
			schemas.ByControl,
			// epochs took 0.2 before, but 1 is predicted without the move
			append([]event{epoch{1, 16, 0.2}, advised(7, 1, 64, 0.5, 1)}, epochs(2, 4, 64, 0.6)...),
			[]string{
				"", "64", "carried_out 16→64 from 2, 0.2 before, 0.6 after 1", "",
				"kept 16→64 from 2, 0.2 before, 0.6 after 3",
			},
		},
		{
			"the job slows down more than predicted",
			schemas.ByControl,
			// 1 was predicted without the move, but the last epoch took 2
			[]event{
				epoch{1, 16, 0.4}, epoch{2, 16, 2}, advised(7, 2, 64, 0.5, 1), epoch{3, 64, 1},
				epoch{4, 64, 1.2}, epoch{5, 64, 1.1},
			},
			[]string{
				"", "", "64", "carried_out 16→64 from 3, 1.2 before, 1 after 1", "",
				"kept 16→64 from 3, 1.2 before, 1.1 after 3",
			},
		},
		{
			"no prediction",
			schemas.ByControl,
			[]event{unknown, epoch{2, 64, 9}, epoch{3, 64, 9}, epoch{4, 64, 9}},
			[]string{"64", "carried_out 16→64 from 2, 9 after 1", "", "kept 16→64 from 2, 9 after 3"},
		},
		{
			"no epoch remains for an undo",
			schemas.ByControl,
			[]event{
				epoch{15, 16, 1}, advised(7, 15, 64, 0.5, 1), epoch{17, 64, 2}, epoch{18, 64, 2},
				epoch{19, 64, 2},
			},
			[]string{
				"", "64", "carried_out 16→64 from 17, 1 before, 2 after 1", "",
				"kept 16→64 from 17, 1 before, 2 after 3",
			},
		},
		{
			"epochs with a start-up are not measured",
			schemas.ByControl,
			[]event{
				epoch{1, 16, 0}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 0}, epoch{3, 64, 0.5},
				epoch{4, 64, 0.5}, epoch{5, 64, 0.5},
			},
			[]string{"", "64", "carried_out 16→64 from 2", "", "", "kept 16→64 from 2, 0.5 after 3"},
		},
		{"duplicates, outdated advice, and advice for the current batch size", schemas.ByControl,
			[]event{
				epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), advised(7, 1, 64, 0.5, 1),
				advised(6, 1, 32, 0.5, 1), advised(8, 1, 64, 0.5, 1), epoch{2, 64, 0.5},
				advised(9, 2, 64, 0.5, 1),
			},
			[]string{"", "64", "", "", "", "carried_out 16→64 from 2, 1 before, 0.5 after 1", ""}},
		{
			"advice after a future epoch", schemas.ByControl,
			[]event{epoch{1, 16, 1}, advised(7, 2, 64, 0.5, 1)}, []string{"", ""},
		},
		{
			"outdated advice starts and bars nothing",
			schemas.ByControl,
			[]event{
				epoch{5, 16, 1}, advised(7, 2, 64, 0.5, 1), advised(8, 2, 64, 0.5, 1),
				advised(9, 3, 64, 0.5, 1),
			},
			[]string{"", "", "", "64"},
		},
		{
			"not a requested batch size",
			schemas.ByControl,
			[]event{epoch{1, 16, 1}, advised(7, 1, 48, 0.5, 1)},
			[]string{"", "refused 16→48: it is not among the requested batch sizes: [16 32 64]"},
		},
		{
			"the last epoch is running",
			schemas.ByControl,
			[]event{epoch{19, 16, 1}, advised(7, 19, 64, 0.5, 1)},
			[]string{"", "refused 16→64: no epoch remains for it"},
		},
		{
			"replaced by other advice",
			schemas.ByControl,
			[]event{
				epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), advised(8, 1, 32, 0.7, 1),
				epoch{2, 32, 0.7},
			},
			[]string{"", "64", "32", "carried_out 16→32 from 2, 1 before, 0.7 after 1"},
		},
		{
			"too late to replace",
			schemas.ByControl,
			[]event{
				epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 16, 1},
				advised(8, 2, 32, 0.7, 1), epoch{3, 64, 0.5},
			},
			[]string{"", "64", "", "", "carried_out 16→64 from 3, 1 before, 0.5 after 1"},
		},
		{
			"one move at a time",
			schemas.ByControl,
			[]event{
				epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 0.5},
				advised(8, 2, 32, 0.7, 1),
			},
			[]string{"", "64", "carried_out 16→64 from 2, 1 before, 0.5 after 1", ""},
		},
		{
			"withdrawn",
			schemas.ByControl,
			[]event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), keep(8, 1), epoch{2, 16, 1}},
			[]string{"", "64", "16", ""},
		},
		{
			"too late to withdraw",
			schemas.ByControl,
			[]event{
				epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 16, 1}, keep(8, 2),
				epoch{3, 64, 0.5},
			},
			[]string{"", "64", "", "", "carried_out 16→64 from 3, 1 before, 0.5 after 1"},
		},
		{
			"the training ignores the request",
			schemas.ByControl,
			append([]event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1)}, epochs(2, 4, 16, 1)...),
			[]string{
				"", "64", "", "",
				"16 refused 16→64: the training does not apply it: epoch 4 ran with batch size 16",
			},
		},
		{
			"the training changes by itself",
			schemas.ByControl,
			[]event{epoch{1, 16, 1}, epoch{2, 32, 1}, advised(7, 2, 32, 0.5, 1), advised(8, 2, 64, 0.5, 1)},
			[]string{"", "", "", "64"},
		},
		{
			"the end of the run",
			schemas.ByControl,
			[]event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), nil, advised(8, 1, 32, 0.5, 1), nil},
			[]string{"", "64", "refused 16→64: the end", "", ""},
		},
		{
			"advice only",
			"",
			[]event{epoch{1, 16, 1}, advised(7, 1, 64, 0.5, 1), epoch{2, 64, 1}, nil},
			[]string{"", "", "", ""},
		},
		{
			"within the prediction error",
			schemas.ByControl,
			[]event{
				epoch{1, 16, 1}, advised(7, 1, 64, 0.96, 1), advised(8, 1, 64, 0.97, 1),
				advised(9, 1, 64, 0.94, 1),
			},
			[]string{
				"",
				"refused 16→64: it saves too little: predicted are 9.6 s with it and 10 s without it",
				"",
				"64",
			},
		},
		{
			"worth a restart",
			schemas.ByRestart,
			[]event{epoch{1, 16, 1}, advised(7, 1, 64, 0.9, 1), epoch{2, 16, 1}, epoch{3, 64, 0.9}},
			[]string{"", "64", "", "carried_out 16→64 from 3, 1 before, 0.9 after 1"},
		},
		{
			"not worth a restart",
			schemas.ByRestart,
			[]event{epoch{1, 16, 1}, advised(7, 1, 64, 0.95, 1)},
			[]string{
				"",
				"refused 16→64: it saves 0.5 s and a restart costs 0.5 s: it must save at least twice the cost",
			},
		},
		{
			"a restart without a prediction", schemas.ByRestart, []event{unknown},
			[]string{"refused 16→64: without a prediction, it is unknown whether it is worth a restart"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := newAdaptation(batchSizeMoves, tt.means, []int{16, 32, 64},
				&schemas.Setting{BatchSize: 16, Epochs: 20})
			a.done = 1
			now := time.Unix(1_790_000_000, 0)
			var got []string
			for _, e := range tt.events {
				var s adaptationStep
				switch e := e.(type) {
				case *schemas.Advice:
					s = a.addAdvice(e, now, 0, &startup)
				case epoch:
					s = a.addEpoch(e.number, e.batch, e.seconds, now)
				case wait:
					now = now.Add(time.Duration(e))
				default:
					s = a.end("the end")
				}
				got = append(got, formatStep(s))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// formatStep returns a step as a line of the table.
func formatStep(s adaptationStep) string {
	var words []string
	if s.value > 0 {
		words = append(words, fmt.Sprint(s.value))
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

// The advisor predicts the remaining time of a job without the elapsed time of the current epoch.
func TestMeanEpochSeconds(t *testing.T) {
	for _, tt := range []struct{ elapsed, want float64 }{{0, 2}, {0.5, 2}, {1.9, 2}, {5, 2}} {
		remaining := 10*2 - min(tt.elapsed, 0.95*2)
		got := meanEpochSeconds(&schemas.Alternative{
			Epochs:           10,
			PredictedSeconds: &remaining,
		}, tt.elapsed)
		if *got < tt.want-1e-9 || *got > tt.want+1e-9 {
			t.Errorf("meanEpochSeconds(%g s for 10 epochs, %g elapsed) = %g, want %g",
				remaining, tt.elapsed, *got, tt.want)
		}
	}
}

// A requested batch size is always one of the request or one that the run had.
func FuzzAdaptation(f *testing.F) {
	f.Add([]byte("a1b2c3d4e5"), true)
	f.Add([]byte{0, 200, 3, 7, 64, 9, 12, 250, 31, 1}, false)
	f.Fuzz(func(t *testing.T, script []byte, restart bool) {
		means := schemas.ByControl
		if restart {
			means = schemas.ByRestart
		}
		a := newAdaptation(batchSizeMoves, means, []int{16, 32, 64}, &schemas.Setting{BatchSize: 16, Epochs: 50})
		now, startup, seen := time.Unix(1_790_000_000, 0), 0.1, []uint32{16}
		for i, b := range script {
			var s adaptationStep
			batch := []uint32{16, 32, 64, 48}[b%4]
			if b&4 == 0 {
				s = a.addAdvice(
					advised(uint64(b), uint32(b)>>4, batch, float64(b>>5), 1), now,
					time.Duration(b)*time.Millisecond, &startup,
				)
			} else {
				seen = append(seen, batch)
				s = a.addEpoch(uint32(i+1), batch, float64(b)/100, now)
			}
			if s.value > 0 && !slices.Contains(a.values, int(s.value)) &&
				!slices.Contains(seen, s.value) {
				t.Fatalf("requested batch size %d, want one of %v or %v", s.value, a.values, seen)
			}
			if s.moved != nil {
				s.moved.JobStamp = schemas.JobStamp{
					Stamp: schemas.Stamp{EventID: "x", At: now},
					JobID: "x",
					Run:   1,
				}
				if err := s.moved.Validate(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// A number of CPUs that could not be applied is not tried again for ten minutes, whether or not the
// request for it still stands.
func TestAdaptation_BarsAFailedMove(t *testing.T) {
	start := time.Unix(0, 0)
	for _, isWithdrawn := range []bool{false, true} {
		a := newAdaptation(batchSizeMoves, schemas.ByDocker, []int{16, 64},
			&schemas.Setting{BatchSize: 16, Epochs: 20})
		a.addEpoch(1, 16, 1, start)
		if s := a.addAdvice(advised(7, 1, 64, 0.5, 1), start, 0, nil); s.value != 64 {
			t.Fatalf("addAdvice() = %+v, want a move to 64", s)
		}
		if isWithdrawn {
			a.addAdvice(keep(8, 1), start, 0, nil)
		}
		s := a.fail(64, "no space", start)
		if isReported := s.moved != nil; isReported == isWithdrawn || a.requested != nil {
			t.Errorf("withdrawn %t: fail() = %+v, requested %+v", isWithdrawn, s.moved, a.requested)
		}
		for cause, test := range map[uint64]struct {
			after time.Duration
			want  uint32
		}{9: {barTime - 1, 0}, 10: {barTime, 64}} {
			b := *a
			got := b.addAdvice(advised(cause, 1, 64, 0.5, 1), start.Add(test.after), 0, nil).value
			if got != test.want {
				t.Errorf("withdrawn %t: move after %s = %d, want %d", isWithdrawn, test.after, got, test.want)
			}
		}
	}
}
