package trainer

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// lastOf returns the time of the last example.
func lastOf(examples []Example) (last time.Time) {
	for i := range examples {
		if at := examples[i].At; at.After(last) {
			last = at
		}
	}
	return last
}

// thin returns at most maxExamples examples, or one per configuration and level of foreign load if that is
// more: the newest of each, and equally many of each as far as possible. Some hundred examples describe a
// configuration as well as a million, but a fit of a million takes minutes.
func thin(examples []Example, maxExamples int) []Example {
	if len(examples) <= maxExamples {
		return examples
	}
	groups := map[string][]int{}
	for i := range examples {
		k := levelText(&examples[i])
		groups[k] = append(groups[k], i)
	}
	var sizes []int
	for _, g := range groups {
		sizes = append(sizes, len(g))
	}
	slices.Sort(sizes)
	each := share(maxExamples, sizes)
	var kept []int
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b int) int { return examples[b].At.Compare(examples[a].At) })
		kept = append(kept, g[:min(each, len(g))]...)
	}
	slices.Sort(kept)
	thinned := make([]Example, len(kept))
	for n, i := range kept {
		thinned[n] = examples[i]
	}
	return thinned
}

// levelText identifies the configuration of an example, including its number of co-located jobs, and its
// level of foreign load.
func levelText(x *Example) string {
	f, l := &x.Features, &x.Features.Load
	return fmt.Sprint(x.level(), x.Hardware.Rounded(), f.BatchSize, f.CPUs,
		math.Round(l.ConcurrentJobs), l.ForeignCPURatio, l.ForeignIOWaitRatio)
}

// share returns the maximum size of a group such that all groups of these rising sizes together have at most
// total members; 1 if there are more groups.
func share(total int, sizes []int) int {
	for i, s := range sizes {
		if each := total / (len(sizes) - i); each < s {
			return max(1, each)
		}
		total -= s
	}
	return math.MaxInt
}
