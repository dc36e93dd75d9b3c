package report

import (
	"fmt"
	"io"
	"strings"

	"courier/schemas"
)

// Explain writes an advice, and the evidence for the figures of the chosen alternative. If all is set,
// the other alternatives follow.
func Explain(out io.Writer, a *schemas.Advice, all bool) {
	Advice(out, a)
	var others []*schemas.Alternative
	for i := range a.Alternatives {
		if alt := &a.Alternatives[i]; a.IsChosen(alt) {
			explainAlternative(out, a, alt)
		} else {
			others = append(others, alt)
		}
	}
	if !all && len(others) > 0 {
		fmt.Fprintf(out, "\n--all explains %s more\n",
			schemas.FormatCount(uint64(len(others)), "alternative"))
		return
	}
	for _, alt := range others {
		explainAlternative(out, a, alt)
	}
}

func explainAlternative(out io.Writer, a *schemas.Advice, alt *schemas.Alternative) {
	fmt.Fprintf(out, "\n%s on %s, %s\n", schemas.FormatBatchSize(alt.BatchSize),
		schemas.FormatShape(alt.Workers, alt.CPUs), schemas.FormatCount(uint64(alt.Epochs), "epoch"))
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(out, "  %s\t%s\n", name, text)
		}
	}
	e := alt.Evidence
	if e == nil {
		line("time", "the regressor has no evidence")
		return
	}
	if e.Time != nil {
		line("time", timeText(alt, e.Time, a))
		line("correction", correctionText(e.Time))
	}
	line("start-up", startupText(alt, e))
	line("accuracy", accuracyText(alt, e.Accuracy, a))
	line("target", targetText(alt))
}

func timeText(alt *schemas.Alternative, e *schemas.TimeEvidence, a *schemas.Advice) string {
	s := "unknown: "
	if alt.PredictedSeconds != nil {
		s = schemas.FormatSeconds(*alt.PredictedSeconds)
		if alt.UpperBoundSeconds != nil {
			s += fmt.Sprintf(", at most %s with probability %.4g",
				schemas.FormatSeconds(*alt.UpperBoundSeconds), a.Confidence)
		}
		s += "; " + e.Support + ": "
	}
	switch {
	case e.ModelRuns == 0:
		return s + "no run of " + a.Model
	case e.NodeTypeRuns == 0:
		return s + fmt.Sprintf("no run of %s on %s, %d on other node types", a.Model, placeText(e),
			e.ModelRuns)
	}
	s += fmt.Sprintf("%s of this configuration, %d of %s on %s",
		schemas.FormatCount(uint64(e.ConfigurationRuns), "run"), e.NodeTypeRuns, a.Model,
		placeText(e))
	if others := e.ModelRuns - e.NodeTypeRuns; others > 0 {
		s += fmt.Sprintf(", %d on other node types", others)
	}
	if alt.Extrapolated {
		s += "; " + alt.Reason
	}
	return s
}

func placeText(e *schemas.TimeEvidence) string {
	if e.NodeType == "" {
		return "nodes of unknown hardware"
	}
	return "this node type (" + e.NodeType + ")"
}

// scopeTexts describe to which jobs a correction applies.
var scopeTexts = map[string]string{
	"all":                "all jobs",
	"node_type":          "this type of node",
	"model":              "this model",
	"model_on_node_type": "this model on this type of node",
	"batch_size_from":    "this model with batch sizes of at least %d",
	"batch_size_to":      "this model with batch sizes of at most %d",
}

// correctionText describes the active corrections of drift; empty if there are none.
func correctionText(e *schemas.TimeEvidence) string {
	var all []string
	for _, c := range e.Corrections {
		scope := scopeTexts[c.Scope]
		if c.BatchSize > 0 {
			scope = fmt.Sprintf(scope, c.BatchSize)
		}
		all = append(all, fmt.Sprintf("%s: %.3g times as long since %s (%s)", scope, c.Ratio,
			clock(&c.SinceAt), schemas.FormatCount(uint64(c.Runs), "run")))
	}
	return strings.Join(all, "; ")
}

func startupText(alt *schemas.Alternative, e *schemas.Evidence) string {
	s := e.Startup
	switch {
	case alt.PredictedSeconds == nil:
		return ""
	case s == nil:
		return "never measured: the time does not include it"
	case s.NodeTypeRuns == 0:
		return fmt.Sprintf("%s, of %s on other node types", schemas.FormatSeconds(s.Seconds),
			schemas.FormatCount(uint64(s.ModelRuns), "run"))
	}
	return fmt.Sprintf("%s, of %s on this node type", schemas.FormatSeconds(s.Seconds),
		schemas.FormatCount(uint64(s.NodeTypeRuns), "run"))
}

func accuracyText(alt *schemas.Alternative, e *schemas.AccuracyEvidence, a *schemas.Advice) string {
	if e == nil {
		return "never measured"
	}
	s := "unknown: "
	switch {
	case alt.PredictedAccuracy == nil && e.KnownFromEpoch > 0:
		s = fmt.Sprintf("known after epoch %d: ", e.KnownFromEpoch)
	case alt.PredictedAccuracy != nil:
		s = fmt.Sprintf("%.4f%s; %s: ", *alt.PredictedAccuracy, intervalText(alt, a), e.Support)
	}
	s += fmt.Sprintf("%s with this batch size, %d of %s, the highest %.4g",
		schemas.FormatCount(uint64(e.BatchSizeRuns), "run"), e.ModelRuns, a.Model,
		e.HighestAccuracy)
	if alt.Epochs > e.LongestEpochs {
		text := "; no run had more than %s; further epochs are assumed to add nothing"
		if e.Support == "interpolated" {
			text = "; known for %s, and assumed to rise after that as with other batch sizes"
		}
		s += fmt.Sprintf(text, schemas.FormatCount(uint64(e.LongestEpochs), "epoch"))
	}
	return s
}

func intervalText(alt *schemas.Alternative, a *schemas.Advice) string {
	switch low, high := alt.AccuracyLower, alt.AccuracyUpper; {
	case high == nil:
		return ""
	case low == nil:
		return fmt.Sprintf(", at most %.4f with probability %.4g", *high, (1+a.Confidence)/2)
	default:
		return fmt.Sprintf(", from %.4f to %.4f with probability %.4g", *low, *high, a.Confidence)
	}
}

// targetText describes the probabilities of SLO and target accuracy; empty without a target.
func targetText(alt *schemas.Alternative) string {
	if alt.AccuracyProbability == nil {
		return ""
	}
	s := "accuracy reached with probability " + schemas.OptionalProbability(alt.AccuracyProbability)
	if alt.SLOProbability != nil {
		s += ", SLO met with " + schemas.OptionalProbability(alt.SLOProbability) + ", both with " +
			schemas.OptionalProbability(alt.Probability)
	}
	return s
}
