package advisor

import (
	"cmp"
	"context"
	"math"
	"slices"

	"courier/schemas"
)

// score is the public score, a fold over what became of submissions. Each job
// counts once, at the first end of its first run.
type score struct {
	promises                 schemas.Tally
	confidences              groups
	users, models, decisions groups
	calibration              schemas.Calibration
}

// keptGroups bounds how many groups of each kind are kept apart; later ones
// count together, so that names made up by whoever submits cost no memory.
const keptGroups = 256

// group names what is counted together.
type group struct {
	name       string
	confidence float64
	others     bool
}

type groups map[group]*schemas.Tally

// add counts a job in its group, made with the first one.
func (g *groups) add(key group, kept bool) {
	if *g == nil {
		*g = groups{}
	}
	if (*g)[key] == nil && len(*g) >= keptGroups {
		key = group{others: true}
	}
	t := (*g)[key]
	if t == nil {
		t = &schemas.Tally{}
		(*g)[key] = t
	}
	t.Add(kept)
}

// lines returns the groups: the largest confidence first, then the largest
// group, then by name; the others last.
func (g groups) lines() []schemas.ScoreLine {
	all := make([]schemas.ScoreLine, 0, len(g))
	for key, t := range g {
		line := schemas.ScoreLine{Name: key.name, Others: key.others, Tally: t.WithRatio()}
		if !key.others {
			line.Confidence = &key.confidence
		}
		all = append(all, line)
	}
	slices.SortFunc(all, func(a, b schemas.ScoreLine) int {
		if a.Others != b.Others {
			return map[bool]int{true: 1, false: -1}[a.Others]
		}
		return cmp.Or(cmp.Compare(*b.Confidence, *a.Confidence), cmp.Compare(b.Jobs, a.Jobs), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// end counts a job that has ended, if it tells something of a promise.
func (s *score) end(j *Job) {
	o, ok := j.Outcome()
	if !ok || !o.AsAdvised {
		return
	}
	a := o.Promise
	confidence := math.Round(o.Submitted.Request.Confidence*1e4) / 1e4
	s.decisions.add(group{name: string(a.Decision), confidence: confidence}, o.Kept)
	if p := a.Chosen.Probability; p != nil && !j.changed { // what was said of another batch size is not judged
		s.calibration.Add(*p, o.Kept)
	}
	if a.Decision != schemas.MeetsSLO {
		return
	}
	s.promises.Add(o.Kept)
	s.confidences.add(group{confidence: confidence}, o.Kept)
	s.users.add(group{name: o.Submitted.Request.User, confidence: confidence}, o.Kept)
	s.models.add(group{name: o.Submitted.Request.Model, confidence: confidence}, o.Kept)
}

// reply is the score as it is told.
func (s *score) reply() *schemas.Score {
	return &schemas.Score{Promises: schemas.ScoreLine{Tally: s.promises.WithRatio()}, Confidence: s.confidences.lines(), Users: s.users.lines(), Models: s.models.lines(),
		Decisions: s.decisions.lines(), Calibration: s.calibration.Bins()}
}

// Score returns how the promises of the log came out so far.
func (c *Cluster) Score() *schemas.Score { return c.score.reply() }

// tellScore answers job.score.
func (a *Advisor) tellScore(context.Context, *schemas.ScoreRequest) (any, error) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.cluster.Score(), nil
}
