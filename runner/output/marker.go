package output

import (
	"regexp"
	"slices"
	"strings"

	"courier/schemas"
)

// Words before a number that is not the number of an epoch.
var (
	notEpochs = strings.Fields("total max maximum num number n best per every last warmup " +
		"patience min of")
	epochWords   = []string{"epoch", "ep"}
	roundWords   = []string{"iteration", "round"}
	numberWords  = []string{"number", "no", "nr", "num"}
	fractionHead = regexp.MustCompile(`^\[(\d+)/(\d+)\]`)
	trainHead    = regexp.MustCompile(`^Train: (\d+) \[`) // of timm
	tutorialHead = regexp.MustCompile(`^\[(\d+), +\d+\] loss`)
)

// marker returns the number of the epoch in a line, and the number of all epochs if it is there.
func marker(line string, tokens []token) (number, total uint32, ok bool) {
	for i, t := range tokens {
		if !t.isWhole || t.unit != "" || t.value > schemas.MaxEpochs || len(t.words) == 0 && i > 0 {
			continue
		}
		words := t.words
		if n := len(words); n > 1 && slices.Contains(numberWords, words[n-1]) {
			words = words[:n-1]
		}
		isEpoch := len(words) > 0 && slices.Contains(epochWords, words[len(words)-1]) &&
			!containsAny(words[:len(words)-1], notEpochs)
		isRound := i == 0 && len(words) == 1 && slices.Contains(roundWords, words[0]) &&
			hasAnyMetric(tokens)
		isFirst := i == 0 && hasAnyMetric(tokens) && (fractionHead.MatchString(line) ||
			tutorialHead.MatchString(line) || trainHead.MatchString(line))
		if !isEpoch && !isRound && !isFirst {
			continue
		}
		if i+1 < len(tokens) && isTotal(tokens[i+1]) {
			total = uint32(tokens[i+1].value)
		}
		return uint32(t.value), total, true
	}
	return 0, 0, false
}

// Headings in which the number of the epoch is not behind the word: of MMEngine and ESPnet.
var (
	scopedHeading = regexp.MustCompile(`\bEpoch\((train|val|test)\) +\[(\d+)\]`)
	resultHeading = regexp.MustCompile(`\b(\d+)epoch results:`)
)

// withPlainHeading returns a line with the number of the epoch behind the word.
func withPlainHeading(line string) string {
	switch {
	case strings.Contains(line, "Epoch("):
		return scopedHeading.ReplaceAllString(line, "Epoch $2 $1")
	case strings.Contains(line, "epoch results:"):
		return resultHeading.ReplaceAllString(line, "epoch $1:")
	}
	return line
}

// isTotal reports whether a number is the second one of "3/10" or "3 of 10".
func isTotal(t token) bool {
	gap := strings.Trim(t.gap, " ")
	isSeparator := gap == "/" || gap == "of" || gap == "out of"
	return isSeparator && t.isWhole && t.value <= schemas.MaxEpochs
}

func hasAnyMetric(tokens []token) bool {
	return slices.ContainsFunc(tokens, func(t token) bool {
		switch t.kind() {
		case noMetric, metricDuration, metricElapsed:
			return false
		}
		return true
	})
}

// Words before a number that counts parts of an epoch.
var partWords = strings.Fields("step steps batch batches iter iters iteration minibatch")

// part is how much of an epoch a line shows.
type part struct {
	isInProgress bool
	isComplete   bool    // a progress bar at its end
	done         float64 // steps so far
	steps        float64 // of the epoch; 0: not printed
}

// barPercent matches the percentage of a progress bar.
var barPercent = regexp.MustCompile(`(\d+)%\|`)

// partOf finds counters such as "[600/938]", "step 3" and "62%|███".
func partOf(line string, tokens []token, hasMarker bool) part {
	var p part
	seenEpoch := !hasMarker
	for i := range tokens {
		n := &tokens[i]
		isEpoch := len(n.words) > 0 && (slices.Contains(epochWords, n.words[len(n.words)-1]) ||
			slices.Contains(roundWords, n.words[0]))
		isHead := i == 0 && (fractionHead.MatchString(line) || trainHead.MatchString(line))
		if !seenEpoch && (isEpoch || isHead) {
			seenEpoch = true
			continue
		}
		kind := n.kind()
		isCounted := kind == noMetric && isFraction(tokens, i)
		switch {
		case isCounted:
			p.done, p.steps = n.value, tokens[i+1].value
			p.isComplete = n.value >= p.steps
			p.isInProgress = !p.isComplete
		case kind == noMetric && len(n.words) > 0 && n.isWhole && n.unit == "" &&
			slices.Contains(partWords, n.words[len(n.words)-1]):
			p.isInProgress = !p.isComplete
		}
	}
	if tutorialHead.MatchString(line) {
		p.isInProgress = true
	}
	if m := barPercent.FindStringSubmatch(line); m != nil {
		p.isComplete = m[1] == "100"
		p.isInProgress = !p.isComplete
	}
	return p
}

// isFraction reports whether a number is the first one of "3/10".
func isFraction(tokens []token, i int) bool {
	return i+1 < len(tokens) && strings.Trim(tokens[i+1].gap, " ") == "/" &&
		tokens[i].isWhole && tokens[i+1].isWhole && tokens[i+1].value > 0
}
