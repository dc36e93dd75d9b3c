package replay_test

import (
	"strings"
	"testing"

	"courier/replay"
)

func TestParse_NamesTheLine(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"artifact":"ab","data":"AA=="}` + "\n{", "line 2: unexpected EOF"},
		{
			`{"subject":"job.a.started"}`,
			"line 1: want an event with subject, stream, sequence and stored_at",
		},
		{
			`{"subject":"job.a.started","stream":"JOBS","sequence":1,"stored_at":"2026-01-01T00:00:00Z"}`,
			"line 1: want an event with subject, stream, sequence and stored_at",
		},
		{
			`{"subject":"job.a.b","stream":"JOB","sequence":1,"stored_at":"2026-01-01T00:00:00Z","event":{}}`,
			`line 1: no event has the subject "job.a.b"`,
		},
	} {
		_, err := replay.Parse(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Parse(%s) = %v, want %q", c.in, err, c.want)
		}
	}
}

func TestVerify_OfAnEmptyLog(t *testing.T) {
	l, err := replay.Parse(strings.NewReader(""))
	if err != nil || len(l.Records) != 0 {
		t.Fatalf("Parse of an empty log = %v, %v, want no records", l, err)
	}
	v, err := l.Verify(t.Context())
	if err != nil || v.Total() != (replay.VerifyCounts{}) {
		t.Errorf("Verify of an empty log = %+v, %v, want zero counts", v, err)
	}
}
