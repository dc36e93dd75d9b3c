package receipt

import (
	"fmt"
	"io"
	"math"
	"strings"

	"courier/schemas"
)

// Line is a line of a receipt.
type Line struct {
	Name string `json:"name"` // job, predicted, result, lost, better, learned or output
	Text string `json:"text"`
}

// Lines returns the receipt as text. Unknown figures are left out.
func (r *JobReceipt) Lines() []Line {
	all := []Line{{"job", r.headline()}}
	if p := r.promiseText(); p != "" {
		all = append(all, Line{"predicted", p})
	}
	all = append(all, Line{"result", r.resultText()})
	if text := r.Result.Phases.Text(); text != "" {
		all = append(all, Line{"inside", text})
	}
	for _, l := range r.Losses {
		if text := l.text(); text != "" {
			all = append(all, Line{"lost", text})
		}
	}
	if b := r.Better; b != nil {
		text := fmt.Sprintf("batch size %d would be advised now", b.BatchSize)
		if b.PredictedSeconds != nil {
			text += ": " + schemas.FormatSeconds(*b.PredictedSeconds)
		}
		if b.PredictedAccuracy != nil {
			text += fmt.Sprintf(", accuracy %.4f", *b.PredictedAccuracy)
		}
		all = append(all, Line{"better", text})
	}
	if r.NotLearned != "" {
		all = append(all, Line{"not learned", r.NotLearned})
	}
	if l := r.Learned; l != nil {
		text := schemas.FormatCount(uint64(max(0, l.RunsBefore)), "run") + " of this configuration before"
		if l.RunsNow >= l.RunsBefore { // otherwise the load is one that the configuration has not run under
			text += fmt.Sprintf(", %d now", l.RunsNow)
		}
		if l.ErrorRatio != nil {
			than := "more"
			if *l.ErrorRatio < 0 {
				than = "less"
			}
			text += fmt.Sprintf("; it took %.1f %% %s than predicted", 100*math.Abs(*l.ErrorRatio), than)
		}
		all = append(all, Line{"learned", text})
	}
	for line := range strings.SplitSeq(r.Output, "\n") {
		if line != "" {
			all = append(all, Line{"output", strings.ReplaceAll(line, "\t", " ")})
		}
	}
	return all
}

func (r *JobReceipt) headline() string {
	s := fmt.Sprintf("%s: %s, %s on %s, %d of %s", r.JobID, r.State, schemas.FormatBatchSize(r.BatchSize),
		schemas.FormatShape(r.Workers, r.CPUs), r.EpochsDone, schemas.FormatCount(uint64(r.Epochs), "epoch"))
	if r.Reason != "" {
		s += ": " + r.Reason
	}
	return s
}

func (r *JobReceipt) promiseText() string {
	p := r.Promise
	if p == nil {
		return ""
	}
	var parts []string
	add := func(format string, values ...any) { parts = append(parts, fmt.Sprintf(format, values...)) }
	add("%s", strings.NewReplacer("_slo", " SLO", "_", " ").Replace(string(p.Decision)))
	if p.PredictedSeconds != nil {
		add("%s", schemas.FormatSeconds(*p.PredictedSeconds))
	}
	if p.UpperBoundSeconds != nil {
		add("at most %s with probability %g",
			schemas.FormatSeconds(*p.UpperBoundSeconds), p.Confidence)
	}
	if p.PredictedAccuracy != nil {
		add("accuracy %.4f", *p.PredictedAccuracy)
	}
	if p.SLOSeconds > 0 && p.Probability != nil {
		add("SLO of %s met%s with probability %s", schemas.FormatSeconds(p.SLOSeconds),
			schemas.AndReached(p.TargetAccuracy), schemas.FormatProbability(*p.Probability))
	}
	return strings.Join(parts, ", ")
}

func (r *JobReceipt) resultText() string {
	var parts []string
	add := func(name string, v *float64) {
		if v != nil {
			parts = append(parts, name+schemas.FormatSeconds(*v))
		}
	}
	add("", r.Result.RunSeconds)
	add("start-up ", r.Result.StartupSeconds)
	add("waited ", r.Result.WaitSeconds)
	if a := r.Result.Accuracy; a != nil {
		text := fmt.Sprintf("accuracy %.4f", *a)
		if v := r.Result.MetricValue; v != nil && *v != *a {
			text += fmt.Sprintf(" (%s %.6g)", r.Result.Metric, *v)
		}
		parts = append(parts, text)
	}
	switch {
	case r.Result.Incomplete:
		parts = append(parts, "incomplete: it does not count for its SLO")
	case r.Result.MetSLO != nil && *r.Result.MetSLO:
		parts = append(parts, "SLO met")
	case r.Result.MetSLO != nil:
		parts = append(parts, "SLO missed")
	}
	if after := r.Result.AfterSeconds; after != nil && schemas.WorkAfter(*after) != "" {
		parts = append(parts, schemas.WorkAfter(*after))
	}
	if len(parts) == 0 {
		return "unknown"
	}
	return strings.Join(parts, ", ")
}

// text returns a loss of at least a hundredth of a second.
func (l *Loss) text() string {
	const least = 0.01
	if l.Seconds < least {
		return ""
	}
	seconds := schemas.FormatSeconds(l.Seconds)
	switch l.Cause {
	case LossNeighbour:
		return seconds + " to job " + l.JobID
	case LossStorage:
		return seconds + " waiting for storage"
	}
	return seconds + " waiting for memory"
}

// WriteText writes the receipt as lines of names and values, separated by tabs for the caller to align.
func (r *JobReceipt) WriteText(w io.Writer) {
	for _, l := range r.Lines() {
		fmt.Fprintf(w, "%s\t%s\n", l.Name, l.Text)
	}
}

// WriteMarkdown writes the receipt as a list.
func (r *JobReceipt) WriteMarkdown(w io.Writer) {
	escape := strings.NewReplacer("_", `\_`, "*", `\*`, "`", "\\`", "<", "&lt;")
	for _, l := range r.Lines() {
		fmt.Fprintf(w, "- **%s**: %s\n", l.Name, escape.Replace(l.Text))
	}
}
