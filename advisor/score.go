package advisor

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"courier/schemas"
)

// score is the SLO attainment that job.score returns. Each job counts once, at the end of its first
// run. A lost job that comes back is moved to the group of its new end.
type score struct {
	promises                 schemas.Tally
	confidences              groups
	users, models, decisions groups
	calibration              schemas.Calibration
}

// maxGroups bounds the groups of each kind. Later groups are counted together, so that made-up
// names cost no memory.
const maxGroups = 256

// group is the key of jobs that are counted together.
type group struct {
	name       string
	dataset    string // of a model
	confidence float64
	others     bool
}

type groups map[group]*schemas.Tally

// tally returns the counts of a group, created on first use. If the limit is reached, it returns
// the counts of the group for all others. A group is never removed, so that a job stays in its
// group.
func (g *groups) tally(key group) *schemas.Tally {
	if *g == nil {
		*g = groups{}
	}
	if (*g)[key] == nil && len(*g) >= maxGroups {
		key = group{others: true}
	}
	t := (*g)[key]
	if t == nil {
		t = &schemas.Tally{}
		(*g)[key] = t
	}
	return t
}

// lines returns the groups by falling confidence, falling size and name; the others come last.
func (g groups) lines() []schemas.ScoreLine {
	all := make([]schemas.ScoreLine, 0, len(g))
	for key, t := range g {
		line := schemas.ScoreLine{
			Name: key.name, Dataset: key.dataset, Others: key.others, Tally: t.WithRatio(),
		}
		if !key.others {
			line.Confidence = &key.confidence
		}
		all = append(all, line)
	}
	slices.SortFunc(all, func(a, b schemas.ScoreLine) int {
		if a.Others != b.Others {
			return map[bool]int{true: 1, false: -1}[a.Others]
		}
		return cmp.Or(cmp.Compare(*b.Confidence, *a.Confidence), cmp.Compare(b.Jobs, a.Jobs),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Dataset, b.Dataset))
	})
	return all
}

// end counts an ended job if its promise can be judged. Cancelled, lost and incomplete
// jobs have separate counts, so that cancelling late jobs changes no ratio.
func (s *score) end(j *Job) {
	switch j.State {
	case schemas.StateFinished, schemas.StateFailed:
		if j.isIncomplete() {
			s.countIncomplete(j)
			return
		}
		s.judge(j)
	case schemas.StateCancelled:
		if j.hasDeadline() && j.asAdvised() {
			s.count(j, func(t *schemas.Tally) { t.Cancelled++ })
		}
	case schemas.StateLost:
		if j.hasDeadline() && j.asAdvised() {
			j.countedLost = true
			s.count(j, func(t *schemas.Tally) { t.Lost++ })
		}
	}
}

// countIncomplete counts a job that finished with fewer epochs than it should have.
func (s *score) countIncomplete(j *Job) {
	if j.hasDeadline() && j.asAdvised() {
		s.count(j, func(t *schemas.Tally) { t.Incomplete++ })
	}
}

// uncountLost removes a job from the lost ones when it comes back; its end counts instead. If a new
// run has started, the first run stays lost.
func (s *score) uncountLost(j *Job) {
	if !j.countedLost || j.State == schemas.StateLost {
		return
	}
	j.countedLost = false
	if j.Run == 1 {
		s.count(j, func(t *schemas.Tally) { t.Lost-- })
	}
}

// judge counts a job that finished or failed.
func (s *score) judge(j *Job) {
	o, ok := j.Outcome()
	if !ok || !o.AsAdvised {
		return
	}
	s.countGroups(j, func(t *schemas.Tally) { t.Add(o.Kept) })
	if p := o.Promise.Chosen.Probability; p != nil &&
		!j.hasMoved { // the probability applies to the first batch size only
		s.calibration.Add(*p, o.Kept)
	}
}

// count changes all counts of a job with a promise.
func (s *score) count(j *Job, change func(*schemas.Tally)) {
	s.countGroups(j, change)
	if p := j.Promise.Chosen.Probability; p != nil {
		change(s.calibration.Tally(*p))
	}
}

// countGroups changes the counts of the groups of a job with a promise.
func (s *score) countGroups(j *Job, change func(*schemas.Tally)) {
	q, decision := &j.Submitted.Request, j.Promise.Decision
	confidence := math.Round(q.Confidence*1e4) / 1e4
	change(s.decisions.tally(group{name: string(decision), confidence: confidence}))
	if decision != schemas.MeetsSLO {
		return
	}
	change(&s.promises)
	change(s.confidences.tally(group{confidence: confidence}))
	change(s.users.tally(group{name: q.User, confidence: confidence}))
	change(s.models.tally(group{name: q.Model, dataset: q.Dataset, confidence: confidence}))
}

// reply returns the score for job.score.
func (s *score) reply() *schemas.Score {
	return &schemas.Score{
		Promises:    schemas.ScoreLine{Tally: s.promises.WithRatio()},
		Confidence:  s.confidences.lines(),
		Users:       s.users.lines(),
		Models:      s.models.lines(),
		Decisions:   s.decisions.lines(),
		Calibration: s.calibration.Bins(),
	}
}

// Score returns the SLO attainment of all promises in the event log.
func (c *Cluster) Score() *schemas.Score { return c.score.reply() }

// scoreReply answers job.score.
func (a *Advisor) scoreReply(context.Context, *schemas.ScoreRequest) (any, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.Score(), nil
}

// score counts the outcome of a submission in the metrics.
func (a *Advisor) score(j *Job) {
	o, ok := j.Outcome()
	if !ok || !o.AsAdvised {
		return
	}
	kept := strconv.FormatBool(o.Kept)
	if p := o.Promise.Chosen.Probability; p != nil {
		a.metrics.calibration.WithLabelValues(strconv.FormatFloat(schemas.CalibrationFrom(*p), 'f',
			2, 64), kept).Inc()
	}
	if o.Promise.Decision == schemas.MeetsSLO {
		a.metrics.promises.WithLabelValues(strconv.FormatFloat(o.Submitted.Request.Confidence, 'f',
			2, 64), kept).Inc()
	}
}
