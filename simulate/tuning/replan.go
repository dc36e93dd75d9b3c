package tuning

import (
	"math"

	"courier/tune/halving"
)

// trainingView is a running training with a target loss and a deadline.
type trainingView struct {
	Done          int     // epochs
	Left          float64 // seconds until the deadline
	Option        int     // current option, an index of the front; negative: none
	PlannedEpochs float64 // in total, of the current plan; 0: none
	Forecast      lossForecast
	SwitchCost    float64 // of warming the workers of another option
}

// trainingPlan is the option for the next epochs.
type trainingPlan struct {
	Option        int
	PlannedEpochs float64
}

// replanTraining returns the option of a training for the next epoch. The forecast's High must be the
// quantile of the wanted confidence.
//
// It keeps the current option unless the forecast asks for a new plan or the deadline is in danger.
// Otherwise it takes the cheapest option that meets the deadline with the median of the remaining
// epochs, and with which the fastest option could still meet it if there were as many as the upper
// bound. A switch to a cheaper option must save at least twice its cost. Without options, or with a
// current one that is not among them, it keeps the plan.
func replanTraining(front []halving.TrialOption, v trainingView) trainingPlan {
	keep := trainingPlan{Option: v.Option, PlannedEpochs: v.PlannedEpochs}
	if len(front) == 0 || v.Option >= len(front) {
		return keep
	}
	isSafe := v.Option >= 0 && v.meets(front, v.Option)
	if isSafe && !v.Forecast.needsReplan(v.PlannedEpochs, float64(v.Done)) {
		return keep
	}
	p := trainingPlan{Option: len(front) - 1, PlannedEpochs: v.Forecast.Median}
	for k := range front {
		if v.meets(front, k) {
			p.Option = k
			break
		}
	}
	if isSafe {
		remaining := v.Forecast.Median - float64(v.Done)
		if saved := remaining * (front[v.Option].Cost - front[p.Option].Cost); saved < 2*v.SwitchCost {
			p.Option = v.Option
		}
	}
	return p
}

// meets reports whether an option meets the deadline with the median of the remaining epochs, and
// after one more epoch the fastest option would with the upper bound.
func (v *trainingView) meets(front []halving.TrialOption, option int) bool {
	seconds, fastest := front[option].Seconds, front[len(front)-1].Seconds
	median := math.Max(1, math.Ceil(v.Forecast.Median)-float64(v.Done))
	most := math.Max(1, math.Ceil(v.Forecast.High)-float64(v.Done))
	return median*seconds <= v.Left && seconds+(most-1)*fastest <= v.Left
}
