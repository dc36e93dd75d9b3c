package cluster

import (
	"cmp"
	"math"
	"slices"
	"time"

	"courier/schemas"
)

// score is the SLO attainment that job.score returns. Each job counts once, at the end of its first
// run. A lost job that comes back is moved to the group of its new end.
type score struct {
	Promises    schemas.Tally       `json:"promises"`
	Confidences groups              `json:"confidences"`
	Users       groups              `json:"users"`
	Models      groups              `json:"models"`
	Decisions   groups              `json:"decisions"`
	Calibration schemas.Calibration `json:"calibration"`
}

// maxGroups bounds the groups of each kind. Later groups are counted together, so that made-up
// names cost no memory.
const maxGroups = 256

// group is the key of jobs that are counted together.
type group struct {
	Name       string  `json:"name,omitempty"`
	Dataset    string  `json:"dataset,omitempty"` // of a model
	Confidence float64 `json:"confidence,omitempty"`
	Others     bool    `json:"others,omitempty"`
}

// groups are the counts of at most maxGroups groups, and of all others.
type groups []groupTally

type groupTally struct {
	group
	Tally schemas.Tally `json:"tally"`
}

// tally returns the counts of a group, created on first use. If the limit is reached, it returns
// the counts of the group for all others. A group is never removed, so that a job stays in its
// group.
func (g *groups) tally(key group) *schemas.Tally {
	i := g.index(key)
	if i < 0 && len(*g) >= maxGroups {
		key = group{Others: true}
		i = g.index(key)
	}
	if i < 0 {
		i = len(*g)
		*g = append(*g, groupTally{group: key})
	}
	return &(*g)[i].Tally
}

func (g *groups) index(key group) int {
	return slices.IndexFunc(*g, func(t groupTally) bool { return t.group == key })
}

// lines returns the groups by falling confidence, falling size and name; the others come last.
func (g groups) lines() []schemas.ScoreLine {
	all := make([]schemas.ScoreLine, 0, len(g))
	for _, t := range g {
		line := schemas.ScoreLine{
			Name: t.Name, Dataset: t.Dataset, Others: t.Others, Tally: t.Tally.WithRatio(),
		}
		if !t.Others {
			line.Confidence = &t.Confidence
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

// clone returns a copy that shares nothing.
func (s *score) clone() score {
	copied := *s
	for _, g := range []*groups{
		&copied.Confidences, &copied.Users, &copied.Models, &copied.Decisions,
	} {
		*g = slices.Clone(*g)
	}
	return copied
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
		j.IsCountedLost = j.State == schemas.StateLost
		s.count(j, change)
	}
}

// uncountLost removes a job from the lost ones when it comes back; its end counts instead. If a new
// run has started, the first run stays lost.
func (s *score) uncountLost(j *Job) {
	if !j.IsCountedLost || j.State == schemas.StateLost {
		return
	}
	j.IsCountedLost = false
	if j.Run == 1 {
		s.count(j, func(t *schemas.Tally) { t.Lost-- })
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
		s.Calibration.Add(*p, kept)
	}
}

// count changes all counts of a job with a promise.
func (s *score) count(j *Job, change func(*schemas.Tally)) {
	s.countGroups(j, change)
	if p := j.Promise.Probability; p != nil {
		change(s.Calibration.Tally(*p))
	}
}

// countGroups changes the counts of the groups of a job with a promise.
func (s *score) countGroups(j *Job, change func(*schemas.Tally)) {
	q, decision := j.Request, j.Promise.Decision
	confidence := math.Round(q.Confidence*1e4) / 1e4
	change(s.Decisions.tally(group{Name: string(decision), Confidence: confidence}))
	if decision != schemas.MeetsSLO {
		return
	}
	change(&s.Promises)
	change(s.Confidences.tally(group{Confidence: confidence}))
	change(s.Users.tally(group{Name: q.User, Confidence: confidence}))
	change(s.Models.tally(group{Name: q.Model, Dataset: q.Dataset, Confidence: confidence}))
}

// trendSteps is the number of steps of a trend.
const trendSteps = 24

// maxScored bounds the ended jobs of one answer, because they are unpacked for it.
const maxScored = 20_000

// Ended returns the jobs that ended last, as they are now, for ScoreOf.
func (c *Cluster) Ended() []listed {
	all := slices.Clone(c.ended.all[max(0, len(c.ended.all)-maxScored):])
	for i, l := range all {
		if j, ok := l.(*Job); ok { // it may come back and change
			copied := *j
			all[i] = &copied
		}
	}
	return all
}

// ScoreOf returns the score of the ended jobs that a request selects, with its trend.
func ScoreOf(ended []listed, q *schemas.ScoreRequest, now time.Time) *schemas.Score {
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
	reply.From, reply.Trend = &from, trend(selected, begin, end)
	return reply
}

// selectEnded unpacks the ended jobs that a request selects. from is the first end of all jobs; zero if
// none has ended.
func selectEnded(ended []listed, q *schemas.ScoreRequest) (selected []*Job, from time.Time) {
	for _, l := range ended {
		j := l.unpacked()
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
		if length > 0 {
			at := int(j.EndedAt.Sub(begin) / length)
			steps[min(max(at, 0), trendSteps-1)].end(j)
		}
	}
	for i := range steps {
		all = append(all, schemas.ScoreStep{
			Since: begin.Add(time.Duration(i) * length),
			Until: begin.Add(time.Duration(i+1) * length),
			Tally: steps[i].Promises.WithRatio(),
		})
	}
	return all
}

// reply returns the score for job.score.
func (s *score) reply() *schemas.Score {
	return &schemas.Score{
		Promises:    schemas.ScoreLine{Tally: s.Promises.WithRatio()},
		Confidence:  s.Confidences.lines(),
		Users:       s.Users.lines(),
		Models:      s.Models.lines(),
		Decisions:   s.Decisions.lines(),
		Calibration: s.Calibration.Bins(),
	}
}
