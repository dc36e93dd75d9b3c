package policy_test

import (
	"fmt"

	"courier/policy"
)

// checkMoves returns an error that names the first rule which moves break:
//
//   - Every move names a job of the view, once for each kind.
//   - Only queued jobs are admitted or refused, and only with an option that they have.
//   - A number of units is 0 or a point of the job's curve.
//   - The jobs hold at most the capacity of the cluster.
//   - A moment is at least View.Slot after the last one.
//   - A review is later than now.
func checkMoves(v *policy.View, moves []policy.Move) error {
	c := checker{map[string]*policy.Job{}, map[string]*policy.Job{}, map[string]int{}}
	for i := range v.Jobs {
		c.admitted[v.Jobs[i].ID], c.units[v.Jobs[i].ID] = &v.Jobs[i], v.Jobs[i].Units
	}
	for i := range v.Queue {
		c.queued[v.Queue[i].ID] = &v.Queue[i]
	}
	isMoment, resized := false, map[string]bool{}
	for _, m := range moves {
		if m.Kind == policy.Review {
			if !m.At.After(v.Now) {
				return fmt.Errorf("review at %s, which is not after %s", m.At, v.Now)
			}
			continue
		}
		if err := c.apply(m, resized[m.Job]); err != nil {
			return fmt.Errorf("move %s of job %q: %w", m.Kind, m.Job, err)
		}
		resized[m.Job] = resized[m.Job] || m.Kind == policy.Resize
		isMoment = isMoment || m.Kind == policy.Resize && m.Units > 0
	}
	held := 0
	for _, units := range c.units {
		held += units
	}
	switch {
	case held > v.Units:
		return fmt.Errorf("the jobs hold %d of %d units", held, v.Units)
	case isMoment && v.NextMoment().After(v.Now):
		return fmt.Errorf("a moment %s after the last one, want at least %s", v.Now.Sub(v.LastMoment), v.Slot)
	}
	return nil
}

// checker applies the moves of a decision to the jobs of a view.
type checker struct {
	admitted, queued map[string]*policy.Job
	units            map[string]int // of admitted jobs
}

func (c *checker) apply(m policy.Move, isResized bool) error {
	queued, admitted := c.queued[m.Job], c.admitted[m.Job]
	switch {
	case m.Reason == "":
		return fmt.Errorf("missing reason")
	case m.Kind == policy.Resize && admitted == nil:
		return fmt.Errorf("the job is not admitted")
	case m.Kind == policy.Resize:
		return c.resize(m, &admitted.Options[0], isResized)
	case m.Kind != policy.Admit && m.Kind != policy.Refuse:
		return fmt.Errorf("unknown kind")
	case queued == nil:
		return fmt.Errorf("the job is not in the queue")
	case m.Kind == policy.Admit && (m.Option < 0 || m.Option >= len(queued.Options)):
		return fmt.Errorf("option %d of %d", m.Option, len(queued.Options))
	}
	delete(c.queued, m.Job)
	if m.Kind == policy.Admit {
		c.admitted[m.Job] = &policy.Job{Options: queued.Options[m.Option:]}
	}
	return nil
}

func (c *checker) resize(m policy.Move, o *policy.Option, isResized bool) error {
	switch units := c.units[m.Job]; {
	case isResized:
		return fmt.Errorf("the job is resized twice")
	case m.Units == units:
		return fmt.Errorf("the job holds %d units already", units)
	case m.Units < 0:
		return fmt.Errorf("%d units", m.Units)
	case m.Units > 0 && !(o.Curve.Rate(m.Units) > 0):
		return fmt.Errorf("%d units are not on its curve", m.Units)
	}
	c.units[m.Job] = m.Units
	return nil
}
