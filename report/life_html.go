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
// self-contained page. version is that of the program.
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

// targetLife is the life of a target's regressors, as the page tells it.
type targetLife struct {
	Target               string
	Champion, Challenger *schemas.RegressorVersion  // nil if there is none
	Versions             []schemas.RegressorVersion // oldest first: version 1 is the first
	// oldest first, without those of who was replaced
	Moments        []Moment
	Plots          []template.HTML
	Drifts, Judged int
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

// number is which version a digest is, from 1; 0 for one that the log no longer
// tells of.
func (t *targetLife) number(digest string) int {
	return 1 + slices.IndexFunc(t.Versions, func(v schemas.RegressorVersion) bool {
		return v.ModelDigest == digest
	})
}

// Name is the number of a version and what its digest begins with.
func (t *targetLife) Name(digest string) string {
	if n := t.number(digest); n > 0 {
		return fmt.Sprintf("%d (%.12s)", n, digest)
	}
	return fmt.Sprintf("%.12s", digest)
}
