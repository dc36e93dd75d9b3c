package regress

import "sync"

// parallel cuts the numbers 0 to n-1 into at most as many runs as there are
// threads, none much shorter than least, calls do for each of them at once, and
// returns how many there were.
func parallel(threads, n, least int, do func(run, from, to int)) (runs int) {
	runs = max(1, min(threads, n/max(least, 1)))
	var others sync.WaitGroup
	for run := 1; run < runs; run++ {
		others.Go(func() {
			from, to := part(run, runs, n)
			do(run, from, to)
		})
	}
	from, to := part(0, runs, n)
	do(0, from, to)
	others.Wait()
	return runs
}

// part returns where a run of n numbers begins and ends.
func part(run, runs, n int) (from, to int) { return n * run / runs, n * (run + 1) / runs }
