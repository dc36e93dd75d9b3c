package output

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"courier/schemas"
)

// text finds epochs in the text that training programs and their progress bars print. It does not
// know the frameworks: it reads numbers with the words before them.
//
// An epoch begins with a line that has its number, such as "Epoch 3/10". Its metrics are in that
// line, in the lines that follow, or in the drawings of a progress bar. In general an epoch ends
// when the next one begins. It ends earlier with a line of the shape that ended the previous epoch,
// and with a line that has both the number and a metric of validation.
type text struct {
	current *openEpoch // the epoch that has not ended; nil: none
	last    uint32     // last reported epoch
	hasLast bool

	shape     string // of the line that ended the previous epoch; empty: none
	waits     bool   // metrics of an epoch came after its end: only the next epoch ends an epoch
	isStepped bool   // epochs without any metric are counted, because there were two in a row

	held        *EpochReport // first epoch without any metric
	rank        string       // of the first process that printed an epoch; empty: none has a rank
	percentages percentages
	columns     []column // of a table; nil: no head was printed
	rounds      *rounds  // of boosting; nil: no round was printed
	isSeen      bool
}

// openEpoch is an epoch that may get more metrics.
type openEpoch struct {
	measurements

	number, total uint32 // as printed; total 0: not printed
	beganAt       time.Time
	at            time.Time // of the last line with a metric; zero: none
	section       scope     // of metrics without one, by the last line that has a scope
	isInProgress  bool      // the last line shows a part of the epoch
	isLastOnly    bool      // of Lightning's bar, of which a pipe gets only the last drawing
	steps         float64   // of the epoch; 0: not printed
	shapes        map[string]int
	lastShape     string
}

// maxShapes bounds the shapes of an epoch's lines that are compared.
const maxShapes = 64

// Line implements lineFormat.
func (t *text) Line(line []byte, at time.Time) []EpochReport { return t.line(string(line), at, true) }

// Redraw implements redrawFormat.
func (t *text) Redraw(line []byte, at time.Time) []EpochReport {
	return t.line(string(line), at, false)
}

// Prefixes of loggers and launchers: time stamps, the service of docker compose, and the rank of
// srun --label or mpirun --tag-output.
var (
	stampPrefix = regexp.MustCompile(`^\[?(?:\d{4}-\d\d-\d\d|\d\d/\d\d/\d\d(?:\d\d)?)?[T ]?` +
		`\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?[\s|:,-]*`)
	servicePrefix = regexp.MustCompile(`^[A-Za-z][\w.-]*\s*\|\s`)
	taskPrefix    = regexp.MustCompile(`^(?:(\d+): |\[\d+,(\d+)\]<std(?:out|err)>:\s*)`)
	rankWord      = regexp.MustCompile(`(?i)^\W*(?:local[_ ]|global[_ ])?(?:rank|gpu|worker|proc(?:ess)?)[ _:=#]*(\d+)\b[\]):|]*\s*`)
)

// withoutPrefix removes prefixes, and returns the rank of the process if the line states it.
func withoutPrefix(line string) (rest, rank string) {
	if m := servicePrefix.FindString(line); m != "" && len(m) < len(line) {
		line = line[len(m):]
	}
	if m := stampPrefix.FindString(line); m != "" {
		line = line[len(m):]
	}
	if m := taskPrefix.FindStringSubmatch(line); m != nil {
		line, rank = line[len(m[0]):], m[1]+m[2]
	}
	if m := rankWord.FindStringSubmatch(line); m != nil {
		line, rank = line[len(m[0]):], m[1]
	}
	return line, rank
}

func (t *text) line(line string, at time.Time, isFinal bool) []EpochReport {
	if strings.Contains(line, "][Wall Clock ") {
		return nil // BigDL, whose lines are read by their own format
	}
	line, rank := withoutPrefix(line)
	if t.isOtherRank(rank) {
		return nil
	}
	if reports, isRow := t.tableLine(line, at); isRow {
		return reports
	}
	tokens := scan(line)
	if reports, isRound := t.roundLine(line, tokens, at); isRound {
		return reports
	}
	if t.columns != nil || t.rounds != nil {
		return nil
	}

	number, total, hasMarker := marker(line, tokens)
	var reports []EpochReport
	if hasMarker {
		isOpen := t.current != nil && t.current.number == number
		if !isOpen && t.current == nil && t.hasLast && number == t.last {
			t.waits = t.waits || isFinal && t.hasLateMetric(line, tokens)
			return nil
		}
		if !isOpen {
			reports = t.begin(number, total, at)
			if rank != "" && t.rank == "" {
				t.rank = rank
			}
		}
	}
	if t.current == nil {
		return reports
	}
	t.current.isLastOnly = t.current.isLastOnly || hasMarker && strings.Contains(line, " • ")
	hasMetric := t.read(line, tokens, hasMarker)
	return append(reports, t.take(line, hasMarker, hasMetric, isFinal, at)...)
}

