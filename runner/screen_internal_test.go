package runner

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
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
		want string // of both streams on one terminal
	}{
		{
			"the bar is cleared before a line and drawn after it",
			func(s *screen) { s.draw("bar"); s.write(0, []byte("line\n")) },
			"bar" + cleared + "line\nbar",
		},
		{
			"no bar within a line",
			func(s *screen) {
				s.draw("bar")
				s.write(0, []byte("li"))
				s.draw("bar2")
				s.write(0, []byte("ne\n"))
			},
			"bar" + cleared + "line\nbar2",
		},
		{
			"no bar within a line of the other stream",
			func(s *screen) { s.write(1, []byte("li")); s.write(0, []byte("x\n")); s.draw("bar") },
			"lix\n",
		},
		{
			"no bar over the job's own bar",
			func(s *screen) { s.write(0, []byte("\r50%")); s.draw("bar") },
			"\r50%",
		},
		{"the same bar is not drawn again", func(s *screen) { s.draw("bar"); s.draw("bar") }, "bar"},
		{
			"a message on its own line",
			func(s *screen) { s.draw("bar"); s.message("hello %d", 1) },
			"bar" + cleared + "courier: hello 1\nbar",
		},
		{
			"a message within a line",
			func(s *screen) { s.write(0, []byte("li")); s.message("hello") },
			"li\ncourier: hello\n",
		},
		{
			"a long bar is truncated",
			func(s *screen) { s.draw(strings.Repeat("é", 100)) },
			strings.Repeat("é", 29),
		},
		{
			"removed at the end",
			func(s *screen) { s.draw("bar"); s.draw(""); s.write(0, []byte("x\n")) },
			"bar" + cleared + "x\n",
		},
		{
			"removed before a message that waits with it",
			func(s *screen) {
				s.draw("bar")
				s.later = make(chan string, 1)
				s.draw("")
				s.message("hello")
				s.printQueued()
			},
			"bar" + cleared + "courier: hello\n",
		},
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

func TestScreen_HasNoBarWithoutATerminal(t *testing.T) {
	var out, err bytes.Buffer
	s := newScreen(&out, &err, true)
	s.draw("bar")
	s.write(0, []byte("a"))
	s.message("hello")
	s.write(0, []byte("b\n"))
	if out.String() != "ab\n" || err.String() != "courier: hello\n" {
		t.Errorf("screen = %q and %q, want the unchanged bytes", out.String(), err.String())
	}
}

// A message does not land in a line of the job that is written to the same file.
func TestScreen_KeepsLinesApartInOneFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	s := newScreen(f, f, false)
	s.write(0, []byte("a"))
	s.message("hello")
	text, err := os.ReadFile(f.Name())
	if err != nil || string(text) != "a\ncourier: hello\n" {
		t.Errorf("file = %q, %v", text, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

type brokenPipe struct{ writes int }

func (b *brokenPipe) Write([]byte) (int, error) { b.writes++; return 0, errors.New("broken pipe") }

func TestScreen_IgnoresABrokenStream(t *testing.T) {
	var out brokenPipe
	s := newScreen(&out, &bytes.Buffer{}, false)
	s.write(0, []byte("a\n"))
	s.write(0, []byte("b\n"))
	if out.writes != 1 {
		t.Errorf("%d writes, want 1, because the stream is broken", out.writes)
	}
}

func TestProgressLine_Text(t *testing.T) {
	advice := func(seconds float64) *schemas.Advice {
		return &schemas.Advice{Chosen: &schemas.Alternative{PredictedSeconds: &seconds}}
	}
	for _, test := range []struct {
		name   string
		p      progressLine
		advice *schemas.Advice
		after  time.Duration
		want   string
	}{
		{
			"within its SLO", progressLine{epochs: 10, done: 4, slo: time.Minute}, advice(30),
			12 * time.Second,
			"[########............] 4/10 epochs, 12 s, finish predicted in 18 s, at 30 s of 60 s: SLO met",
		},
		{
			"missing its SLO", progressLine{epochs: 10, done: 4, slo: 20 * time.Second}, advice(30),
			12 * time.Second,
			"[########............] 4/10 epochs, 12 s, finish predicted in 18 s, at 30 s of 20 s: SLO missed",
		},
		{
			"without an SLO", progressLine{epochs: 10, done: 10}, advice(30), 12 * time.Second,
			"[####################] 10/10 epochs, 12 s, finish predicted in 18 s, at 30 s",
		},
		{
			"no prediction", progressLine{epochs: 10, slo: time.Minute}, nil,
			1500 * time.Millisecond,
			"[....................] 0/10 epochs, 1.5 s of 60 s, finish not predicted yet",
		},
		{
			"progress within the first epoch", progressLine{
				epochs: 10, slo: time.Minute,
				within: schemas.EpochProgress{RunningEpoch: 1, EpochRatio: 0.5, EpochSeconds: 4},
			}, nil, 2 * time.Second,
			"[#...................] 0/10 epochs, 2 s, finish predicted in 38 s, at 40 s of 60 s: SLO met",
		},
		{
			"no epochs and no prediction", progressLine{}, nil, 0,
			"[....................] 0/0 epochs, 0 s, finish not predicted yet",
		},
		{
			"later than predicted", progressLine{epochs: 10, done: 9, slo: time.Minute}, advice(30),
			40 * time.Second,
			"[##################..] 9/10 epochs, 40 s, finish predicted in 0 s, at 40 s of 60 s: SLO met",
		},
		{
			"more epochs than requested", progressLine{epochs: 2, done: 3}, nil, 0,
			"[####################] 3/2 epochs, 0 s, finish not predicted yet",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.p.submitted = noon
			test.p.predict(test.advice, noon)
			if got := test.p.text(noon.Add(test.after)); got != test.want {
				t.Errorf("text() = %q, want %q", got, test.want)
			}
		})
	}
}

func TestAdviceText(t *testing.T) {
	a := &schemas.Advice{
		Decision: schemas.Exploring,
		Message:  "nothing is known\nof m",
		Chosen:   &schemas.Alternative{BatchSize: 64, CPUs: 2, Epochs: 10},
		Alternatives: []schemas.Alternative{
			{BatchSize: 64, CPUs: 2, Epochs: 10, Reason: "run it first"},
			{BatchSize: 512, CPUs: 2, Epochs: 10,
				PredictedSeconds: ptr(125.4), UpperBoundSeconds: ptr(23_300.0), PredictedAccuracy: ptr(0.9712),
				Probability: ptr(0.5), Reason: "late\x1b[2J"},
		},
	}
	a.JobID = "j"
	want := `courier: job j: exploring: batch size 64, 2 CPUs, 10 epochs
courier: nothing is known of m
   batch size  CPUs  time   upper bound  accuracy  SLO probability  
 * 64          2     -      -            -         -                run it first
   512         2     2m 5s  6h 28m       0.971     0.500            late [2J
`
	if diff := cmp.Diff(want, adviceText(a)); diff != "" {
		t.Errorf("adviceText() (-want +got):\n%s", diff)
	}
}

// pausedWriter is a terminal that is paused until it is opened.
type pausedWriter struct {
	opened  chan struct{}
	writing chan struct{} // has a value when a write has begun
	text    bytes.Buffer
}

func (w *pausedWriter) Write(p []byte) (int, error) {
	select {
	case w.writing <- struct{}{}:
	default:
	}
	<-w.opened
	return w.text.Write(p)
}

// A paused terminal stops the output of the job, but neither messages nor the progress bar wait for it.
func TestScreen_DoesNotWaitForAPausedTerminal(t *testing.T) {
	out := &pausedWriter{opened: make(chan struct{}), writing: make(chan struct{}, 1)}
	s := newScreen(out, out, false)
	s.detach()
	written := make(chan struct{})
	go func() {
		s.write(0, []byte("line\n"))
		close(written)
	}()
	<-out.writing // by the job's output, which holds the screen
	for i := range maxQueuedTexts + 2 {
		s.message("message %d", i)
	}
	s.draw("bar")
	close(out.opened)
	<-written
	s.finish()
	s.message("after it")
	text := out.text.String()
	want := []string{"line\ncourier: message 0\ncourier: message 1\n", "courier: 2 messages were dropped\n"}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("the terminal lacks %q", w)
		}
	}
	if !strings.HasSuffix(text, "courier: after it\n") {
		t.Errorf("the terminal ends with %q, want the last message", text[max(0, len(text)-60):])
	}
}
