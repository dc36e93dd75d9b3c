package tune

import (
	"math"

	"courier/tune/halving"
)

// stagesOf returns the stages of successive halving, each with the epochs that its trials have
// reached at its end: the last stage has all epochs, and each earlier one 1/eta of the next. Every
// stage keeps one of eta trials. There are as many stages as the trials and the epochs allow.
func stagesOf(trials, eta, epochs int) (stages []halving.Stage) {
	count := 1
	for n := eta; n <= trials && n <= epochs; n *= eta {
		count++
	}
	for i := range count {
		reached := float64(epochs) / math.Pow(float64(eta), float64(count-1-i))
		stages = append(stages, halving.Stage{Trials: trials, Epochs: int(math.Round(reached))})
		trials /= eta
	}
	return stages
}

// steps returns the stages with the epochs that a trial runs in each of them: those since the stage
// before, or all if its command cannot continue.
func steps(stages []halving.Stage, continues bool) []halving.Stage {
	run := make([]halving.Stage, len(stages))
	for i, s := range stages {
		run[i] = s
		if i > 0 && continues {
			run[i].Epochs -= stages[i-1].Epochs
		}
	}
	return run
}
