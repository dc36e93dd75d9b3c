package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"courier/schemas"
)

// OptionalSeconds formats a duration, or - for nil.
func OptionalSeconds(v *float64) string {
	if v == nil {
		return "-"
	}
	return schemas.FormatSeconds(*v)
}

// chance formats a probability, or - for nil.
func chance(v *float64) string {
	if v == nil {
		return "-"
	}
	return schemas.FormatProbability(*v)
}

// Optional formats a number, or - for nil.
func Optional(v *float64, format string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}

// printForeign prints the load of processes that Courier does not know, if it is known and not 0.
func printForeign(out io.Writer, l *schemas.Load) {
	if cpu := l.ForeignCPURatio; cpu.Value > 0 {
		fmt.Fprintf(out, "          other processes use %.0f %% of the processors\n", 100*cpu.Value)
	}
	if r := l.ForeignIOWaitRatio; r.Value > 0 {
		fmt.Fprintf(out, "          %.0f %% of them wait for storage of other processes\n",
			100*r.Value)
	}
}

// concurrentText describes how many jobs run at the same time, including this one.
func concurrentText(jobs float64) string {
	if jobs <= 1 {
		return "no other job"
	}
	return fmt.Sprintf("%.3g concurrent jobs, including this one", jobs)
}

// Advice writes an advice with its alternatives.
func Advice(out io.Writer, a *schemas.Advice) error {
	if a.JobID != "" {
		fmt.Fprintf(out, "job       %s\n", a.JobID)
	}
	fmt.Fprintf(out, "decision  %s\nadvice    %s\n", a.Decision, a.Message)
	if len(a.Nodes) > 0 {
		fmt.Fprintf(out, "nodes     %s, %s\n", strings.Join(a.Nodes, ", "),
			concurrentText(a.Load.ConcurrentJobs))
		printForeign(out, &a.Load)
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nbatch\tcpus\tepochs\ttime\tbound\taccuracy\tprobability\t")
	for i := range a.Alternatives {
		x := &a.Alternatives[i]
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\n", schemas.OptionalBatchSize(x.BatchSize), x.CPUs, x.Epochs,
			OptionalSeconds(x.PredictedSeconds), OptionalSeconds(x.UpperBoundSeconds),
			Optional(x.PredictedAccuracy, "%.4f"), chance(x.Probability), x.Reason)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printEffects(out, a)
	return nil
}

// printEffects prints the interference with other jobs, and other configurations to choose from.
func printEffects(out io.Writer, a *schemas.Advice) {
	for i := range a.Effects {
		e := &a.Effects[i]
		fmt.Fprintf(out, "\neffect    %s: remaining time %s becomes %s", e.JobID,
			schemas.FormatSeconds(e.BeforeSeconds), schemas.FormatSeconds(e.AfterSeconds))
		if e.BreaksSLO {
			fmt.Fprintf(out, ", and the probability of meeting its SLO is %s instead of %s",
				chance(e.AfterProbability), chance(e.BeforeProbability))
		}
	}
	if len(a.Effects) > 0 {
		fmt.Fprintln(out)
	}
	for i, c := range a.OtherChoices() {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "or        %s\n", c.Text())
	}
}

// Job writes the row of a job, and a line for each further fact about it.
func Job(out io.Writer, s *schemas.JobStatus) error {
	if err := jobTable(out, []schemas.JobStatus{*s}); err != nil {
		return err
	}
	slo := ""
	if s.SLOSeconds > 0 {
		slo = schemas.FormatSeconds(s.SLOSeconds)
	}
	for _, l := range []struct{ name, text string }{
		{"user", s.User}, {"nodes", strings.Join(s.Nodes, ", ")}, {"SLO", slo}, {"reason", s.Reason},
		{"proposal", s.Proposal}, {"bottleneck", string(s.Bottleneck)}, {"not learned", s.NotLearned},
	} {
		if l.text == "" {
			continue
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", l.name, l.text); err != nil {
			return err
		}
	}
	return nil
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
	case j.AtRisk:
		return "at risk: " + schemas.FormatProbability(*j.Probability)
	}
	return schemas.FormatProbability(*j.Probability)
}

// Jobs writes a table of jobs.
func Jobs(out io.Writer, l *schemas.JobList) error {
	if err := jobTable(out, l.Jobs); err != nil {
		return err
	}
	for i := range l.Jobs {
		j := &l.Jobs[i]
		if j.Proposal != "" {
			fmt.Fprintf(out, "%s: %s\n", j.JobID, j.Proposal)
		}
		if j.NotLearned != "" {
			fmt.Fprintf(out, "%s is not learned from: %s\n", j.JobID, j.NotLearned)
		}
	}
	if l.Next != "" {
		fmt.Fprintf(out, "more: courier jobs --after %s\n", l.Next)
	}
	return nil
}

func jobTable(out io.Writer, jobs []schemas.JobStatus) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "job\tstate\tmodel\tbatch\tcpus\tepochs\taccuracy\tdeadline\tpredicted end\tSLO")
	for i := range jobs {
		j := &jobs[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d/%d\t%s\t%s\t%s\t%s\n", j.JobID, j.State,
			trainedName(j.Model, j.Dataset), schemas.OptionalBatchSize(j.BatchSize), j.CPUs, j.EpochsDone, j.Epochs,
			Optional(j.Accuracy, "%.4f"), clock(j.DeadlineAt), clock(j.PredictedEndAt), verdict(j))
	}
	return t.Flush()
}

// trainedName returns the name of a model with its dataset, if it has one.
func trainedName(model, dataset string) string {
	if dataset == "" {
		return model
	}
	return schemas.ModelLevel(model, dataset)
}

func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
