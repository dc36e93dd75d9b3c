package policy

import (
	"fmt"
	"time"
)

// Check returns an error that names the first rule which a decision breaks:
//
//   - Every move names a job of the view, once for each kind.
//   - Only queued jobs are admitted or refused, and only with an option that they have.
//   - A number of units is 0 or a point of the job's curve.
//   - The jobs hold at most the capacity of the nodes.
//   - A moment is at least ClusterView.Slot after the last one.
//   - A review is later than now.
func Check(v *ClusterView, now time.Time, d MoveDecision) error {
	c := newChecker(v)
	isMoment := false
	for _, m := range d.Moves {
		if err := c.apply(m); err != nil {
			return fmt.Errorf("move %s of job %q: %w", m.Kind, m.Job, err)
		}
		isMoment = isMoment || m.Kind == Resize && m.Units > 0
	}

	if held := c.held(); held > v.Units() {
		return fmt.Errorf("the jobs hold %d of %d units", held, v.Units())
	}
	if isMoment && v.NextMoment(now).After(now) {
		return fmt.Errorf("a moment %s after the last one, want at least %s",
			now.Sub(v.LastMoment), v.Slot)
	}
	if !d.ReviewAt.IsZero() && !d.ReviewAt.After(now) {
		return fmt.Errorf("review at %s, which is not after %s", d.ReviewAt, now)
	}
	return nil
}

// checker applies the moves of a decision to the jobs of a view.
type checker struct {
	admitted map[string]*checkedJob
	queued   map[string]*checkedJob
}

type checkedJob struct {
	options   []Option
	units     int
	isResized bool
}

func newChecker(v *ClusterView) *checker {
	c := &checker{map[string]*checkedJob{}, map[string]*checkedJob{}}
	for i := range v.Jobs {
		j := &v.Jobs[i]
		c.admitted[j.ID] = &checkedJob{options: j.Options, units: j.Units}
	}
	for i := range v.Queue {
		j := &v.Queue[i]
		c.queued[j.ID] = &checkedJob{options: j.Options}
	}
	return c
}

func (c *checker) apply(m Move) error {
	if m.Reason == "" {
		return fmt.Errorf("missing reason")
	}
	switch m.Kind {
	case Admit, Refuse:
		return c.decide(m)
	case Resize:
		return c.resize(m)
	}
	return fmt.Errorf("unknown kind")
}

func (c *checker) decide(m Move) error {
	j := c.queued[m.Job]
	if j == nil {
		return fmt.Errorf("the job is not in the queue")
	}
	delete(c.queued, m.Job)
	if m.Kind == Refuse {
		return nil
	}
	if m.Option < 0 || m.Option >= len(j.options) {
		return fmt.Errorf("option %d of %d", m.Option, len(j.options))
	}
	j.options = j.options[m.Option : m.Option+1]
	c.admitted[m.Job] = j
	return nil
}

func (c *checker) resize(m Move) error {
	j := c.admitted[m.Job]
	switch {
	case j == nil:
		return fmt.Errorf("the job is not admitted")
	case j.isResized:
		return fmt.Errorf("the job is resized twice")
	case m.Units == j.units:
		return fmt.Errorf("the job holds %d units already", m.Units)
	case m.Units < 0:
		return fmt.Errorf("%d units", m.Units)
	case m.Units > 0 && (len(j.options) == 0 || !(j.options[0].Curve.Rate(m.Units) > 0)):
		return fmt.Errorf("%d units are not on its curve", m.Units)
	}
	j.units, j.isResized = m.Units, true
	return nil
}

func (c *checker) held() int {
	held := 0
	for _, j := range c.admitted {
		held += j.units
	}
	return held
}
