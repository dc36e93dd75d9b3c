package report

import (
	"testing"

	"courier/bus"
)

func TestLetterReplay_Text(t *testing.T) {
	for _, c := range []struct {
		fate bus.Fate
		want string
	}{
		{bus.FateReplayed, "4  NODE 9 node.a.sample: replayed as NODE 15"},
		{
			bus.FateAlreadyStored,
			"4  NODE 9 node.a.sample: exists already as NODE 15; marked as replayed",
		},
		{bus.FateAlreadyReplayed, "4  NODE 9 node.a.sample: was replayed before as NODE 15"},
		{bus.FateReplayable, "4  NODE 9 node.a.sample: can be replayed as event a/boot/1"},
		{bus.FateRefused, "4  NODE 9 node.a.sample: refused: why"},
		{FateOpen, "4  NODE 9 node.a.sample: not completed, replay it again: why"},
	} {
		r := LetterReplay{4, "NODE", 9, "node.a.sample", c.fate, 15, "a/boot/1", "why"}
		if got := r.Text(); got != c.want {
			t.Errorf("%s: %q, want %q", c.fate, got, c.want)
		}
	}
}
