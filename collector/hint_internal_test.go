package collector

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestHint(t *testing.T) {
	long := strings.Repeat("z", 1000)
	for _, test := range []struct {
		name, text string
		after      time.Duration
		want       string // "" for no hint
	}{
		{"too early", "loading\n", 19 * time.Second, ""},
		{"after a while", "loading\nstep 7\n", 20 * time.Second, "no epoch is recognised after 20s and 2 lines; the last one is\n  step 7\n"},
		{"after many lines", strings.Repeat("step\n", 200), time.Second, "no epoch is recognised after 1s and 200 lines; the last one is\n  step\n"},
		{"nothing printed", "", time.Minute, "no epoch is recognised after 1m0s: the job has printed nothing\n"},
		{"a long line is shortened", long + "\n", time.Minute, "\n  " + long[:maxQuote] + "…\n"},
		{"BigDL is known before its first epoch ends", strings.Repeat(info+at(1, 64, "3")+"Trained 64.0 records in 1 seconds. Loss is 1.\n", 300), time.Minute, ""},
		{"an epoch was seen", `{"epoch":1}` + "\n", time.Minute, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			out, err := newOutput(FormatAuto, "")
			if err != nil {
				t.Fatal(err)
			}
			j := &job{screen: newScreen(&b, &b, false), output: out, epochs: newEpochs(noon), started: noon}
			j.epochs.add(j.output.write(0, []byte(test.text), noon.Add(time.Second)))
			for range 2 {
				j.hint(noon.Add(test.after))
			}
			if test.want == "" && b.Len() > 0 || !strings.Contains(b.String(), test.want) || strings.Count(b.String(), "no epoch") > 1 {
				t.Errorf("hint = %q, want once %q", b.String(), test.want)
			}
		})
	}
}
