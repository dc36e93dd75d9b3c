package gateway

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

var testFeeds = []feed{{name: "node"}, {name: "job"}, {name: "regressor"}}

func TestCursor_IsReadAsItIsWritten(t *testing.T) {
	for _, c := range []struct {
		text string
		want cursor // nil: an error
	}{
		{"node=34.0,job=12,regressor=0", cursor{{34, 0}, endOf(12), endOf(0)}},
		{
			"node=9223372036854775807.7,job=1,regressor=2",
			cursor{{1<<63 - 1, 7}, endOf(1), endOf(2)},
		},
		{"", nil},
		{"job", nil},
		{"job=", nil},
		{"job=-1", nil},
		{"job=12,", nil},
		{"job=12.", nil},
		{"job=12.x", nil},
		{"job=18446744073709551615", nil},
		{"job=12.4294967295", nil},
	} {
		got, err := parseCursor(c.text, testFeeds)
		if (err != nil) != (c.want == nil) || !cmp.Equal(c.want, got,
			cmp.AllowUnexported(position{})) {
			t.Errorf("parseCursor(%q) = %v, %v, want %v", c.text, got, err, c.want)
		}
		if written := c.want.text(testFeeds); c.want != nil && written != c.text {
			t.Errorf("cursor %q is encoded as %q, want no change", c.text, written)
		}
	}
}

// A client may send an ID with fewer streams, or with streams of another version.
func TestCursor_IgnoresUnknownStreams(t *testing.T) {
	got, err := parseCursor("advice=3,job=12", testFeeds)
	if err != nil {
		t.Fatal(err)
	}
	if got[0] != unknownPosition || got[1] != endOf(12) || got[2] != unknownPosition {
		t.Errorf("cursor = %v, want only the position of job", got)
	}
}

func TestPosition_CountsTheEventsOfAMessage(t *testing.T) {
	p := endOf(6)
	for _, want := range []position{{7, 0}, {7, 1}, {9, 0}} {
		next := p.next(want.sequence, true)
		if next != want || next.compare(p) <= 0 {
			t.Errorf("after %v comes %v, want %v", p, next, want)
		}
		p = next
	}
	if got := p.next(10, false); got != endOf(10) || got.resumeSequence() != 11 ||
		p.resumeSequence() != 9 {
		t.Errorf("next position = %v, to be resumed from %d; want the end of 10, from 11",
			got, got.resumeSequence())
	}
}

func TestMissedBefore_BoundsWhatIsReadAgain(t *testing.T) {
	const max = maxResumed
	for _, c := range []struct {
		have        position
		first, head uint64
		want        uint64
	}{
		{endOf(5), 1, 9, 0},
		{endOf(5), 6, 9, 0},
		{endOf(5), 8, 9, 2},       // 6 and 7 were dropped
		{position{5, 1}, 6, 9, 1}, // the rest of 5 was dropped
		{endOf(5), 10, 9, 4},      // all messages were dropped
		{endOf(5), 1, 5 + max, 0}, // the maximum that is read
		{endOf(5), 1, 6 + max, 1}, // one more than the maximum
		{endOf(0), 1, 1_000_000 + max, 1_000_000},
	} {
		if got := missedBefore(c.have, c.first, endOf(c.head)); got != c.want {
			t.Errorf("from %v of a stream from %d to %d: missed %d, want %d", c.have, c.first,
				c.head, got, c.want)
		}
	}
}
