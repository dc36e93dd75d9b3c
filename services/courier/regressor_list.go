package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"courier/schemas"
)

type regressorList struct {
	natsFlags
	outputFlags
	Target string `help:"epoch_time, startup_time or accuracy; absent: all." placeholder:"TARGET"`
}

// Run asks the trainer for all that it has fitted.
func (c *regressorList) Run(w *world) error {
	q := schemas.RegressorListRequest{Target: c.Target}
	if err := q.Validate(); err != nil {
		return err
	}
	return ask(w, c.natsFlags, c.outputFlags, q.Subject(), &q, printRegressors)
}

// whyLetters is how much of a reason a line of the list shows.
const whyLetters = 72

// printRegressors writes a line for each regressor, and what to do with them.
func printRegressors(out io.Writer, l *schemas.RegressorList) error {
	if len(l.Regressors) == 0 {
		_, err := fmt.Fprintln(out, "No regressor yet: the first is fitted when jobs have run, or by courier regressor train.")
		return err
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "target\tdigest\tstate\tkept\tfamily\texamples\tsettings\theld-out error\ttrained\tdecided by\twhy")
	for i := range l.Regressors {
		v := &l.Regressors[i]
		by := v.DecidedBy
		if by == "" {
			by = "-"
		}
		fmt.Fprintf(t, "%s\t%.12s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\t%s\t%s\n", v.Target, v.ModelDigest, v.State, map[bool]string{true: "yes", false: "no"}[v.Kept], v.Family, v.Examples, v.Settings,
			strings.Replace(schemas.FormatError(v.Target, v.Family, v.MedianAbsoluteRatio), " error", "", 1), second(v.TrainedAt), by, cut(whyOf(v), whyLetters, false))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for i := range l.Regressors {
		for _, e := range l.Regressors[i].Corrections {
			if _, err := fmt.Fprintf(out, "\n%s is corrected: %s.\n", e.Target, e.Message); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintln(out, "\ncourier regressor show DIGEST tells the whole life of one; what is kept can be promoted.")
	return err
}

// second prints an instant with its zone.
func second(t time.Time) string { return clock(&t) }

// whyOf is why a regressor is what it is.
func whyOf(v *schemas.RegressorVersion) string {
	if v.State == schemas.RegressorUntried {
		return "another took its place before it was judged"
	}
	return v.Reason
}
