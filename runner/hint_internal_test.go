package runner

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"courier/runner/output"
)

func TestHint(t *testing.T) {
	long := strings.Repeat("z", 1000)
	for _, test := range []struct {
		name, text string
		after      time.Duration
		want       string // "" for no hint
	}{
		{"too early", "loading\n", 59 * time.Second, ""},
		{
			"after some time", "loading\nstep 7\n", time.Minute,
			"no epoch recognized after 60 s and 2 lines; the last line is\n  step 7\n",
		},
		{
			"after many lines", strings.Repeat("step\n", 200), time.Second,
			"no epoch recognized after 1 s and 200 lines; the last line is\n  step\n",
		},
		{
			"a line that counts",
			"pass 1 done: acc=0.5\npass 2 done: acc=0.6\n",
			time.Minute,
			`use --epoch-pattern 'pass\D*(?P<epoch>\d+).*?acc[^-+\d]*(?P<accuracy>[-+\d.eE]+)'`,
		},
		{"one line", "step 7\n", time.Minute, "after 60 s and 1 line; the last line is\n  step 7\n"},
		{"no output", "", time.Minute, "no epoch recognized after 60 s: the job has printed nothing\n"},
		{"a long line is truncated", long + "\n", time.Minute, "\n  " + long[:160] + "…\n"},
		{
			"BigDL before the end of the first epoch",
			strings.Repeat(
				"[Epoch 1 64/600][Iteration 9][Wall Clock 3s] Trained 64.0 records in 1 seconds. Loss is 1.\n",
				300,
			),
			time.Minute,
			"",
		},
		{"after an epoch", `{"epoch":1}` + "\n", time.Minute, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var b bytes.Buffer
			out, err := output.New("")
			if err != nil {
				t.Fatal(err)
			}
			j := &job{
				screen:    newScreen(&b, &b, false),
				output:    out,
				epochs:    newEpochState(noon),
				startedAt: noon,
			}
			j.epochs.add(j.output.Write(0, []byte(test.text), noon.Add(time.Second)))
			for range 2 {
				j.hint(noon.Add(test.after))
			}
			if test.want == "" && b.Len() > 0 || !strings.Contains(b.String(), test.want) ||
				strings.Count(b.String(), "no epoch") > 1 {
				t.Errorf("hint = %q, want once %q", b.String(), test.want)
			}
		})
	}
}

// Once a client has connected to the side channel, epochs in the output do not count.
func TestReportsElsewhere_IgnoresTheOutputBesideASideChannel(t *testing.T) {
	for _, isConnected := range []bool{false, true} {
		j := &job{epochs: newEpochState(noon)}
		if isConnected {
			j.readChannel(outputChunk{at: noon})
		}
		if isIgnored := j.reportsElsewhere(); isIgnored != isConnected {
			t.Errorf("client connected %t: output ignored %t, want %t", isConnected, isIgnored, isConnected)
		}
	}
}
