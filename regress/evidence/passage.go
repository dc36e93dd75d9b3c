package evidence

import "math"

// Passage is the distribution of the first epoch that reaches a target accuracy.
type Passage struct {
	Distribution // of the logarithm of the epoch
	// Reach is the probability that it is ever reached.
	Reach   float64
	Support Support
	// Promisable reports whether enough runs reached the target to promise it.
	Promisable bool
	target     float64
	isReached  bool
	after      int // epochs that have not reached it
	// others are the passages of rising targets, of which this one has index at; nil: there are no
	// others. Those from index next on have not been reached after these epochs either.
	others   []Passage
	at, next int
}

// By returns the probability that the target is reached in at most some epochs. For a running job it is
// at most that of each lower target that the job has not reached.
func (a *Passage) By(epochs int) float64 {
	switch {
	case a.isReached:
		return 1
	case !a.Known() || epochs <= a.after:
		return 0
	case a.after == 0:
		return a.reachedBy(epochs)
	}
	p := a.reachedBetween(a.after, epochs)
	for k := a.next; k < a.at; k++ {
		p = min(p, a.others[k].reachedBetween(a.after, epochs))
	}
	return p
}

// reachedBetween returns the probability for a run that has not reached the target after some epochs.
func (a *Passage) reachedBetween(after, epochs int) float64 {
	missed := a.Reach * a.Probability(float64(after))
	return (a.Reach*a.Probability(float64(epochs)) - missed) / max(1-missed, 1e-9)
}

// Reaches returns the probability that a run of some epochs with a predicted accuracy reaches the target.
// It is at least one half for a target up to this accuracy, and at most one half above it.
func (a *Passage) Reaches(predicted *Accuracy, epochs int) float64 {
	probability := a.By(epochs)
	switch {
	case a.isReached || !predicted.Known:
		return probability
	case a.target <= predicted.Mean+tolerance:
		return max(probability, 0.5)
	}
	return min(probability, 0.5)
}

// reachedBy is By of a run that has no epochs yet. It never rises with the target. It is the highest
// probability of this target and the higher ones that the same runs reached, because a run that reaches a
// higher target has reached this one. It is at most the probability of a lower target that more runs
// reached.
func (a *Passage) reachedBy(epochs int) float64 {
	if a.others == nil {
		return a.Reach * a.Probability(float64(epochs))
	}
	x, of, lowest := math.Log(float64(epochs)), a.others, 1.0
	deviations := math.Inf(-1)
	for k := a.at; k < len(of) && of[k].hasRunsOf(a); k++ {
		deviations = max(deviations, (x-of[k].Location)/of[k].Scale)
	}
	for k := range a.at {
		if !of[k].hasRunsOf(&of[k+1]) {
			lowest = min(lowest, of[k].Reach*of[k].Probability(float64(epochs)))
		}
	}
	unit := Distribution{0, 1, a.Degrees}
	return min(lowest, a.Reach*unit.student().CDF(deviations))
}

// hasRunsOf reports whether as many runs reached and missed both targets.
func (a *Passage) hasRunsOf(b *Passage) bool { return a.Degrees == b.Degrees && a.Reach == b.Reach }

// After returns the passage of a run that has not reached the target in a number of epochs.
func (a Passage) After(epochs int) Passage {
	a.after, a.next = epochs, a.at
	return a
}

// AfterAccuracy returns the passage of a run whose best accuracy in a number of epochs is known.
func (a Passage) AfterAccuracy(epochs int, best float64) Passage {
	a.after = epochs
	if a.isReached = best >= a.target-tolerance; a.isReached {
		a.Promisable = true
	}
	for a.next < a.at && a.others[a.next].target <= best+tolerance {
		a.next++
	}
	return a
}

// Epochs returns the number of epochs by which a share of the runs that reach the target has reached
// it, at most a number.
func (a *Passage) Epochs(share float64, most int) int {
	missed := a.Probability(float64(a.after))
	level := missed + share*(1-missed)
	if level >= 1-1e-9 {
		return most
	}
	n := math.Ceil(a.Quantile(level) - 1e-9)
	return int(max(float64(a.after+1), min(n, float64(most))))
}

// stopDeviations are the epochs at which the probability of ending in time is computed, in scales about
// the median; between them it is taken as linear. Runs beyond the last one hardly ever reach the target.
var stopDeviations = [...]float64{-.7, 0, .5, .8, 1.1, 1.4, 1.7, 2, 2.3, 2.7, 3.2, 4, 5, 7}

// Stop is a number of epochs for a run that stops at its target.
type Stop struct {
	Epochs      int
	Reached     float64 // probability that it reaches the target by then
	Probability float64 // that it does so in time
}

// Stop chooses a number of epochs for a run that stops at the target. inTime returns the probability
// that a number of epochs ends in time, and most bounds the epochs. It chooses the fewest after which
// the probability is as wanted, or as high as it can be; all of them probably end in time. No epochs
// mean that none do.
func (a *Passage) Stop(inTime func(epochs int) float64, most int, wanted float64) (s Stop) {
	if !a.Known() {
		return s
	}
	missed := a.reachedBy(a.after)
	low, before, last := missed, -1.0, a.after
	for _, z := range stopDeviations {
		n := int(math.Ceil(math.Exp(a.Location+z*a.Scale) - 1e-9))
		if n = min(max(n, 1), most); n <= last {
			continue
		}
		p := inTime(n)
		if p < 0.5 {
			break
		}
		if before < 0 {
			before = p
		}
		reached := a.reachedBy(n)
		share := (reached - low) / max(1-missed, 1e-9)
		s.Epochs = n
		s.Reached += share
		s.Probability += share * (before + p) / 2
		if low, before, last = reached, p, n; s.Probability >= wanted {
			break
		}
	}
	return s
}
