package output

import (
	"math"
	"strings"
	"time"
	"unicode"

	"courier/schemas"
)

// measurements are the metrics of an epoch in a file of a logger. Of several ones of the same rank,
// the last one counts.
type measurements struct {
	accuracy, loss         *float64
	accuracyRank, lossRank int
	seconds                float64 // time of the epoch, or since the start; 0: not printed
	isEpochTime            bool    // its name says that it is of the epoch
	metric                 Metric  // behind accuracy, or else a loss on held-out data
}

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

// percentages converts accuracies of a job to ratios. After the first value of a metric above 1, all of
// its values are percentages.
type percentages map[string]bool

func (p percentages) toRatio(label string, v float64) float64 {
	if v > 1 && v <= 100 && len(p) < maxPercent {
		p[label] = true
	}
	if p[label] {
		return fromPercent(v)
	}
	return v
}

// fromPercent returns a percentage as a ratio without the digits that the division adds.
func fromPercent(v float64) float64 { return math.Round(v*1e10) / 1e12 }

// complement returns the accuracy of an error rate without the digits that the subtraction adds.
func complement(v float64) float64 { return math.Round((1-v)*1e12) / 1e12 }

// report returns the report of an epoch.
func (m *measurements) report(epoch uint32, at time.Time) EpochReport {
	return EpochReport{Epoch: epoch, Loss: m.loss, Accuracy: m.accuracy, Metric: m.metric, At: at}
}

// set takes a number by the meaning of its name, and reports whether it is a metric.
func (m *measurements) set(n *name, label string, v float64, p percentages) (isSet bool) {
	const no = flagExcluded | flagConfig | flagPart | flagTotal | flagSetting
	if math.IsNaN(v) || math.IsInf(v, 0) || n.flags&no != 0 {
		return false
	}
	printed := metricOf(label, v)
	switch {
	case n.kind == kindRate && n.unknown > 0:
		return false
	case n.kind == kindRate:
		m.setAccuracy(complement(p.toRatio(label, v)), n, printed)
	case n.kind.isShare():
		m.setAccuracy(p.toRatio(label, v), n, printed)
	case n.kind == kindLoss || n.kind == kindDistance:
		m.setLoss(v, n, printed)
	case n.kind == kindTime && n.scope < scopeTest:
		isEpochTime := n.counter == countsEpochs
		if s := validSeconds(v); s > 0 && (isEpochTime || !m.isEpochTime) {
			m.seconds, m.isEpochTime = s, isEpochTime
		}
	default:
		return false
	}
	return true
}

// setAccuracy takes a metric between 0 and 1 where larger is better, with the number as printed.
func (m *measurements) setAccuracy(v float64, n *name, printed Metric) {
	ratio := validAccuracy(v)
	rank := accuracyRank(&reading{name: *n, scope: n.scope})
	if ratio == nil || m.accuracy != nil && rank > m.accuracyRank {
		return
	}
	m.accuracy, m.accuracyRank, m.metric = ratio, rank, printed
}

// setLoss takes a loss. The loss of the training is preferred, because that is what an epoch event
// contains.
func (m *measurements) setLoss(v float64, n *name, printed Metric) {
	if m.accuracy == nil && n.scope >= scopeTest {
		m.metric = printed
	}
	rank := rankOfLoss(n)
	if m.loss != nil && rank > m.lossRank {
		return
	}
	m.loss, m.lossRank = &v, rank
}

// lossOfTraining is the last rank of a loss of the training as a whole.
const lossOfTraining = 1

// rankOfLoss orders losses of a file: that of the training first, parts of it last.
func rankOfLoss(n *name) int {
	rank := [...]int{scopeTrain: 0, scopeNone: 1, scopeTest: 2, scopeValidation: 3}[n.scope]
	if n.kind == kindDistance {
		rank += partOfLoss / 2
	}
	if n.unknown > 0 {
		rank += partOfLoss
	}
	return rank
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
