package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"courier/schemas"

	"github.com/alecthomas/kong"
)

type regressorShow struct {
	natsFlags
	outputFlags
	Regressor string `arg:"" help:"Directory that fit wrote; or a target, for its regressor in use; or at least 6 digits of a regressor's digest."`
}

// Run tells about a directory where there is one, and else about the cluster.
func (c *regressorShow) Run(w *world) error {
	dir := kong.ExpandPath(c.Regressor)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return c.directory(w, dir)
	}
	if !slices.Contains(schemas.Targets(), c.Regressor) && !digestDigits(c.Regressor) {
		return schemas.Invalid("regressor", "%q is neither a directory, nor one of %v, nor %d to 64 digits of a digest in hex", c.Regressor, schemas.Targets(), schemas.MinDigestDigits)
	}
	return c.cluster(w)
}

func digestDigits(s string) bool {
	return len(s) >= schemas.MinDigestDigits && len(s) <= 64 && strings.Trim(s, "0123456789abcdef") == ""
}

func (c *regressorShow) directory(w *world, dir string) error {
	p, err := loadRegressor(dir)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return indented(w.stdout, p.Manifest())
	}
	return writeManifestText(w.stdout, p.Manifest())
}

// shownLife is what show tells of a regressor of a cluster.
type shownLife struct {
	schemas.RegressorVersion
	Life []moment `json:"life"` // in the order of the log
}

// cluster asks the trainer what a regressor is, and the log what happened to it.
func (c *regressorShow) cluster(w *world) error {
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, requestTimeout)
	defer cancel()
	var list schemas.RegressorList
	if err := b.Request(ctx, schemas.SubjectRegressorList, &schemas.RegressorListRequest{}, &list); err != nil {
		return err
	}
	v, err := find(list.Regressors, c.Regressor)
	if err != nil {
		return err
	}
	life, err := readLife(w.ctx, b)
	if err != nil {
		return err
	}
	s := &shownLife{*v, life.of(v.Target, v.ModelDigest)}
	if c.Output == "json" {
		return indented(w.stdout, s)
	}
	return printLife(w.stdout, s)
}

// printLife tells the figures of a regressor, how it stands, and its moments.
func printLife(out io.Writer, v *shownLife) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, format string, values ...any) {
		fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, values...))
	}
	line("regressor", "%s of %s", v.ModelDigest, v.Target)
	line("state", "%s", stateWords(&v.RegressorVersion))
	line("fitted", "%s on %d examples of %d settings, in %s, for: %s", v.Family, v.Examples, v.Settings, schemas.FormatSeconds(v.FitSeconds), v.TrainedFor)
	squared := "" // unknown where runs were held out and not settings
	if v.MeanSquaredError > 0 {
		squared = fmt.Sprintf(", mean squared error %.4g, R2 %s", v.MeanSquaredError, figure(v.R2, "%.4f"))
	}
	line("error", "%s%s, on what was not learnt from", schemas.FormatError(v.Target, v.Family, v.MedianAbsoluteRatio), squared)
	by := ""
	if v.DecidedBy != "" {
		by = " (decided by " + v.DecidedBy + ")"
	}
	line("why", "%s%s", whyOf(&v.RegressorVersion), by)
	if words := judgementWords(&v.Judgement); words != "" {
		line("judged", "%s; the other is %.12s", words, v.Rival)
	}
	for _, e := range v.Corrections {
		line("corrected", "%s", e.Message)
	}
	line("files", "%s", map[bool]string{true: "kept: it can be promoted", false: "no longer kept"}[v.Kept])
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, m := range v.Life {
		words := m.Reason
		switch {
		case m.Kind == momentReplaced:
			words = fmt.Sprintf("by %.12s: %s", m.Other, m.Reason)
		case m.DecidedBy != "":
			words = fmt.Sprintf("%s (decided by %s)", m.Reason, m.DecidedBy)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", second(m.At), m.Kind, words)
	}
	return t.Flush()
}

// stateWords says what a regressor is and since when.
func stateWords(v *schemas.RegressorVersion) string {
	switch v.State {
	case schemas.RegressorChampion:
		return fmt.Sprintf("champion since %s, as revision %d", second(v.PromotedAt), v.Revision)
	case schemas.RegressorChallenger:
		return fmt.Sprintf("challenger since %s", second(v.TrainedAt))
	case schemas.RegressorFormer:
		return fmt.Sprintf("former, in use from %s to %s", second(v.PromotedAt), second(v.ReplacedAt))
	case schemas.RegressorRejected:
		return fmt.Sprintf("rejected %s", second(v.RejectedAt))
	}
	return v.State
}