// isOtherRank reports whether a line is from another process than those before.
func (t *text) isOtherRank(rank string) bool { return rank != "" && t.rank != "" && rank != t.rank }

// hasLateMetric reports whether a line has a metric of validation.
func (t *text) hasLateMetric(line string, tokens []token) bool {
	e := openEpoch{section: scopeUnknown}
	late := text{current: &e, percentages: t.percentages}
	late.read(line, tokens, true)
	return e.accuracy != nil && e.accuracyRank < int(scopeUnknown)*int(metricLoss)
}

// begin ends the current epoch and begins another one.
func (t *text) begin(number, total uint32, at time.Time) []EpochReport {
	var reports []EpochReport
	if e := t.current; e != nil {
		t.shape = ""
		if e.shapes[e.lastShape] == 1 && !t.waits {
			t.shape = e.lastShape
		}
		reports = t.close(at)
	}
	t.current = &openEpoch{
		number:  number,
		total:   total,
		beganAt: at,
		section: scopeUnknown,
		shapes:  map[string]int{},
	}
	return reports
}

// take counts the shape of a line, and ends the epoch if the line is its last one.
func (t *text) take(line string, hasMarker, hasMetric, isFinal bool, at time.Time) []EpochReport {
	e := t.current
	if !hasMetric {
		return nil
	}
	e.at = at
	if !isFinal || e.isInProgress {
		return nil
	}
	shape := shapeOf(line)
	if len(e.shapes) < maxShapes || e.shapes[shape] > 0 {
		e.shapes[shape]++
	}
	e.lastShape = shape
	isValidated := e.accuracy != nil && e.accuracyRank < int(scopeUnknown)*int(metricLoss)
	isOneLine := isValidated && hasMarker && len(e.shapes) == 1 && e.shapes[shape] == 1
	isComplete := isValidated && e.steps > 0 && len(e.shapes) == 1 && e.shapes[shape] == 1
	if t.waits || t.shape != shape && !isOneLine && !isComplete {
		return nil
	}
	return t.close(at)
}

// close reports the current epoch. An epoch without any metric is reported if it directly follows
// the previous one, or once there is a second one.
func (t *text) close(at time.Time) []EpochReport {
	e := t.current
	t.current = nil
	r := EpochReport{
		Epoch:             e.number,
		Seconds:           e.seconds,
		Loss:              e.loss,
		Accuracy:          e.accuracy,
		ValidationSamples: e.samples,
		At:                e.at,
		BeganAt:           e.beganAt,
	}
	isFollowing := e.number <= 1
	if t.hasLast || t.held != nil {
		previous := t.last
		if t.held != nil {
			previous = t.held.Epoch
		}
		isFollowing = e.number == previous+1
	}
	if e.at.IsZero() {
		r.At = at
		if !isFollowing {
			t.held = nil
			return nil
		}
		if !t.isStepped && t.held == nil && e.total == 0 {
			t.held = &r
			return nil
		}
		t.isStepped = true
	}
	var reports []EpochReport
	if t.held != nil && isFollowing {
		reports = append(reports, *t.held)
	}
	t.held = nil
	t.last, t.hasLast, t.isSeen = e.number, true, true
	return append(reports, r)
}

