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
		l.Apply(&schemas.Trained{
			Stamp:         stamp("trained/" + digest),
			Target:        "epoch_time",
			Fitted:        schemas.Fitted{ModelDigest: digest},
			SinceSequence: uint64(n),
		})
	}
	promoted := func(digest, by string, revision uint64) {
		e := &schemas.Promoted{
			Stamp:       stamp(fmt.Sprint("promoted/", revision)),
			Target:      "epoch_time",
			ModelDigest: digest,
			DecidedBy:   by,
			Revision:    revision,
		}
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
	if c, found := l.of("epoch_time").contest(); !found || c.rival.ModelDigest != "c" || c.back ||
		c.since == 0 {
		t.Errorf("contest %+v %v, want c as challenger", c, found)
	}
	promoted("c", schemas.DecidedTest, 2)
	if c, found := l.of("epoch_time").contest(); !found || c.rival.ModelDigest != "a" || !c.back {
		t.Errorf("contest %+v %v, want a to come back", c, found)
	}
	trained("d")
	l.Apply(&schemas.Rejected{
		Stamp:       stamp("rejected/d"),
		Target:      "epoch_time",
		ModelDigest: "d",
		Reason:      "worse",
	})
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

// Fits of a year are not remembered for ever, but what is in use and its predecessors are.
func TestLife_ForgetsOldFits(t *testing.T) {
	l := NewLife()
	at := time.Unix(0, 0).UTC()
	for n := range 5000 {
		digest := fmt.Sprint("digest-", n)
		at = at.Add(time.Minute)
		l.Apply(&schemas.Trained{
			Stamp:  schemas.Stamp{EventID: "trained/" + digest, At: at},
			Target: "epoch_time",
			Fitted: schemas.Fitted{ModelDigest: digest},
		})
		if n < 100 {
			l.Apply(&schemas.Promoted{
				Stamp:       schemas.Stamp{EventID: fmt.Sprint("promoted/", n), At: at},
				Target:      "epoch_time",
				ModelDigest: digest,
				Revision:    uint64(n + 1),
			})
		}
		l.of("epoch_time").pruned[digest] = true
	}
	r := l.of("epoch_time")
	most := mostVersions
	if len(r.versions) > most || len(r.since) > most || len(r.pruned) > most ||
		l.seen.len() > mostSeen || len(r.champions) > mostChampions {
		t.Errorf("%d versions, %d sequences, %d pruned, %d events and %d champions are remembered",
			len(r.versions), len(r.since), len(r.pruned), l.seen.len(), len(r.champions))
	}
	for _, digest := range []string{"digest-99", "digest-98", "digest-97", "digest-4999"} {
		if r.versions[digest] == nil {
			t.Errorf("%s is forgotten, want the last champions and the challenger to stay", digest)
		}
	}
}
