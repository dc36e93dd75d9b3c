package report

import (
	"strings"
	"testing"
	"time"

	"courier/schemas"
)

func TestJobs_SayWhatIsToBeDone(t *testing.T) {
	probability, met := 0.0001, false
	loss, cpu, saved := 0.012, -90.0, 0.97
	jobs := []schemas.JobStatus{
		{
			JobID: "a", State: schemas.StateRunning, Model: "m", Epochs: 9, SLOSeconds: 60, AtRisk: true,
			Probability: &probability, Proposal: "batch size 64: 5 epochs in 20 s", User: "ada", Nodes: []string{"n1"},
			AccuracyLoss: &loss, ExtraCPUSeconds: &cpu, SavedProbability: &saved,
		},
		{
			JobID: "b", State: schemas.StateFailed, Model: "m", MetSLO: &met, Reason: "exit status 7",
			NotLearned: "no epoch was recognized",
		},
		{JobID: "c", State: schemas.StateSubmitted, DeadlineAt: &time.Time{}},
		{
			JobID: "d", State: schemas.StateRunning, Epochs: 9, EpochsDone: 9, Proposal: "1 CPU",
			AccuracyLoss: new(0.0), ExtraCPUSeconds: new(0.2), Probability: &saved, SavedProbability: &saved,
		},
	}
	for _, c := range []struct {
		name  string
		write func(out *strings.Builder)
		want  []string
	}{
		{
			"jobs", func(out *strings.Builder) { Jobs(out, &schemas.JobList{Jobs: jobs, Next: "b"}) },
			[]string{
				"a\tat risk\tunder 0.001\t", "b\tfailed\tmissed\t",
				"b\tnot learned from: no epoch was recognized\n",
				"more: courier jobs --after b\n",
			},
		},
		{
			"job a", func(out *strings.Builder) { Job(out, &jobs[0], "in 5s") },
			[]string{
				"job\ta, running: 0 of 9 epochs\nmodel\tm\nuser\tada\nnodes\tn1\n" +
					"SLO\t60 s, met with probability under 0.001: at risk\nends\tin 5s\n" +
					"next\tbatch size 64: 5 epochs in 20 s\n" +
					"cost\t0.0120 less accuracy, 90 s less CPU time, " +
					"the SLO is then met with probability 0.970\n",
			},
		},
		{
			"job b", func(out *strings.Builder) { Job(out, &jobs[1], "") },
			[]string{
				"reason\texit status 7\n",
				"not learned\tno epoch was recognized\nnext\tcourier receipt b summarizes it\n",
			},
		},
		{"job c", func(out *strings.Builder) { Job(out, &jobs[2], "") },
			[]string{"next\tcancel it: its deadline is over\n"}},
		{"job d", func(out *strings.Builder) { Job(out, &jobs[3], "in 0 s") },
			[]string{"\nends\tall its epochs are done;",
				"cost\tthe SLO is met with probability 0.970 as without it\n"}},
	} {
		var out strings.Builder
		c.write(&out)
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: got\n%s\nwant a line %q", c.name, &out, want)
			}
		}
	}
}
