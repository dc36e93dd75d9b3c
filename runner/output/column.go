package output

import (
	"bytes"
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Quantity is what a column of a table holds.
type Quantity uint8

// The quantities. Other columns have none.
const (
	QuantityNone Quantity = iota
	QuantityAccuracy
	QuantityErrorRate // 1 - accuracy
	QuantityLoss
)

// Column is the meaning of a column's name, by the vocabulary of the recogniser.
type Column struct {
	Quantity   Quantity
	IsTraining bool // measured on the training data; also true for the word alone, such as "train"
	IsHeldOut  bool // measured on validation or test data
	Rank       int  // among columns of accuracies and errors, or of losses: the lowest is preferred
}

// ColumnOf returns the meaning of a column's name, such as "metrics/mAP50(B)" or "val_acc".
func ColumnOf(label string) Column {
	n := nameOf([]byte(topOne.ReplaceAllString(label, "top1")), nil)
	c := Column{IsTraining: n.scope == scopeTrain, IsHeldOut: n.scope >= scopeTest}
	const no = flagExcluded | flagConfig | flagPart | flagTotal | flagSetting
	if n.flags&no != 0 {
		return c
	}
	x := reading{name: n, scope: n.scope}
	if n.counter == countsInner { // of a step, not of the epoch
		x.level = ofLastBatch
	}
	switch {
	case n.kind == kindRate && n.unknown == 0:
		c.Quantity = QuantityErrorRate
	case n.kind.isShare() && n.kind != kindRate:
		c.Quantity = QuantityAccuracy
		if n.unknown == 0 && complement.MatchString(label) {
			c.Quantity = QuantityErrorRate
		}
	case n.kind == kindLoss && n.unknown == 0:
		c.Quantity, c.Rank = QuantityLoss, lossRank(&x)
		return c
	}
	c.Rank = accuracyRank(&x)
	return c
}

var (
	topOne     = regexp.MustCompile(`(?i)top-1\b`)
	complement = regexp.MustCompile(`^1 ?- ?\pL`) // 1-acc, but not 1-shot acc
)

// CutUnit returns a name without the unit of time at its end, and the unit in seconds; 0 without one.
func CutUnit(name string) (base string, unit float64) {
	trimmed := strings.TrimRight(name, " )]")
	i := strings.LastIndexFunc(trimmed, func(c rune) bool { return !unicode.IsLetter(c) })
	if i > 0 {
		base, unit = trimmed[:i], secondsOf(trimmed[i+1:])
	}
	hump := strings.LastIndexFunc(trimmed, unicode.IsUpper)
	if hump > max(i+1, 0) && hump < len(trimmed)-1 && secondsOf(trimmed[hump:]) > 0 { // durationMillis
		return trimmed[:hump], secondsOf(trimmed[hump:])
	}
	return cmp.Or(base, name), unit
}

// secondsOf returns the seconds of a unit of time; 0 for another word.
func secondsOf(word string) float64 {
	if w := vocabulary[hashOf([]byte(word))]; w != nil {
		return w.seconds
	}
	return 0
}

// ParseSeconds returns the seconds of a number, or of a text such as 8m13.5s, 1.2min, 01:02:03, 1-02:03:04
// or "0 days 00:05:00". Infinities are no durations.
func ParseSeconds(text string) (seconds float64, ok bool) {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return v, v-v == 0
	}
	rest := []byte(text)
	if days, clock, found := bytes.Cut(rest, []byte("-")); found && bytes.IndexByte(clock, ':') > 0 { // of Slurm
		rest = slices.Concat(days, []byte(" days "), clock)
	}
	s := scanner{line: line{text: rest}, name: name{hash: 1}} // a name, so that a clock is a duration
	for i := 0; i < len(rest); {
		switch {
		case isDigit(rest[i]):
			i = s.number(i)
			s.name.hash = 1
		case rest[i] == ' ' || rest[i] == ',':
			i++
		default:
			return 0, false
		}
	}
	if len(s.fields) != 1 || s.fields[0].unit != unitTime {
		return 0, false
	}
	v := s.fields[0].value
	return v, !math.IsInf(v, 0)
}

// FromPercent returns a percentage as a ratio, without the digits that the division adds.
func FromPercent(v float64) float64 { return math.Round(v*1e10) / 1e12 }

// Complement returns the accuracy of an error rate, or the rate of an accuracy, without the digits that the
// subtraction adds.
func Complement(v float64) float64 { return math.Round((1-v)*1e12) / 1e12 }
