package trainer

import (
	"fmt"
	"testing"
	"time"

	"courier/schemas"
)

func TestRegistry(t *testing.T) {
	l, n := NewRegistry(), int64(0)
	stamp := func(id string) schemas.Stamp {
		n++
		return schemas.Stamp{EventID: id, At: time.Unix(n, 0).UTC()}
	}
	trained := func(digest string) {
		l.Apply(&schemas.Trained{
			Stamp:  stamp("trained/" + digest),
			Target: "epoch_time",
			Fitted: schemas.Fitted{ModelDigest: digest},
		})
	}
	promoted := func(digest, by string, revision uint64) {
		e := &schemas.Promoted{
			Stamp:    stamp(fmt.Sprint("promoted/", revision)),
			Target:   "epoch_time",
			Fitted:   schemas.Fitted{ModelDigest: digest},
			Grounds:  schemas.Grounds{DecidedBy: by},
			Revision: revision,
		}
		l.Apply(e)
		l.Apply(e) // a duplicate
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
	trained("b")
	trained("c")
	want := "c trained false; b trained false; a champion true; "
	if got := states(); got != want {
		t.Errorf("after three fits: %s, want %s", got, want)
	}
	promoted("c", schemas.DecidedFit, 2)
	trained("d")
	l.Apply(&schemas.Rejected{
		Stamp:       stamp("rejected/d"),
		Target:      "epoch_time",
		ModelDigest: "d",
		Reason:      "an advisor cannot load it",
	})
	promoted("a", schemas.DecidedRequest, 3)
	want = "d rejected false; c former true; b trained false; a champion true; "
	if got := states(); got != want {
		t.Errorf("after a rollback: %s, want %s", got, want)
	}
	if v := l.target("epoch_time").versions["a"]; !v.ReplacedAt.IsZero() || v.Revision != 3 {
		t.Errorf("version after the rollback = %+v, want revision 3, not replaced", v)
	}
	if former := l.target("epoch_time").former(); former != "c" {
		t.Errorf("the previous champion is %s, want c", former)
	}
	for i := range 2 * maxListed {
		trained(fmt.Sprint("x", i))
	}
	if got := len(l.List("")); got != maxListed+2 {
		t.Errorf("%d regressors listed, want the last %d and two whose files are kept",
			got, maxListed)
	}
}

// Old fits are dropped, except for the last champions.
func TestRegistry_DropsOldFits(t *testing.T) {
	l := NewRegistry()
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
				Stamp:    schemas.Stamp{EventID: fmt.Sprint("promoted/", n), At: at},
				Target:   "epoch_time",
				Fitted:   schemas.Fitted{ModelDigest: digest},
				Revision: uint64(n + 1),
			})
		}
		l.target("epoch_time").pruned[digest] = true
	}
	r := l.target("epoch_time")
	most := maxVersions
	if len(r.versions) > most || len(r.pruned) > most || len(l.seen) > maxSeenEvents ||
		len(r.champions) > maxChampions {
		t.Errorf("%d versions, %d pruned, %d events and %d champions exceed the limits",
			len(r.versions), len(r.pruned), len(l.seen), len(r.champions))
	}
	for _, digest := range []string{"digest-99", "digest-98", "digest-97", "digest-4999"} {
		if r.versions[digest] == nil {
			t.Errorf("%s was dropped, want the last champions and the last fit to remain", digest)
		}
	}
}
