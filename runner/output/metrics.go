package output

import (
	"math"
	"slices"
	"strings"

	"courier/schemas"
)

// scope is the data on which a metric was measured. A smaller scope is preferred for an accuracy.
type scope int

const (
	scopeValidation scope = iota
	scopeTest
	scopeUnknown
	scopeTraining
)

var (
	validationWords = []string{"val", "valid", "validation", "dev", "eval", "evaluation", "holdout"}
	testWords       = []string{"test", "testing"}
	trainingWords   = []string{"train", "training", "learn"}
)

// scopeOf returns the scope that the words of a name state.
func scopeOf(words []string) scope {
	has := func(known []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(known, w) })
	}
	switch {
	case has(validationWords):
		return scopeValidation
	case has(testWords):
		return scopeTest
	case has(trainingWords):
		return scopeTraining
	}
	return scopeUnknown
}

// metricKind is what a number measures.
type metricKind int

const (
	noMetric metricKind = iota
	metricAccuracy
	metricF1
	metricAUC
	metricPrecision // mean average precision
	metricOverlap   // Dice coefficient, intersection over union
	metricR2
	metricErrorRate // 1 - accuracy
	metricLoss
	metricDistance // an error in the units of the target, which counts where no loss is printed
	metricDuration
	metricElapsed // since the start of the training
)

// kindsByWord are the metrics by the last word of their name.
var kindsByWord = map[string]metricKind{
	"acc": metricAccuracy, "accuracy": metricAccuracy, "accuracies": metricAccuracy,
	"acc1": metricAccuracy, "acc@1": metricAccuracy, "prec@1": metricAccuracy,
	"top1": metricAccuracy, "top@1": metricAccuracy,
	"f1": metricF1, "auc": metricAUC, "auroc": metricAUC,
	"map": metricPrecision, "map50": metricPrecision,
	"dice": metricOverlap, "iou": metricOverlap, "miou": metricOverlap, "r2": metricR2,
	"error": metricErrorRate, "err": metricErrorRate, "merror": metricErrorRate,
	"wer": metricErrorRate, "cer": metricErrorRate, "per": metricErrorRate, "eer": metricErrorRate,

	"loss": metricLoss, "losses": metricLoss, "logloss": metricLoss, "mlogloss": metricLoss,
	"nll": metricLoss, "crossentropy": metricLoss, "entropy": metricLoss, "xent": metricLoss,
	"mse": metricDistance, "rmse": metricDistance, "mae": metricDistance,
	"l1": metricDistance, "l2": metricDistance,

	"time": metricDuration, "took": metricDuration, "duration": metricDuration,
	"seconds": metricDuration, "secs": metricDuration, "elapsed": metricDuration, "dur": metricDuration,
	"cost": metricDuration, "taken": metricDuration,
}

// Words of names that are no metrics of an epoch, and words that a name may end with.
var (
	otherTimes    = strings.Fields("eta remaining left data batch step iter load per eval startup")
	elapsedWords  = strings.Fields("total elapsed wall cumulative")
	trailingWords = strings.Fields("set avg mean average score value rate is of was micro macro weighted")
	squaredWords  = strings.Fields("squared square absolute abs reconstruction l1 l2 log")
	topWords      = strings.Fields("top acc prec precision accuracy rank")
	excludedWords = strings.Fields("best target top5 acc@5 acc5 prec@5 top@5")
)

// kindOf returns what a name measures.
func kindOf(words []string) metricKind {
	isRate := false
	for len(words) > 1 && slices.Contains(trailingWords, words[len(words)-1]) {
		isRate = isRate || words[len(words)-1] == "rate"
		words = words[:len(words)-1]
	}
	if len(words) == 0 || containsAny(words, excludedWords) {
		return noMetric
	}
	last := words[len(words)-1]
	if n := len(words); n > 1 && slices.Contains(topWords, words[n-2]) {
		switch last {
		case "1", "@1":
			return metricAccuracy
		case "5", "@5":
			return noMetric
		}
	}
	kind, isKnown := kindsByWord[last]
	if !isKnown {
		kind = kindsByWord[strings.Join(words[max(0, len(words)-3):], "")] // mIoU is three words
	}
	switch {
	case kind == metricErrorRate && containsAny(words, squaredWords):
		return metricDistance
	case kind == metricDuration && last == "cost" && !slices.Contains(words, "time"):
		return metricLoss
	case kind == metricDuration && containsAny(words, otherTimes):
		return noMetric
	case kind == metricDuration && containsAny(words, elapsedWords):
		return metricElapsed
	case kind == metricLoss && isRate, kind == metricAccuracy && containsAny(words, []string{"5"}):
		return noMetric
	}
	return kind
}

