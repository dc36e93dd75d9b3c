package policy

// Divide gives free units to jobs, one step at a time, to the job whose next step has the highest value.
// It is the divisor method of Sainte-Laguë if the value of a step is the share of the job divided by the
// mean of its units before and after the step. units has the units of each job, and is updated. step
// returns the next number of units of a job, and the value of the step; a step without a value is not
// made.
func Divide(units []int, free int, step func(job, units int) (to int, value float64)) {
	for {
		best, to, highest := -1, 0, 0.0
		for i := range units {
			next, value := step(i, units[i])
			if value > highest && next-units[i] <= free {
				best, to, highest = i, next, value
			}
		}
		if best < 0 {
			return
		}
		free -= to - units[best]
		units[best] = to
	}
}

// stayFactor is the factor by which Redivide raises the value of units that a job holds.
const stayFactor = 1.2

// Redivide is Divide for running jobs. It favours the units that they hold, so that values that scatter
// do not move units after each epoch.
func Redivide(jobs []Job, units []int, free int, step func(job, units int) (to int, value float64)) {
	Divide(units, free, func(i, units int) (to int, value float64) {
		to, value = step(i, units)
		if to <= jobs[i].Units {
			value *= stayFactor
		}
		return to, value
	})
}
