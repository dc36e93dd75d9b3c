package report

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"courier/report/shorten"
	"courier/schemas"
)

// RegressorHistory is a regressor of a cluster with its history.
type RegressorHistory struct {
	schemas.RegressorVersion
	Life []Moment `json:"life"` // in the order of the log
}

// WriteText writes the figures of a regressor, its state and its history.
func (v *RegressorHistory) WriteText(out io.Writer) {
	line := func(name, format string, values ...any) {
		fmt.Fprintf(out, "%s\t%s\n", name, fmt.Sprintf(format, values...))
	}
	line("regressor", "%s of %s", v.ModelDigest, v.Target)
	line("state", "%s", stateText(&v.RegressorVersion))
	line("fitted", "on %d examples of %d configurations, in %s, for: %s", v.Examples,
		v.Configurations, schemas.FormatSeconds(v.FitSeconds), v.TrainedFor)
	line("error", "%s, on held-out runs", schemas.FormatError(v.Target, v.HeldOutError))
	if v.ScoredRuns > 0 {
		line("log score", "%.2f, of the regressor before it %.2f, on the last runs (%d)",
			v.RefitScore, v.ServedScore, v.ScoredRuns)
	}
	by := ""
	if v.DecidedBy != "" {
		by = " (decided by " + v.DecidedBy + ")"
	}
	line("reason", "%s%s", v.Reason, by)
	for _, e := range v.Corrections {
		line("corrected", "%s", e.Message)
	}
	line("files", "%s", map[bool]string{
		true:  "kept: the regressor can be promoted",
		false: "no longer kept",
	}[v.Kept])
	fmt.Fprintln(out, "\nat\tevent\treason")
	for _, m := range v.Life {
		words := m.Reason
		switch {
		case m.Kind == momentReplaced:
			words = fmt.Sprintf("by %.12s: %s", m.Other, m.Reason)
		case m.DecidedBy != "":
			words = fmt.Sprintf("%s (decided by %s)", m.Reason, m.DecidedBy)
		}
		fmt.Fprintf(out, "%s\t%s\t%s\n", second(m.At), m.Kind, words)
	}
}

func stateText(v *schemas.RegressorVersion) string {
	switch v.State {
	case schemas.RegressorChampion:
		return fmt.Sprintf("champion since %s, as revision %d", second(v.PromotedAt), v.Revision)
	case schemas.RegressorTrained:
		return fmt.Sprintf("trained %s", second(v.TrainedAt))
	case schemas.RegressorFormer:
		return fmt.Sprintf("former, in use from %s to %s", second(v.PromotedAt),
			second(v.ReplacedAt))
	case schemas.RegressorRejected:
		return fmt.Sprintf("rejected %s", second(v.RejectedAt))
	}
	return v.State
}

const maxReason = 72

// Regressors writes a line for each regressor.
func Regressors(out io.Writer, l *schemas.RegressorList) {
	if len(l.Regressors) == 0 {
		fmt.Fprintln(out,
			"No regressor yet: the first one is fitted after some jobs, or by courier regressor"+
				" train.")
		return
	}
	fmt.Fprintln(out, "target\tdigest\tstate\tkept\texamples\tconfigurations\theld-out error\ttrained"+
		"\tdecided by\treason")
	for i := range l.Regressors {
		v := &l.Regressors[i]
		kept := map[bool]string{true: "yes", false: "no"}[v.Kept]
		heldOut := strings.Replace(schemas.FormatError(v.Target, v.HeldOutError), " error", "", 1)
		fmt.Fprintf(out, "%s\t%.12s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", v.Target, v.ModelDigest, v.State,
			kept, v.Examples, v.Configurations, heldOut, second(v.TrainedAt), cmp.Or(v.DecidedBy, "-"),
			shorten.Name(v.Reason, maxReason))
	}
	for i := range l.Regressors {
		for _, e := range l.Regressors[i].Corrections {
			fmt.Fprintf(out, "\n%s is corrected: %s.\n", e.Target, e.Message)
		}
	}
	fmt.Fprintln(out,
		"\ncourier regressor show DIGEST shows the history of one; kept regressors can be promoted.")
}

func second(t time.Time) string { return clock(&t) }

// Trained writes the outcomes of fits, a line each.
func Trained(out io.Writer, r *schemas.TrainReply) {
	for _, p := range r.Promoted {
		fmt.Fprintf(out, "%s: %d examples in %d configurations, %s, champion as revision %d\n",
			p.Target, p.Examples, p.Configurations, schemas.FormatError(p.Target, p.HeldOutError),
			p.Revision)
	}
	for _, reason := range r.Waiting {
		fmt.Fprintln(out, reason)
	}
}
