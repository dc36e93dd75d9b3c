package simulate

import (
	"testing"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// A miss counts as warned if a fifth of the SLO was left at its first warning, and as finally
// warned if no all-clear followed.
func TestWatched(t *testing.T) {
	warned := func(met bool, warnings ...Warning) JobOutcome {
		return JobOutcome{
			Decision:   schemas.MeetsSLO,
			Watched:    true,
			MetSLO:     met,
			SLOSeconds: 100,
			Warnings:   warnings,
		}
	}
	at := func(seconds float64) Warning { return Warning{Seconds: seconds} }
	clear := func(seconds float64) Warning { return Warning{Seconds: seconds, Cleared: true} }
	refused := warned(false, at(1))
	refused.Decision = schemas.BestEffort
	got := watched([]JobOutcome{
		warned(false, at(80)),                    // exactly a fifth is left
		warned(false, at(81)),                    // too late
		warned(false),                            // never
		warned(false, at(10), clear(20), at(95)), // early, but cleared
		warned(false, at(10), clear(20), at(50)), // early, cleared, and warned again in time
		warned(false, at(130)),                   // after the deadline
		warned(true, at(30), clear(40)),          // a false warning
		warned(true), warned(true), warned(true), //
		refused, {Decision: schemas.MeetsSLO}, // no promise; not watched
		{Decision: schemas.Exploring, Watched: true}, // no promise either
	})
	number := func(v float64) *float64 { return &v }
	three := 3
	low, high := schemas.Wilson(3, 6)
	want := Watched{
		Warned:              &three,
		WarnedRatio:         number(0.5),
		WarnedLow:           &low,
		WarnedHigh:          &high,
		StandingWarnedRatio: number(2.0 / 6),
		MedianAheadRatio:    number(0.195),
		FalseWarningRatio:   number(0.1),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("watched: %s", diff)
	}
	if got := watched([]JobOutcome{{Decision: schemas.MeetsSLO}}); got != (Watched{}) {
		t.Errorf("figures without a Watcher: %+v, want none", got)
	}
}
