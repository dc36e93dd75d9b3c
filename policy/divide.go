package policy

// Divide gives free units to jobs, one step at a time, to the job whose next step has the highest value
// (Sainte-Laguë's divisor method, if the value is that of the units between). units are those that the
// jobs have at first, and then in the end. step returns the next number of units of a job, and the value
// of the step; a step without a value is not made.
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

// StayFactor favours the units that a job holds, so that values that scatter do not move units after
// each epoch.
const StayFactor = 1.2
