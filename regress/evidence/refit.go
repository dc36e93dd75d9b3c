package evidence

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// RefitScore compares a refit of a model with what was served, by the runs that began and ended since
// then: the mean log density of their log seconds, in nats. The served prediction was made before such
// a run; the refit is fitted without it.
type RefitScore struct {
	Model, Dataset string
	Runs           int
	Served, Refit  float64
	// Kept reports that the model stays as it was served, because its refit is worse.
	Kept bool
}

const (
	refitRuns    = 5   // latest runs of a model that are scored
	minRefitRuns = 4   // with fewer runs, noise looks like a difference
	refitMargin  = 0.1 // smaller differences, in nats, are ignored
)

// KeepBetter scores the refit s of each model that ran since before was fitted. It replaces the refit of
// a model by what was served if the refit is worse: if the mean difference of the scores is below
// -(refitMargin + 2 standard errors). runs are those that s has learned from; before was fitted at since.
func (s *State) KeepBetter(before *State, runs []Run, since time.Time) ([]RefitScore, error) {
	if before == nil || len(s.Factors()) > 0 {
		return nil, nil
	}
	p, err := Compile(before.Regressor)
	if err != nil {
		return nil, fmt.Errorf("score the served regressor: %w", err)
	}
	mayKeep := len(before.Factors()) == 0 && slices.Equal(before.NodeGroups, s.NodeGroups)
	runsOf := bySubject(regrouped(sortedRuns(runs), s.NodeGroups))
	var scores []RefitScore
	for i := range s.Subjects {
		refit := &s.Subjects[i]
		served := p.subjects[subject{refit.Model, refit.Dataset}]
		if refit.Time == nil || served == nil || served.Time == nil {
			continue
		}
		fitted := since
		if !served.KeptSince.IsZero() {
			fitted = served.KeptSince
		}
		score, isWorse := refit.compareRefit(p, runsOf[subject{refit.Model, refit.Dataset}], fitted)
		if score.Runs == 0 {
			continue
		}
		if score.Kept = isWorse && mayKeep; score.Kept {
			refit.Time, refit.KeptSince = served.Time, fitted
		}
		scores = append(scores, score)
	}
	return scores, nil
}

// compareRefit scores the latest runs of a model since its served fit.
func (s *Subject) compareRefit(p *Predictor, runs []Run, since time.Time) (score RefitScore, isWorse bool) {
	score = RefitScore{Model: s.Model, Dataset: s.Dataset}
	var latest []int
	for i := range runs {
		if r := &runs[i]; r.StartedAt.After(since) && !r.EndedAt.IsZero() && r.valid() {
			latest = append(latest, i)
		}
	}
	slices.SortFunc(latest, func(a, b int) int { return byEnd(runs[a], runs[b]) })
	var differences []float64
	for _, i := range latest[max(0, len(latest)-refitRuns):] {
		served, refit, ok := s.scoreRefit(p, runs, i)
		if !ok {
			continue
		}
		score.Runs++
		n := float64(score.Runs)
		score.Served += (served - score.Served) / n
		score.Refit += (refit - score.Refit) / n
		differences = append(differences, refit-served)
	}
	if score.Runs < minRefitRuns {
		return score, false
	}
	mean, deviation := stat.MeanStdDev(differences, nil)
	return score, mean < -(refitMargin + 2*stat.StdErr(deviation, float64(score.Runs)))
}

// scoreRefit returns the log densities of a run by the served prediction and by the refit without the
// run; ok is false if either has none.
func (s *Subject) scoreRefit(p *Predictor, runs []Run, i int) (served, refit float64, ok bool) {
	r := &runs[i]
	c, _, timed := r.curve()
	if !timed {
		return 0, 0, false
	}
	n := c.epochs()
	y := math.Log(c.sums[n-1])
	e := p.Epochs(p.banded(r), n)
	if !e.Support.Promisable() {
		return 0, 0, false
	}
	out := make([]bool, len(runs))
	out[i] = true
	without := s.timesWithout(runs, out)
	if without == nil {
		return 0, 0, false
	}
	times := without.times(&r.Configuration)
	if times.support == NeverRun {
		return 0, 0, false
	}
	total := times.total(n).distribution()
	return e.Seconds(n).logDensity(y), total.logDensity(y), true
}
