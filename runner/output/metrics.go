package output

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"courier/schemas"
)

// Metric is a metric of an epoch as the job printed it.
type Metric struct {
	Name  string  // in lower-case words, such as "val error"; empty: no metric
	Value float64 // as printed: a percentage is not converted
}

// metricOf returns the metric with a name.
func metricOf(name string, v float64) Metric {
	name = strings.ToLower(name[:min(len(name), schemas.MaxMetricLength)])
	return Metric{Name: strings.ToValidUTF8(name, ""), Value: v}
}

// labelWords returns the words of a name, such as "val acc" of "val_acc".
func labelWords(label string) string {
	isGap := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '@' }
	return strings.Join(strings.FieldsFunc(label, isGap), " ")
}

// Values reads the metrics of epochs from names and values, as loggers and the instrumentation give them. Its zero
// value is ready for use.
type Values struct{ chooser }

// add adds a value of a line to the epoch b, and reports whether it is a result on held-out data.
func (m *Values) add(b *block, f *field, l *line) (isHeldOut bool) {
	n, isTime := &f.name, f.name.kind == kindTime
	if f.unit == unitNone {
		f.setNamedUnit(string(l.text[n.start:n.end]))
	}
	if math.IsNaN(f.value) || math.IsInf(f.value, 0) || !isReading(f) || n.flags&(flagTotal|flagSetting) != 0 ||
		isTime && (n.scope >= scopeTest || validSeconds(f.value) == 0) {
		return false
	}
	m.notePercent(f)
	b.set(f, n.scope, levelOf(f, noProgress), false, l)
	return isResult(f) && n.scope >= scopeTest
}

// setNamedUnit sets the unit that the name of a plain number has, as in "time (min)" and "acc_%".
func (f *field) setNamedUnit(label string) {
	_, unit := CutUnit(label)
	switch {
	case strings.Contains(label, "%"):
		f.unit = unitPercent
	case f.name.kind == kindTime && unit > 0:
		f.value, f.unit = f.value*unit, unitTime
	}
}

// report completes the report of an epoch.
func (m *Values) report(e EpochReport, b *block) EpochReport {
	m.noteUnnamed(b)
	c := m.choose(b)
	if c.loss != nil && c.loss.scope >= scopeTest { // the report has the loss of the training only
		c.loss, m.lossName = nil, 0
	}
	c.set(&e)
	for i := range b.readings { // other times may be since the start
		if x := &b.readings[i]; x.name.kind == kindTime && x.name.counter == countsEpochs {
			e.Seconds = x.value
		}
	}
	return e
}

// Report completes the report of an epoch with the metrics among the values.
func (m *Values) Report(e EpochReport, values map[string]float64) EpochReport {
	b := newBlock()
	for _, label := range slices.Sorted(maps.Keys(values)) {
		n := nameOf([]byte(label), nil)
		n.start, n.end = 0, len(label)
		m.add(b, &field{name: n, value: values[label]}, &line{text: []byte(label)})
	}
	seconds := e.Seconds
	e = m.report(e, b)
	e.Seconds = seconds
	return e
}