// End implements lineFormat. The last epoch counts if nothing shows that it is unfinished.
func (t *text) End() []EpochReport {
	var reports []EpochReport
	if t.rounds != nil {
		reports = t.rounds.release()
	}
	if e := t.current; e != nil {
		isLast := e.total > 0 && (e.number == e.total || e.number+1 == e.total)
		if e.isInProgress || e.at.IsZero() && !isLast {
			t.current = nil
			return reports
		}
		isOnly := !t.hasLast && e.isLastOnly && e.number == e.total
		last := t.close(e.beganAt)
		if isOnly && len(last) == 1 { // its epochs count from 0
			last[0].Epoch, last[0].Epochs, last[0].BeganAt = e.number+1, e.number+1, time.Time{}
		}
		reports = append(reports, last...)
	}
	return reports
}

func (t *text) restart() lineFormat { return &text{rank: t.rank, percentages: t.percentages} }

func (t *text) recognised() bool { return t.isSeen }

// digits are replaced in the shape of a line.
var (
	digits     = regexp.MustCompile(`[-+]?\d[\d.:e+-]*|\bnan\b|\binf\b`)
	shapeUnits = regexp.MustCompile(`# ?(?:[munµ]?s|min|m|h)\b`)
	blanks     = regexp.MustCompile(`[\s━─═█▏▎▍▌▋▊▉#>=.-]{2,}`)
)

// shapeOf returns a line without its numbers, so that the same line of two epochs is equal.
func shapeOf(line string) string {
	shape := digits.ReplaceAllString(line, "#")
	shape = shapeUnits.ReplaceAllString(shape, "#")
	return blanks.ReplaceAllString(shape, " ")
}

// Words before a number that is not the number of an epoch.
var (
	notEpochs    = []string{"total", "max", "maximum", "num", "number", "n", "best", "per", "every", "last", "warmup", "patience", "min", "of"}
	epochWords   = []string{"epoch", "ep"}
	roundWords   = []string{"iteration", "round"}
	numberWords  = []string{"number", "no", "nr", "num"}
	fractionHead = regexp.MustCompile(`^\[(\d+)/(\d+)\]`)
	tutorialHead = regexp.MustCompile(`^\[(\d+), +\d+\] loss`)
)

