package importer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// point is a value of a metric of MLflow.
type point struct {
	at    int64 // milliseconds since 1970
	value float64
	text  string // of value
	step  int64
}

// pointsOf reads a metric's file: a line per value, with its time, the value and
// its step (older versions have none), oldest step first.
func pointsOf(text string) ([]point, *Refusal) {
	var all []point
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		p := point{step: int64(len(all))}
		var bad error
		if len(words) < 2 {
			return nil, refuse(ReasonUnreadable, "", "line %d is %q, want a time, a value and a step", number, clip(strings.TrimSpace(line)))
		}
		if p.at, bad = strconv.ParseInt(words[0], 10, 64); bad == nil {
			p.text = words[1]
			p.value, bad = strconv.ParseFloat(words[1], 64)
		}
		if bad == nil && len(words) > 2 {
			p.step, bad = strconv.ParseInt(words[2], 10, 64)
		}
		if bad != nil {
			return nil, refuse(ReasonUnreadable, "", "line %d is %q, want a time in milliseconds, a value and a step", number, clip(strings.TrimSpace(line)))
		}
		if p.value-p.value == 0 { // a NaN of a network that diverged says nothing
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b point) int { return cmp.Compare(a.step, b.step) })
	return all, nil
}

// perEpoch refuses a metric that does not have one value for each epoch: its
// steps count from 0 or 1, or they are iterations and as many as the epochs that
// were promised.
func perEpoch(points []point, field, promised string) *Refusal {
	counted := true
	for i, p := range points {
		if i > 0 && p.step == points[i-1].step {
			return refuse(ReasonMixed, field, "step %d was logged twice: the run was restarted, or two runs wrote into it", p.step)
		}
		counted = counted && p.step-points[0].step == int64(i)
	}
	if first := points[0].step; counted && (first == 0 || first == 1) || promised == strconv.Itoa(len(points)) {
		return nil
	}
	if promised == "" {
		promised = "unknown"
	}
	return refuse(ReasonEpochs, field, "its %d values from step %d to %d are not one per epoch (promised: %s): name a metric that is logged each epoch with --columns %s=METRIC", len(points), points[0].step, points[len(points)-1].step, promised, field)
}
