package trainer

import (
	"fmt"
	"testing"
	"time"

	"courier/schemas"
)

func TestLife(t *testing.T) {
	l, n := NewLife(), int64(0)
	stamp := func(id string) schemas.Stamp {
		n++
		return schemas.Stamp{EventID: id, At: time.Unix(n, 0).UTC()}
	}
	trained := func(digest string) {
		l.Apply(&schemas.Trained{Stamp: stamp("trained/" + digest), Target: "epoch_time", Fitted: schemas.Fitted{ModelDigest: digest}, SinceSequence: uint64(n)})
	}
	promoted := func(digest, by string, revision uint64) {
		e := &schemas.Promoted{Stamp: stamp(fmt.Sprint("promoted/", revision)), Target: "epoch_time", ModelDigest: digest, DecidedBy: by, Revision: revision}
		l.Apply(e)
		l.Apply(e) // a copy
	}
	states := func() string {
		s := ""
		for _, v := range l.List("epoch_time") {
			s += fmt.Sprintf("%s %s %v; ", v.ModelDigest, v.State, v.Kept)
		}
		return s
	}
	trained("a")
	promoted("a", schemas.DecidedFirst, 1)
	if _, found := l.of("epoch_time").contest(); found {
		t.Error("the first champion has a rival")
	}
	trained("b")
	trained("c")
	if got, want := states(), "c challenger true; b untried false; a champion true; "; got != want {
		t.Errorf("after three fits: %s, want %s", got, want)
	}
	if c, found := l.of("epoch_time").contest(); !found || c.rival.ModelDigest != "c" || c.back || c.since == 0 {
		t.Errorf("contest %+v %v, want c as challenger", c, found)
	}
	promoted("c", schemas.DecidedTest, 2)
	if c, found := l.of("epoch_time").contest(); !found || c.rival.ModelDigest != "a" || !c.back {
		t.Errorf("contest %+v %v, want a to come back", c, found)
	}
	trained("d")
	l.Apply(&schemas.Rejected{Stamp: stamp("rejected/d"), Target: "epoch_time", ModelDigest: "d", Reason: "worse"})
	promoted("a", schemas.DecidedRollback, 3)
	if got, want := states(), "d rejected false; c former true; b untried false; a champion true; "; got != want {
		t.Errorf("after a rollback: %s, want %s", got, want)
	}
	if v := l.of("epoch_time").versions["a"]; !v.ReplacedAt.IsZero() || v.Revision != 3 {
		t.Errorf("what came back: %+v", v)
	}
	if _, found := l.of("epoch_time").contest(); found {
		t.Error("what was rolled back stands against its successor for ever")
	}
	for i := range 2 * mostListed {
		trained(fmt.Sprint("x", i))
	}
	if got := len(l.List("")); got != mostListed+2 {
		t.Errorf("%d are listed, want the last %d and two that are kept", got, mostListed)
	}
}
