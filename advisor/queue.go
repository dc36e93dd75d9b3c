package advisor

import (
	"cmp"
	"slices"
	"time"

	"courier/schemas"
)

// waits is how many jobs wait.
func (c *Cluster) waits() int { return len(c.waiting) }

// queue returns the jobs that wait, those with the earliest deadline first; those
// without one come last, in the order in which they came. The caller must not change it.
func (c *Cluster) queue() []*Job { return c.waiting }

func (c *Cluster) enqueue(j *Job) {
	at, _ := slices.BinarySearchFunc(c.waiting, j, compareUrgency)
	c.waiting = slices.Insert(c.waiting, at, j)
}

func (c *Cluster) dequeue(j *Job) {
	if at, found := slices.BinarySearchFunc(c.waiting, j, compareUrgency); found {
		c.waiting = slices.Delete(c.waiting, at, at+1)
	}
}

// compareUrgency orders the queue. Neither figure changes while a job waits.
func compareUrgency(a, b *Job) int {
	x, y := a.deadline(), b.deadline()
	if x.IsZero() != y.IsZero() {
		if x.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(x.Compare(y), cmp.Compare(a.first, b.first), cmp.Compare(a.ID, b.ID))
}

// asked is the question of a job that waits, asked again.
func (c *Cluster) asked(j *Job, now time.Time) *Question {
	q := c.Ask(j.Submitted.Request, now)
	q.Elapsed = max(0, now.Sub(j.Submitted.At))
	return q
}

// broken names the jobs whose promise an advice would break.
func brokenBy(a *schemas.Advice) []string {
	var all []string
	for i := range a.Effects {
		if a.Effects[i].BreaksSLO {
			all = append(all, a.Effects[i].JobID)
		}
	}
	return all
}

// waiting returns after how many seconds a job keeps its own SLO and everybody
// else's, or, if it cannot keep its own, at least breaks no other; 0: nobody
// knows, or now.
func waiting(a *schemas.Advice) float64 {
	for _, kind := range [...]string{schemas.ChoiceStart, schemas.ChoiceDeadline} {
		for i := range a.Menu {
			if c := &a.Menu[i]; c.Kind == kind {
				return c.StartSeconds
			}
		}
	}
	return 0
}

// fits reports whether a job may start now under the policy queue: it breaks no
// promise, and would gain nothing by waiting.
func fits(a *schemas.Advice) bool {
	gains := a.Decision == schemas.BestEffort &&
		slices.ContainsFunc(a.Menu, func(c schemas.Choice) bool {
			return c.Kind == schemas.ChoiceStart
		})
	return len(brokenBy(a)) == 0 && !gains
}

// hopeless is the probability of keeping its SLO under which a job counts as
// lost: it waits behind those that can still be saved.
const hopeless = 0.5

func lost(a *schemas.Advice) bool {
	if a.SLOSeconds == 0 || a.Chosen.Probability == nil {
		return false
	}
	return *a.Chosen.Probability < hopeless &&
		!slices.ContainsFunc(a.Menu, func(c schemas.Choice) bool {
			return c.Kind == schemas.ChoiceStart
		})
}

// mostLooked bounds how many waiting jobs are looked at to find one that fits.
const mostLooked = 64

// turn finds the waiting job that may start now: the first in the queue if it
// fits, else a later one that fits and is over before the first can start (EASY
// backfilling, Lifka 1995). Lost jobs come last. It returns nil if none may.
func turn(queue []*schemas.Advice) *schemas.Advice {
	ordered := slices.Clone(queue)
	slices.SortStableFunc(ordered, func(a, b *schemas.Advice) int {
		x, y := lost(a), lost(b)
		switch {
		case x == y:
			return 0
		case x:
			return 1
		}
		return -1
	})
	for i, a := range ordered {
		if !fits(a) {
			continue
		}
		if i == 0 {
			return a
		}
		room := waiting(ordered[0])
		if end := a.Chosen.UpperBoundSeconds; end != nil && *end <= room {
			return a
		}
	}
	return nil
}
