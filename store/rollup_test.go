package store_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"courier/schemas"
)

// rollUp computes the roll-up of samples to minutes. The samples' numbers are
// whole 64ths, so that sums do not depend on their order.
func rollUp(samples []*schemas.Sample) []minute {
	type key struct {
		node string
		at   time.Time
	}
	groups := make(map[key][]*schemas.Sample)
	for _, s := range samples {
		k := key{s.Node, s.At.Truncate(time.Minute)}
		groups[k] = append(groups[k], s)
	}
	var all []minute
	for k, group := range groups {
		m := minute{Node: k.node, Minute: k.at, Samples: uint64(len(group))}
		m.CPU, m.Most = mean(group, func(s *schemas.Sample) *float64 { return s.CPURatio })
		m.IOWait, _ = mean(group, func(s *schemas.Sample) *float64 { return s.IOWaitRatio })
		m.Load, _ = mean(group, func(s *schemas.Sample) *float64 { return s.LoadAverage })
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b minute) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), a.Minute.Compare(b.Minute))
	})
	return all
}

// mean returns mean and largest of what was measured; nil if nothing was.
func mean(group []*schemas.Sample, of func(*schemas.Sample) *float64) (average, most *float64) {
	sum, n := 0.0, 0
	for _, s := range group {
		if v := of(s); v != nil {
			if most == nil || *v > *most {
				most = v
			}
			sum += *v
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	return pointer(sum / float64(n)), most
}
