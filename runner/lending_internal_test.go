package runner

import (
	"testing"
	"time"

	"courier/schemas"
)

// A job that lends a CPU takes it back if its epochs become several times as slow as predicted and its
// SLO is at risk, as long as time is left. A job that gave up CPUs for no other job's SLO does so in any case.
func TestAdaptation_UndoesALoanThatCostsTheSLO(t *testing.T) {
	loan := schemas.PlannedMove{Purpose: schemas.MoveLent, FromCPUs: 2, ToCPUs: 1}
	saved, byOwnEpochs := loan, loan
	saved.Purpose, byOwnEpochs.SpeedRatio = schemas.MoveSaved, 0.67
	for _, test := range []struct {
		name  string
		is    schemas.PlannedMove
		slo   float64 // seconds; 997 epochs are left after the third one with the move
		after float64 // seconds of an epoch with the move; 1 before, predicted are 1.5
		epoch uint32  // last one before the move
		want  string
	}{
		{"slow, at risk", loan, 1800, 4, 3, schemas.MoveUndone},
		{"slow, in time", loan, 9000, 4, 3, schemas.MoveKept},
		{"slow, no SLO", loan, 0, 4, 3, schemas.MoveKept},
		{"slow, too late", loan, 5, 4, 3, schemas.MoveKept},
		{"slow, at the end", loan, 9, 4, 996, schemas.MoveKept},
		{"as predicted, at risk", loan, 1000, 1.6, 3, schemas.MoveKept},
		{"twice the loss, at risk", loan, 1000, 2, 3, schemas.MoveKept},
		{"not needed, but slow", saved, 0, 4, 3, schemas.MoveUndone},
		{"not needed, as predicted", saved, 0, 1.6, 3, schemas.MoveKept},
		{"by its own epochs, but slow", byOwnEpochs, 0, 4, 3, schemas.MoveUndone},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newSharing(2)
			now := time.Unix(1_790_000_000, 0)
			for n := range uint32(3) {
				a.addEpoch(test.epoch-2+n, 2, 1, now)
			}
			advice := cpuMove(7, test.epoch, test.is, 1.5, 1)
			advice.At, advice.SLOSeconds = now, test.slo
			if s := a.addAdvice(advice, now, 0, nil); s.value != 1 {
				t.Fatalf("requested %d CPUs, want 1", s.value)
			}
			var s adaptationStep
			for n := range uint32(3) {
				now = now.Add(time.Duration(test.after * float64(time.Second)))
				s = a.addEpoch(test.epoch+1+n, 1, test.after, now)
			}
			if s.moved == nil || s.moved.Outcome != test.want {
				t.Fatalf("outcome %+v, want %s", s.moved, test.want)
			}
			if isUndone := s.value == 2; isUndone != (test.want == schemas.MoveUndone) {
				t.Errorf("requested %d CPUs after %s", s.value, test.want)
			}
		})
	}
}
