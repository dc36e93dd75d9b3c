package trainer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// times returns the times of the first and the last example.
func times(examples []Example) (first, last time.Time) {
	if len(examples) == 0 {
		return first, last
	}
	byTime := func(a, b Example) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) }
	return slices.MinFunc(examples, byTime).At, slices.MaxFunc(examples, byTime).At
}

// thin returns at most maxExamples examples, or one per configuration if that is more: the newest
// of each configuration, and equally many of each as far as possible. Their weights are scaled so
// that each configuration keeps its total weight. Some hundred examples describe a configuration as
// well as a million, but a fit of a million takes minutes.
func thin(examples []Example, maxExamples int) []Example {
	if len(examples) <= maxExamples {
		return examples
	}
	type group struct {
		members []int // newest first
		weight  float64
	}
	groups := map[string]*group{}
	var order []*group
	for i := range examples {
		k := levelText(&examples[i])
		g := groups[k]
		if g == nil {
			g = &group{}
			groups[k] = g
			order = append(order, g)
		}
		g.members, g.weight = append(g.members, i), g.weight+examples[i].Weight
	}
	each := share(maxExamples, order, func(g *group) int { return len(g.members) })
	var kept []int
	factor := make(map[int]float64, maxExamples)
	for _, g := range order {
		slices.SortStableFunc(g.members, func(a, b int) int {
			return examples[b].At.Compare(examples[a].At)
		})
		stay := g.members[:min(each, len(g.members))]
		weight := 0.0
		for _, i := range stay {
			weight += examples[i].Weight
		}
		for _, i := range stay {
			kept, factor[i] = append(kept, i), g.weight/weight
		}
	}
	slices.Sort(kept)
	thinned := make([]Example, len(kept))
	for n, i := range kept {
		thinned[n] = examples[i]
		thinned[n].Weight *= factor[i]
	}
	return thinned
}

// settingText identifies the configuration of an example, including its number of co-located jobs.
func settingText(x *Example) string {
	f := x.Features
	return fmt.Sprint(x.level(), x.Hardware.Rounded(), f.BatchSize, f.CPUs,
		math.Round(f.Load.ConcurrentJobs))
}

// levelText identifies the configuration of an example and its level of foreign load.
func levelText(x *Example) string {
	l := &x.Features.Load
	return fmt.Sprint(settingText(x), l.ForeignCPURatio, l.ForeignIOWaitRatio)
}

// share returns the maximum size of a group such that all groups together have at most total
// members; 1 if there are more groups.
func share[G any](total int, groups []G, size func(G) int) int {
	sizes := make([]int, len(groups))
	for i, g := range groups {
		sizes[i] = size(g)
	}
	slices.SortFunc(sizes, cmp.Compare[int])
	left := total
	for i, s := range sizes {
		if each := left / (len(sizes) - i); each < s {
			return max(1, each)
		}
		left -= s
	}
	return total
}
