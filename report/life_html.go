package report

import (
	"fmt"
	"html/template"
	"io"
	"slices"
	"time"

	"courier/schemas"
)

// WriteHTML writes the history of the regressors of a target, or of all if it is empty, as one
// self-contained page. version is the program's version.
func (l *Life) WriteHTML(out io.Writer, target, version string, now time.Time) error {
	page := struct {
		Version string
		At      time.Time
		Lives   []*targetLife
	}{version, now, nil}
	for _, t := range l.targets() {
		if target == "" || t == target {
			page.Lives = append(page.Lives, newTargetLife(l, t))
		}
	}
	return lifePage.Execute(out, page)
}

// targetLife is the history of the regressors of one target, as the page shows it.
type targetLife struct {
	Target               string
	Champion, Challenger *schemas.RegressorVersion  // nil if there is none
	Versions             []schemas.RegressorVersion // oldest first: version 1 is the first
	Moments              []Moment                   // oldest first, without momentReplaced
	Plots                []template.HTML
	Drifts, Judged       int // numbers of drift alarms and of comparisons
}

func newTargetLife(l *Life, target string) *targetLife {
	t := &targetLife{Target: target}
	for _, v := range slices.Backward(l.versions) {
		if v.Target == target {
			t.Versions = append(t.Versions, v)
		}
	}
	for i := range t.Versions {
		switch v := &t.Versions[i]; v.State {
		case schemas.RegressorChampion:
			t.Champion = v
		case schemas.RegressorChallenger:
			t.Challenger = v
		}
	}
	for _, m := range l.moments {
		if m.Target != target || m.Kind == momentReplaced {
			continue
		}
		t.Moments = append(t.Moments, m)
		if m.Kind == momentDrift {
			t.Drifts++
		}
		if m.Loss != nil {
			t.Judged++
		}
	}
	t.Plots = append(t.Plots, t.errorPlot())
	if t.Judged > 0 {
		t.Plots = append(t.Plots, t.lossPlot(), t.coveragePlot())
	}
	return t
}

// number returns the number of a version, from 1; 0 if it is no longer in the log.
func (t *targetLife) number(digest string) int {
	return 1 + slices.IndexFunc(t.Versions, func(v schemas.RegressorVersion) bool {
		return v.ModelDigest == digest
	})
}

// Name returns the number and the first digits of the digest of a version.
func (t *targetLife) Name(digest string) string {
	if n := t.number(digest); n > 0 {
		return fmt.Sprintf("%d (%.12s)", n, digest)
	}
	return fmt.Sprintf("%.12s", digest)
}
