package trainer

import (
	"cmp"
	"fmt"
	"slices"
)

// thin leaves most examples at most, or one of each setting if that is more: the
// newest of each, and as many of each as there are while that is possible. Those
// that stay weigh as much as all of their setting did. What is known of a setting
// after some hundred examples is not known better after a million, but a fit would
// take minutes, and the newest are the truest.
func thin(examples []Example, most int) []Example {
	if len(examples) <= most {
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
	each := share(most, order, func(g *group) int { return len(g.members) })
	var kept []int
	factor := make(map[int]float64, most)
	for _, g := range order {
		slices.SortStableFunc(g.members, func(a, b int) int { return examples[b].At.Compare(examples[a].At) })
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

// levelText is the setting of an example with the level of its foreign load.
func levelText(x *Example) string {
	l := &x.Features.Load
	return fmt.Sprint(settingText(x), l.ForeignCPURatio, l.ForeignIOWaitRatio)
}

// share is how many of each group stay, so that all together are most at most; 1
// if there are more groups.
func share[G any](most int, groups []G, size func(G) int) int {
	sizes := make([]int, len(groups))
	for i, g := range groups {
		sizes[i] = size(g)
	}
	slices.SortFunc(sizes, cmp.Compare[int])
	left := most
	for i, s := range sizes {
		if each := left / (len(sizes) - i); each < s {
			return max(1, each)
		}
		left -= s
	}
	return most
}
