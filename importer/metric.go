package importer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// metricPoint is a value of an MLflow metric.
type metricPoint struct {
	at    int64 // milliseconds since 1970
	value float64
	text  string // text of value
	step  int64
}

// pointsOf parses the file of a metric and sorts its values by step. Each line contains a time, a
// value and a step, which older versions omit.
func pointsOf(text string) ([]metricPoint, *Refusal) {
	var all []metricPoint
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		words = append(words, strconv.Itoa(len(all))) // the step of older versions
		p := metricPoint{text: words[1]}
		var badTime, badValue, badStep error
		p.at, badTime = strconv.ParseInt(words[0], 10, 64)
		p.value, badValue = strconv.ParseFloat(words[1], 64)
		p.step, badStep = strconv.ParseInt(words[min(2, len(words)-1)], 10, 64)
		if len(words) < 3 || cmp.Or(badTime, badValue, badStep) != nil {
			return nil, refuse(ReasonUnreadable, "", "line %d is %q, want a time in milliseconds, a value and a step",
				number, clip(strings.TrimSpace(line)))
		}
		if p.value-p.value == 0 { // omit NaN and infinities of a diverged network
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(a, b metricPoint) int { return cmp.Compare(a.step, b.step) })
	return all, nil
}

// perEpoch rejects a metric without exactly one value per epoch. Steps either count from 0 or 1, or
// are iterations whose number equals the configured number of epochs.
func perEpoch(points []metricPoint, field, promised string) *Refusal {
	counted := true
	for i, p := range points {
		if i > 0 && p.step == points[i-1].step {
			return refuse(ReasonMixed, field,
				"step %d was logged twice: the run was restarted, or two runs wrote to it",
				p.step)
		}
		counted = counted && p.step-points[0].step == int64(i)
	}
	if first := points[0].step; counted && (first == 0 || first == 1) ||
		promised == strconv.Itoa(len(points)) {
		return nil
	}
	return refuse(ReasonEpochs, field,
		"%d values from step %d to %d are not one per epoch (expected: %s): name a metric that is"+
			" logged each epoch with --columns %s=METRIC",
		len(points), points[0].step, points[len(points)-1].step, cmp.Or(promised, "unknown"), field)
}