// marker returns the number of the epoch in a line, and the number of all epochs if it is there.
func marker(line string, tokens []token) (number, total uint32, ok bool) {
	for i, t := range tokens {
		if !t.isWhole || t.value > schemas.MaxEpochs || len(t.words) == 0 && i > 0 {
			continue
		}
		words := t.words
		if n := len(words); n > 1 && slices.Contains(numberWords, words[n-1]) {
			words = words[:n-1]
		}
		isEpoch := len(words) > 0 && slices.Contains(epochWords, words[len(words)-1]) &&
			!containsAny(words[:len(words)-1], notEpochs)
		isRound := i == 0 && len(words) == 1 && slices.Contains(roundWords, words[0]) && hasAnyMetric(tokens)
		isFirst := i == 0 && hasAnyMetric(tokens) &&
			(fractionHead.MatchString(line) || tutorialHead.MatchString(line))
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

// isTotal reports whether a number is the second one of "3/10" or "3 of 10".
func isTotal(t token) bool {
	gap := strings.Trim(t.gap, " ")
	return t.isWhole && t.value <= schemas.MaxEpochs && (gap == "/" || gap == "of" || gap == "out of")
}

func hasAnyMetric(tokens []token) bool {
	return slices.ContainsFunc(tokens, func(t token) bool {
		switch kindOf(t.words) {
		case noMetric, metricDuration, metricElapsed:
			return false
		}
		return true
	})
}

// accuracyPhrase matches a sentence such as "Accuracy of the network on the 10000 test images: 54 %".
var accuracyPhrase = regexp.MustCompile(`(?i)\baccuracy\b[^:=]*[:=]\s*([\d.]+)\s*%`)

// Words before a number that counts parts of an epoch.
var partWords = []string{"step", "steps", "batch", "batches", "iter", "iters", "iteration", "minibatch", "samples", "images"}

// read takes the metrics of a line into the current epoch, and reports whether there are any.
func (t *text) read(line string, tokens []token, hasMarker bool) (hasMetric bool) {
	e := t.current
	general := lineScope(line, tokens)
	if len(tokens) == 0 {
		if general != scopeUnknown {
			e.section = general
		}
		return false
	}
	if general == scopeUnknown {
		general = e.section
	} else if !hasMarker {
		e.section = general
	}

	p := partOf(line, tokens, hasMarker)
	e.isInProgress = p.isInProgress
	if p.steps > 0 {
		e.steps = p.steps
	}
	var bare, perStep float64 // durations without a name
	for i := range tokens {
		n := &tokens[i]
		s := scopeOf(n.words)
		if s == scopeUnknown {
			s = general
		}
		kind := kindOf(n.words)
		seconds := unitSeconds(n.unit)
		switch {
		case kind == metricAccuracy && i+1 < len(tokens) && strings.Trim(tokens[i+1].gap, " ") == "/" &&
			n.isWhole && tokens[i+1].isWhole && tokens[i+1].value > 0:
			e.setAccuracy(n.value/tokens[i+1].value, s, kind, uint64(tokens[i+1].value))
			hasMetric = true
		case kind != noMetric:
			if p.isInProgress && (kind == metricDuration || kind == metricElapsed) {
				continue
			}
			hasMetric = e.setMetric(kind, s, n.value, n.unit, &t.percentages) || hasMetric
		case seconds > 0 && !n.isClock && isBareDuration(n.words):
			bare = n.value * seconds
		case perStepSeconds(n.unit) > 0 && len(n.words) == 0:
			perStep = n.value * perStepSeconds(n.unit)
		}
	}
	if m := accuracyPhrase.FindStringSubmatch(line); m != nil && e.accuracy == nil {
		for i := range tokens {
			if tokens[i].text == m[1] && strings.TrimSpace(tokens[i].unit) == "%" {
				e.setAccuracy(fromPercent(tokens[i].value), general, metricAccuracy, 0)
				hasMetric = true
			}
		}
	}
	if !p.isInProgress && (hasMarker || hasMetric || p.isComplete) {
		e.setBareDuration(bare, perStep*e.steps)
	}
	return hasMetric || p.isComplete
}

// setBareDuration takes a duration such as "11s" of an epoch, and its steps times "93ms/step". The
// product is more exact if the duration is rounded to seconds.
func (e *openEpoch) setBareDuration(seconds, product float64) {
	if product > 0 && seconds < 10 {
		seconds = product
	}
	if v := validSeconds(seconds); v > 0 {
		e.seconds = v
	}
}

// isBareDuration reports whether a number with a unit of time can be the duration of an epoch.
func isBareDuration(words []string) bool {
	return len(words) == 0 || slices.Contains([]string{"in", "took", "for", "finished"}, words[len(words)-1])
}

// lineScope returns the scope that the text before the first metric states, such as "Test set:".
func lineScope(line string, tokens []token) scope {
	head := line
	for _, t := range tokens {
		if kindOf(t.words) != noMetric {
			if i := strings.Index(line, t.gap); i >= 0 {
				head = line[:i+len(t.gap)]
			}
			break
		}
	}
	s := scopeUnknown
	for _, word := range strings.FieldsFunc(strings.ToLower(head), isNoLetter) {
		if found := scopeOf([]string{word}); found != scopeUnknown {
			s = found
		}
	}
	return s
}

func isNoLetter(r rune) bool { return !unicode.IsLetter(r) }

// part tells how much of an epoch a line shows.
type part struct {
	isInProgress bool
	isComplete   bool    // a progress bar at its end
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
		isEpoch := !seenEpoch && len(n.words) > 0 &&
			(slices.Contains(epochWords, n.words[len(n.words)-1]) || slices.Contains(roundWords, n.words[0]))
		if isEpoch || !seenEpoch && i == 0 && fractionHead.MatchString(line) {
			seenEpoch = true
			continue
		}
		kind := kindOf(n.words)
		isCounted := i+1 < len(tokens) && strings.Trim(tokens[i+1].gap, " ") == "/" &&
			n.isWhole && tokens[i+1].isWhole && kind == noMetric
		switch {
		case isCounted:
			p.steps = tokens[i+1].value
			p.isComplete = n.value >= p.steps
			p.isInProgress = !p.isComplete
		case kind == noMetric && len(n.words) > 0 && n.isWhole && n.unit == "" &&
			slices.Contains(partWords, n.words[len(n.words)-1]) && !isSecondOfPair(tokens, i):
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

// isSecondOfPair reports whether a number belongs to the one before it, as in "3/10".
func isSecondOfPair(tokens []token, i int) bool {
	return i > 0 && strings.Trim(tokens[i].gap, " ") == "/"
}
