package replay_test

import (
	"testing"

	"courier/replay"
)

func TestVerify_OfAnEmptyLog(t *testing.T) {
	v, err := (&replay.Log{}).Verify(t.Context())
	if err != nil || v.Total() != (replay.VerifyCounts{}) {
		t.Errorf("Verify of an empty log = %+v, %v, want zero counts", v, err)
	}
}
