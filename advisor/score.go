package advisor

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"courier/schemas"
)

// score is the public score, a fold over what became of submissions. Each job
// counts once, at the end of its first run: a lost job that comes back moves from the lost
// ones to where its end puts it.
type score struct {
	promises                 schemas.Tally
	confidences              groups
	users, models, decisions groups
	calibration              schemas.Calibration
}

// keptGroups bounds how many groups of each kind are kept apart; later ones
// count together, so that names made up by whoever submits cost no memory.
const maxGroups = 256

// group names what is counted together.
type group struct {
	name       string
	dataset    string // of a model
	confidence float64
	others     bool
}

type groups map[group]*schemas.Tally

// tally returns the counts of a group, made on first use; beyond the limit those of the
// others. A group never leaves, so that a job stays in the same one.
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

// lines returns the groups: the largest confidence first, then the largest
// group, then by name; the others last.
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

// end counts a job that has ended, if that reveals something about a promise. One that was
// cancelled or lost has columns of its own, so that cancelling late jobs changes no ratio.
func (s *score) end(j *Job) {
	switch j.State {
	case schemas.StateFinished, schemas.StateFailed:
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

// back takes a job that is not lost any more out of the lost ones: its end counts. A new
// run does not, so that its first one stays lost.
func (s *score) uncountLost(j *Job) {
	if !j.countedLost || j.State == schemas.StateLost {
		return
	}
	j.countedLost = false
	if j.Run == 1 {
		s.count(j, func(t *schemas.Tally) { t.Lost-- })
	}
}

// judge counts a job that ended by itself.
func (s *score) judge(j *Job) {
	o, ok := j.Outcome()
	if !ok || !o.AsAdvised {
		return
	}
	s.countGroups(j, func(t *schemas.Tally) { t.Add(o.Kept) })
	if p := o.Promise.Chosen.Probability; p != nil &&
		!j.batchChanged { // it was said of its first batch size
		s.calibration.Add(*p, o.Kept)
	}
}

// count changes all counts that a job with a promise belongs to.
func (s *score) count(j *Job, change func(*schemas.Tally)) {
	s.countGroups(j, change)
	if p := j.Promise.Chosen.Probability; p != nil {
		change(s.calibration.Tally(*p))
	}
}

// countGroups changes the counts of the groups that a job with a promise belongs to.
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

// reply is the score as it is told.
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

// Score returns how the promises of the log came out so far.
func (c *Cluster) Score() *schemas.Score { return c.score.reply() }

// tellScore answers job.score.
func (a *Advisor) scoreReply(context.Context, *schemas.ScoreRequest) (any, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.Score(), nil
}

// score counts what became of a submission: the public score as metrics.
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
