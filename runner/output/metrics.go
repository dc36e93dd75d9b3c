package output

import (
	"math"
	"strings"
	"time"
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
	return Metric{Name: strings.ToValidUTF8(name[:min(len(name), schemas.MaxMetricLength)], ""), Value: v}
}

// labelWords returns the lower-case words of a name, such as "val acc" of "valAcc".
func labelWords(label string) string {
	var b strings.Builder
	previous := ' '
	for _, r := range label {
		isWord := unicode.IsLetter(r) || unicode.IsDigit(r) || r == '@'
		isGap := !isWord || unicode.IsUpper(r) && unicode.IsLower(previous)
		if isGap && b.Len() > 0 && !strings.HasSuffix(b.String(), " ") {
			b.WriteByte(' ')
		}
		if isWord {
			b.WriteRune(unicode.ToLower(r))
		}
		previous = r
	}
	return strings.TrimSpace(b.String())
}

// fileMetrics reads the metrics of epochs from the names and values in the file of a logger.
type fileMetrics struct {
	chooser
	own   map[uint64]*word // words that the user added to the vocabulary
	times epochTimes

	isTrainingLoss bool // a loss on held-out data is none of the epoch
}

func newFileMetrics(kinds MetricKinds) fileMetrics {
	return fileMetrics{chooser: chooser{percent: map[uint64]bool{}}, own: kinds.words()}
}

// add adds a value to the epoch b, and reports whether it is a result on held-out data.
func (m *fileMetrics) add(b *block, n name, label string, v float64) (isHeldOut bool) {
	n.start, n.end = 0, len(label)
	f := field{name: n, value: v}
	isTime := n.kind == kindTime
	if math.IsNaN(v) || math.IsInf(v, 0) || !isReading(&f) || n.flags&(flagTotal|flagSetting) != 0 ||
		isTime && (n.scope >= scopeTest || validSeconds(v) == 0) {
		return false
	}
	m.notePercent(&f)
	b.set(&f, n.scope, ofEpoch, []byte(label))
	return isResult(&f) && n.scope >= scopeTest
}

// report returns the report of an epoch.
func (m *fileMetrics) report(epoch uint32, b *block, at time.Time) EpochReport {
	m.noteUnnamed(b)
	e := EpochReport{Epoch: epoch, At: at}
	c := m.choose(b)
	if m.isTrainingLoss && c.loss != nil && c.loss.scope >= scopeTest {
		c.loss, m.lossName = nil, 0
	}
	c.set(&e)
	seconds, isEpochTime := 0.0, false
	for i := range b.readings {
		x := &b.readings[i]
		if isEpoch := x.name.counter == countsEpochs; x.name.kind == kindTime && (isEpoch || !isEpochTime) {
			seconds, isEpochTime = x.value, isEpoch
		}
	}
	e.Seconds = m.times.duration(seconds, isEpochTime)
	return e
}

// epochTimes distinguishes durations of epochs from times since the start of the training, which only
// grow. While the times of a file only grow, none is used, and the duration of an epoch is the time
// between two rows.
type epochTimes struct {
	last         float64
	areDurations bool
}

// duration returns a time if it is the duration of an epoch, else 0. isEpochTime reports whether the name
// of the time says that it is one.
func (t *epochTimes) duration(v float64, isEpochTime bool) float64 {
	if v == 0 {
		return 0
	}
	t.areDurations = t.areDurations || isEpochTime || t.last > 0 && v <= t.last
	t.last = v
	if !t.areDurations {
		return 0
	}
	return v
}
