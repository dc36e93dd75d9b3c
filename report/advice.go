package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"courier/schemas"
)

// printForeign prints the load of processes that Courier does not know, if it is known and not 0.
func printForeign(out io.Writer, l *schemas.Load) {
	if cpu := l.ForeignCPURatio; cpu.Value > 0 {
		fmt.Fprintf(out, "\tother processes use %.0f %% of the processors\n", 100*cpu.Value)
	}
	if r := l.ForeignIOWaitRatio; r.Value > 0 {
		fmt.Fprintf(out, "\t%.0f %% of them wait for storage of other processes\n",
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
func Advice(out io.Writer, a *schemas.Advice) {
	if a.JobID != "" {
		fmt.Fprintf(out, "job\t%s\n", a.JobID)
	}
	fmt.Fprintf(out, "decision\t%s\nadvice\t%s\n", a.Decision, a.Message)
	if len(a.Nodes) > 0 {
		fmt.Fprintf(out, "nodes\t%s, %s\n", strings.Join(a.Nodes, ", "),
			concurrentText(a.Load.ConcurrentJobs))
		printForeign(out, &a.Load)
	}
	fmt.Fprintln(out, "\nbatch\tcpus\tepochs\ttime\tbound\taccuracy\tprobability\t")
	for i := range a.Alternatives {
		x := &a.Alternatives[i]
		fmt.Fprintf(out, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", schemas.OptionalBatchSize(x.BatchSize),
			schemas.ShortShape(x.Workers, x.CPUs), x.Epochs, schemas.OptionalSeconds(x.PredictedSeconds),
			schemas.OptionalSeconds(x.UpperBoundSeconds), schemas.OptionalNumber(x.PredictedAccuracy, "%.4f"),
			schemas.OptionalProbability(x.Probability), x.Reason)
	}
	printEffects(out, a)
}

// printEffects prints the interference with other jobs, and other configurations to choose from.
func printEffects(out io.Writer, a *schemas.Advice) {
	for i := range a.Effects {
		e := &a.Effects[i]
		fmt.Fprintf(out, "\neffect\t%s: remaining time %s becomes %s", e.JobID,
			schemas.FormatSeconds(e.BeforeSeconds), schemas.FormatSeconds(e.AfterSeconds))
		if e.BreaksSLO {
			fmt.Fprintf(out, ", and the probability of meeting its SLO is %s instead of %s",
				schemas.OptionalProbability(e.AfterProbability), schemas.OptionalProbability(e.BeforeProbability))
		}
	}
	if len(a.Effects) > 0 {
		fmt.Fprintln(out)
	}
	for i, c := range a.OtherChoices() {
		if i == 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "or\t%s\n", c.Text())
	}
}

func clock(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}

// shortClock is clock without the year, for tables.
func shortClock(t *time.Time) string {
	_, text, _ := strings.Cut(clock(t), "-")
	return cmp.Or(text, "-")
}
