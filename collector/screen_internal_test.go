package collector

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

const cleared = "\r\x1b[K"

func TestScreen(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(s *screen)
		want string // of both streams, on one terminal
	}{
		{"the bar is cleared before a line and drawn behind it", func(s *screen) { s.draw("bar"); s.write(0, []byte("line\n")) }, "bar" + cleared + "line\nbar"},
		{"no bar within a line", func(s *screen) { s.draw("bar"); s.write(0, []byte("li")); s.draw("bar2"); s.write(0, []byte("ne\n")) }, "bar" + cleared + "line\nbar2"},
		{"nor within one of the other stream", func(s *screen) { s.write(1, []byte("li")); s.write(0, []byte("x\n")); s.draw("bar") }, "lix\n"},
		{"nor over a bar of the job", func(s *screen) { s.write(0, []byte("\r50%")); s.draw("bar") }, "\r50%"},
		{"the same bar is not drawn again", func(s *screen) { s.draw("bar"); s.draw("bar") }, "bar"},
		{"a message stands alone", func(s *screen) { s.draw("bar"); s.say("hello %d", 1) }, "bar" + cleared + "courier: hello 1\nbar"},
		{"also within a line", func(s *screen) { s.write(0, []byte("li")); s.say("hello") }, "li\ncourier: hello\n"},
		{"a long bar is cut", func(s *screen) { s.draw(strings.Repeat("é", 100)) }, strings.Repeat("é", 29)},
		{"taken away at the end", func(s *screen) { s.draw("bar"); s.close(); s.write(0, []byte("x\n")) }, "bar" + cleared + "x\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			s := newScreen(&b, &b, true)
			s.columns = func() int { return 30 }
			test.do(s)
			if got := b.String(); got != test.want {
				t.Errorf("screen = %q, want %q", got, test.want)
			}
		})
	}
}

func TestScreen_DrawsNoBarWhereThereIsNoTerminal(t *testing.T) {
	var out, err bytes.Buffer
	s := newScreen(&out, &err, true)
	s.draw("bar")
	s.write(0, []byte("a"))
	s.say("hello")
	s.write(0, []byte("b\n"))
	if out.String() != "ab\n" || err.String() != "courier: hello\n" {
		t.Errorf("screen = %q and %q, want the bytes as they came", out.String(), err.String())
	}
}

type brokenPipe struct{ writes int }

func (b *brokenPipe) Write([]byte) (int, error) { b.writes++; return 0, errors.New("broken pipe") }

func TestScreen_GoesOnUnseen(t *testing.T) {
	var out brokenPipe
	s := newScreen(&out, &bytes.Buffer{}, false)
	s.write(0, []byte("a\n"))
	s.write(0, []byte("b\n"))
	if out.writes != 1 {
		t.Errorf("%d writes, want 1: nobody reads", out.writes)
	}
}

func TestProgress_Line(t *testing.T) {
	advice := func(seconds float64) *schemas.Advice {
		return &schemas.Advice{Chosen: &schemas.Alternative{PredictedSeconds: &seconds}}
	}
	for _, test := range []struct {
		name   string
		p      progress
		advice *schemas.Advice
		after  time.Duration
		want   string
	}{
		{"within its SLO", progress{epochs: 10, done: 4, slo: time.Minute}, advice(30), 12 * time.Second, "[########............] 4/10 epochs, 12s, finish predicted in 18s, at 30s of 1m0s: SLO met"},
		{"beyond it", progress{epochs: 10, done: 4, slo: 20 * time.Second}, advice(30), 12 * time.Second, "[########............] 4/10 epochs, 12s, finish predicted in 18s, at 30s of 20s: SLO missed"},
		{"without an SLO", progress{epochs: 10, done: 10}, advice(30), 12 * time.Second, "[####################] 10/10 epochs, 12s, finish predicted in 18s, at 30s"},
		{"nothing predicted", progress{epochs: 10, slo: time.Minute}, nil, 1500 * time.Millisecond, "[....................] 0/10 epochs, 1.5s of 1m0s, finish not predicted yet"},
		{"nothing known", progress{}, nil, 0, "[....................] 0/0 epochs, 0s, finish not predicted yet"},
		{"later than predicted", progress{epochs: 10, done: 9, slo: time.Minute}, advice(30), 40 * time.Second, "[##################..] 9/10 epochs, 40s, finish predicted in 0s, at 40s of 1m0s: SLO met"},
		{"more epochs than asked for", progress{epochs: 2, done: 3}, nil, 0, "[####################] 3/2 epochs, 0s, finish not predicted yet"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.p.submitted = noon
			test.p.advise(test.advice, noon)
			if got := test.p.line(noon.Add(test.after)); got != test.want {
				t.Errorf("line() = %q, want %q", got, test.want)
			}
		})
	}
}

func TestAdviceText(t *testing.T) {
	a := &schemas.Advice{Decision: schemas.Exploring, Message: "nothing is known\nof m", Chosen: &schemas.Alternative{BatchSize: 64, CPUs: 2, Epochs: 10},
		Alternatives: []schemas.Alternative{{BatchSize: 64, CPUs: 2, Epochs: 10, Reason: "run it first"}, {BatchSize: 512, CPUs: 2, Epochs: 10,
			PredictedSeconds: ptr(75.4), UpperBoundSeconds: ptr(90.0), PredictedAccuracy: ptr(0.9712), Probability: ptr(0.5), Reason: "late\x1b[2J"}}}
	a.JobID = "j"
	want := `courier: job j: exploring: batch size 64, CPUs 2, epochs 10
courier: nothing is known of m
   batch size  CPUs  time   at most  accuracy  SLO chance  
 * 64          2     -      -        -         -           run it first
   512         2     1m15s  1m30s    0.971     0.500       late [2J
`
	if diff := cmp.Diff(want, adviceText(a)); diff != "" {
		t.Errorf("adviceText() (-want +got):\n%s", diff)
	}
}