func containsAny(words, known []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(known, w) })
}

// measurements are the metrics of an epoch. Of several ones of the same rank, the last one counts.
type measurements struct {
	accuracy, loss         *float64
	accuracyRank, lossRank int
	samples                uint64
	seconds                float64 // duration of the epoch; 0: not printed
	elapsed                float64 // since the start of the training; 0: not printed

	metric Metric // behind accuracy, or else a loss on held-out data
}

// Metric is a metric of an epoch as the job printed it.
type Metric struct {
	Name  string  // in lower-case words, such as "val error"; empty: no metric
	Value float64 // as printed: a percentage is not converted
}

// metricOf returns the metric with a name of these words.
func metricOf(words []string, v float64) Metric {
	name := strings.Join(words, " ")
	return Metric{Name: strings.ToValidUTF8(name[:min(len(name), schemas.MaxMetricLength)], ""), Value: v}
}

// setAccuracy takes a metric between 0 and 1 where larger is better, with the number as printed.
func (m *measurements) setAccuracy(
	v float64, s scope, kind metricKind, samples uint64, printed Metric,
) {
	ratio := validAccuracy(v)
	rank := int(s)*int(metricLoss) + int(kind)
	if ratio == nil || m.accuracy != nil && rank > m.accuracyRank {
		return
	}
	m.accuracy, m.accuracyRank, m.samples, m.metric = ratio, rank, samples, printed
}

// isValidated reports whether the accuracy was measured on data that was held out.
func (m *measurements) isValidated() bool {
	return m.accuracy != nil && m.accuracyRank < int(scopeUnknown)*int(metricLoss)
}

// setLoss takes a loss. The loss of the training is preferred, because that is what an epoch event
// contains.
func (m *measurements) setLoss(v float64, s scope, kind metricKind, printed Metric) {
	if isFinite(v) && m.accuracy == nil && (s == scopeValidation || s == scopeTest) {
		m.metric = printed
	}
	rank := 2 * int(scopeTraining-s)
	if kind == metricDistance {
		rank += 2*int(scopeTraining) + 1
	}
	if !isFinite(v) || m.loss != nil && rank > m.lossRank {
		return
	}
	m.loss, m.lossRank = &v, rank
}

// percentages converts accuracies of a job to ratios. After the first accuracy above 1, all of
// them are percentages.
type percentages struct{ isPercent bool }

func (p *percentages) toRatio(v float64, unit string) float64 {
	if strings.TrimSpace(unit) == "%" {
		return fromPercent(v)
	}
	if v > 1 && v <= 100 {
		p.isPercent = true
	}
	if p.isPercent {
		return fromPercent(v)
	}
	return v
}

// fromPercent returns a percentage as a ratio without the digits that the division adds.
func fromPercent(v float64) float64 { return math.Round(v*1e10) / 1e12 }

// setMetric takes a number by its kind.
func (m *measurements) setMetric(
	kind metricKind, s scope, n *token, p *percentages,
) (isSet bool) {
	v, unit, printed := n.value, n.unit, metricOf(n.words, n.value)
	if math.IsNaN(v) && kind != metricLoss && kind != metricDistance {
		return false
	}
	switch kind {
	case metricAccuracy, metricF1, metricAUC, metricPrecision, metricOverlap:
		m.setAccuracy(p.toRatio(v, unit), s, kind, 0, printed)
	case metricR2:
		m.setAccuracy(v, s, kind, 0, printed)
	case metricErrorRate:
		if strings.TrimSpace(unit) == "%" {
			v = fromPercent(v)
		}
		m.setAccuracy(math.Round((1-v)*1e12)/1e12, s, kind, 0, printed)
	case metricLoss, metricDistance:
		m.setLoss(v, s, kind, printed)
	case metricDuration:
		m.seconds = max(m.seconds, validSeconds(v*durationUnit(unit))) // that of a part is shorter
	case metricElapsed:
		m.elapsed = validSeconds(v * durationUnit(unit))
	default:
		return false
	}
	return true
}

// durationUnit returns the seconds of a unit; a duration without one is in seconds.
func durationUnit(unit string) float64 {
	if seconds := unitSeconds(unit); seconds > 0 {
		return seconds
	}
	return 1
}
