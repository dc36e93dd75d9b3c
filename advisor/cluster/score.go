package cluster

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// score is the SLO attainment that job.score returns. Each job counts once, as it is now.
type score struct {
	promises                              schemas.Tally
	confidences, users, models, decisions groups
	calibration                           schemas.Calibration
}

// maxGroups bounds the groups of each kind. Later groups are counted together, so that made-up
// names cost no memory.
const maxGroups = 256

// group is the key of jobs that are counted together.
type group struct {
	name, dataset string // dataset of a model
	confidence    float64
	isOthers      bool
}

// groups are the counts of at most maxGroups groups, and of all others.
type groups map[group]*schemas.Tally

// tally returns the counts of a group, created on first use. If the limit is reached, it returns
// the counts of the group for all others.
func (g *groups) tally(key group) *schemas.Tally {
	if *g == nil {
		*g = groups{}
	}
	if (*g)[key] == nil && len(*g) >= maxGroups {
		key = group{isOthers: true}
	}
	if (*g)[key] == nil {
		(*g)[key] = &schemas.Tally{}
	}
	return (*g)[key]
}

// lines returns the groups by falling confidence, falling size and name; the others come last.
func (g groups) lines() []schemas.ScoreLine {
	all := make([]schemas.ScoreLine, 0, len(g))
	for of, t := range g {
		line := schemas.ScoreLine{
			Name: of.name, Dataset: of.dataset, Others: of.isOthers, Tally: t.WithRatio(),
		}
		if !of.isOthers {
			line.Confidence = &of.confidence
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
	var change func(*schemas.Tally)
	switch {
	case j.IsIncomplete():
		change = func(t *schemas.Tally) { t.Incomplete++ }
	case j.State == schemas.StateFinished, j.State == schemas.StateFailed:
		s.judge(j)
	case j.State == schemas.StateCancelled:
		change = func(t *schemas.Tally) { t.Cancelled++ }
	case j.State == schemas.StateLost:
		change = func(t *schemas.Tally) { t.Lost++ }
	}
	if change != nil && j.HasDeadline() && j.asAdvised() {
		s.count(j, change)
	}
}

// judge counts a job that finished or failed.
func (s *score) judge(j *Job) {
	kept, ok := j.Outcome()
	if !ok {
		return
	}
	s.countGroups(j, func(t *schemas.Tally) { t.Add(kept) })
	if p := j.Promise.Probability; p != nil &&
		!j.HasMoved { // the probability applies to the first batch size only
		s.calibration.Add(*p, kept)
	}
}

// count changes all counts of a job with a promise.
func (s *score) count(j *Job, change func(*schemas.Tally)) {
	s.countGroups(j, change)
	if p := j.Promise.Probability; p != nil {
		change(s.calibration.Tally(*p))
	}
}

// countGroups changes the counts of the groups of a job with a promise.
func (s *score) countGroups(j *Job, change func(*schemas.Tally)) {
	q, decision := j.Request, j.Promise.Decision
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

// trendSteps is the number of steps of a trend.
const trendSteps = 24

// Ended returns the jobs that have ended or may never start, as they are now, for ScoreOf.
func (c *Cluster) Ended() []*Job { return frozen(c.ended.all) }

// ScoreOf returns the score of the ended jobs that a request selects, with its trend.
func ScoreOf(ended []*Job, q *schemas.ScoreRequest, now time.Time) *schemas.Score {
	selected, from := selectEnded(ended, q)
	total := score{}
	for _, j := range selected {
		total.end(j)
	}
	reply := total.reply()
	if from.IsZero() {
		return reply
	}

	begin, end := from, now
	if q.Since.After(begin) {
		begin = q.Since
	}
	if !q.Until.IsZero() && q.Until.Before(end) {
		end = q.Until
	}
	if reply.From = &from; begin.Before(end) {
		reply.Trend = trend(selected, begin, end)
	}
	return reply
}

// selectEnded returns the ended jobs that a request selects. from is the first end of all jobs; zero if
// none has ended.
func selectEnded(ended []*Job, q *schemas.ScoreRequest) (selected []*Job, from time.Time) {
	for _, j := range ended {
		if j.EndedAt.IsZero() { // it was submitted and has not started
			continue
		}
		if from.IsZero() || j.EndedAt.Before(from) {
			from = j.EndedAt
		}
		user := ""
		if j.Request != nil {
			user = j.Request.User
		}
		if (q.User == "" || q.User == user) && (q.Model == "" || q.Model == j.Setting.Model) &&
			!j.EndedAt.Before(q.Since) && (q.Until.IsZero() || j.EndedAt.Before(q.Until)) {
			selected = append(selected, j)
		}
	}
	return selected, from
}

// trend divides a period into trendSteps equal steps, and returns the SLO attainment of the promises of
// the jobs that ended in each.
func trend(ended []*Job, begin, end time.Time) (all []schemas.ScoreStep) {
	steps := make([]score, trendSteps)
	length := end.Sub(begin) / trendSteps
	for _, j := range ended {
		at := int(j.EndedAt.Sub(begin) / max(1, length))
		steps[min(max(at, 0), trendSteps-1)].end(j)
	}
	for i := range steps {
		all = append(all, schemas.ScoreStep{
			Since: begin.Add(time.Duration(i) * length),
			Until: begin.Add(time.Duration(i+1) * length),
			Tally: steps[i].promises.WithRatio(),
		})
	}
	return all
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
