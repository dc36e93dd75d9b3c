package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"courier/schemas"
)

// Job describes a job and the next action, a line for each fact. ends is the text of its predicted end;
// empty: unknown.
func Job(out io.Writer, j *schemas.JobStatus, ends string) {
	if IsTrained(j) {
		ends = "all its epochs are done; what its process still does is not part of the SLO"
	}
	for _, l := range []struct{ name, text string }{
		{"job", headline(j)},
		{"reason", j.Reason},
		{"model", trainedName(j.Model, j.Dataset)},
		{"user", j.User},
		{"nodes", strings.Join(j.Nodes, ", ")},
		{"SLO", sloText(j)},
		{"ends", ends},
		{"accuracy", known(j.Accuracy)},
		{"bottleneck", bottlenecks[j.Bottleneck]},
		{"inside", j.Phases.Text()},
		{"not learned", j.NotLearned},
		{"next", nextText(j)},
		{"cost", CostText(j)},
	} {
		if l.text == "" {
			continue
		}
		fmt.Fprintf(out, "%s\t%s\n", l.name, l.text)
	}
}

// IsTrained reports whether a job still runs after its last epoch.
func IsTrained(j *schemas.JobStatus) bool {
	return j.State == schemas.StateRunning && j.Epochs > 0 && j.EpochsDone >= j.Epochs
}

var bottlenecks = map[schemas.Bottleneck]string{
	schemas.BottleneckMemory:  "it waits for memory",
	schemas.BottleneckInput:   "it waits for its input",
	schemas.BottleneckCPU:     "it uses all of its CPUs",
	schemas.BottleneckThreads: "it has more threads than available CPUs",
	schemas.BottleneckSurplus: "it would be as fast with one CPU less",
}

func headline(j *schemas.JobStatus) string {
	text := fmt.Sprintf("%s, %s: %d of %s", j.JobID, j.State, j.EpochsDone,
		schemas.FormatCount(uint64(j.Epochs), "epoch"))
	if j.CPUs > 0 {
		text += fmt.Sprintf(", %s on %s", schemas.FormatBatchSize(j.BatchSize), schemas.FormatShape(j.Workers, j.CPUs))
		if j.Loaders > 0 {
			text += ", " + schemas.FormatCount(uint64(j.Loaders), "loader")
		}
	}
	return text
}

func known(accuracy *float64) string {
	if accuracy == nil {
		return ""
	}
	return schemas.OptionalNumber(accuracy, "%.4f")
}

// sloText describes the SLO of a job, and whether or with which probability it is met.
func sloText(j *schemas.JobStatus) string {
	if j.SLOSeconds == 0 {
		return "none"
	}
	text := schemas.FormatSeconds(j.SLOSeconds)
	if j.DeadlineAt != nil {
		text += " until " + clock(j.DeadlineAt)
	}
	switch v, reached := verdict(j), schemas.AndReached(j.TargetAccuracy); {
	case j.MetSLO != nil || j.Incomplete:
		text += ": " + v
	case j.AtRisk:
		text += ", met" + reached + " with probability " + schemas.OptionalProbability(j.Probability) + ": at risk"
	case v != "-":
		text += ", met" + reached + " with probability " + v
	}
	return text
}

// nextText returns what to do about a job.
func nextText(j *schemas.JobStatus) string {
	switch {
	case j.Proposal != "":
		return j.Proposal
	case j.State == schemas.StateSubmitted && j.DeadlineAt != nil && j.DeadlineAt.Before(time.Now()):
		return "cancel it: its deadline is over"
	case j.State == schemas.StateSubmitted:
		return "start it: courier run --id " + j.JobID + " with the flags of its request"
	case j.State == schemas.StateQueued:
		text := "wait: it starts when the SLOs of other jobs allow it"
		if j.QueuePosition > 0 {
			text += fmt.Sprintf("; its place in the queue is %d", j.QueuePosition)
		}
		return text
	case j.State == schemas.StateRunning && j.AtRisk:
		return "nothing that Courier knows saves its SLO: it continues unchanged"
	case j.State == schemas.StateRunning:
		return "nothing: it continues unchanged"
	case j.State == schemas.StateRefused:
		return "submit it with a longer SLO, or when other jobs have ended"
	}
	return "courier receipt " + j.JobID + " summarizes it"
}

// Smaller changes are no costs or gains, here and on the page.
const (
	leastLoss       = 0.0005
	leastCPUSeconds = 1
)

// CostText describes what a proposed change costs and gains; empty if nothing is known.
func CostText(j *schemas.JobStatus) string {
	var parts []string
	add := func(format string, values ...any) { parts = append(parts, fmt.Sprintf(format, values...)) }
	if loss := j.AccuracyLoss; loss != nil && *loss >= leastLoss {
		add("%.4f less accuracy", *loss)
	} else if loss != nil && *loss <= -leastLoss {
		add("%.4f more accuracy", -*loss)
	}
	if cpu := j.ExtraCPUSeconds; cpu != nil && *cpu >= leastCPUSeconds {
		add("%s more CPU time", schemas.FormatSeconds(*cpu))
	} else if cpu != nil && *cpu <= -leastCPUSeconds {
		add("%s less CPU time", schemas.FormatSeconds(-*cpu))
	}
	saved := schemas.OptionalProbability(j.SavedProbability)
	switch {
	case j.SavedProbability == nil:
	case saved == schemas.OptionalProbability(j.Probability):
		add("the SLO is met with probability %s as without it", saved)
	default:
		add("the SLO is then met with probability %s", saved)
	}
	return strings.Join(parts, ", ")
}

// verdict describes whether a job met its SLO, or with which probability it will.
func verdict(j *schemas.JobStatus) string {
	switch {
	case j.Incomplete:
		return "incomplete"
	case j.MetSLO != nil:
		return map[bool]string{true: "met", false: "missed"}[*j.MetSLO]
	case j.Probability == nil || j.EndedAt != nil:
		return "-"
	}
	return schemas.FormatProbability(*j.Probability)
}

// Jobs writes a table of jobs. Its first columns are the ones that matter most on a narrow terminal.
func Jobs(out io.Writer, l *schemas.JobList) {
	fmt.Fprintln(out, "job\tstate\tSLO\tpredicted end\tdeadline\tepochs\tmodel\tbatch\tcpus\taccuracy")
	notes := ""
	for i := range l.Jobs {
		j := &l.Jobs[i]
		state := string(j.State)
		if j.AtRisk {
			state = "at risk"
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%d/%d\t%s\t%s\t%s\t%s\n", j.JobID, state, verdict(j),
			shortClock(j.PredictedEndAt), shortClock(j.DeadlineAt), j.EpochsDone, j.Epochs,
			trainedName(j.Model, j.Dataset), schemas.OptionalBatchSize(j.BatchSize),
			schemas.ShortShape(j.Workers, j.CPUs), schemas.OptionalNumber(j.Accuracy, "%.4f"))
		if j.Proposal != "" {
			notes += j.JobID + "\t" + j.Proposal + "\n"
		}
		if j.NotLearned != "" {
			notes += j.JobID + "\tnot learned from: " + j.NotLearned + "\n"
		}
	}
	if notes != "" {
		fmt.Fprint(out, "\n"+notes)
	}
	if l.Next != "" {
		fmt.Fprintf(out, "more: courier jobs --after %s\n", l.Next)
	}
}

// trainedName returns the name of a model with its dataset, if it has one.
func trainedName(model, dataset string) string {
	if dataset == "" {
		return model
	}
	return schemas.ModelLevel(model, dataset)
}
