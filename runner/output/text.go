package output

import (
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
)

// text finds epochs in the text that training programs and their progress bars print. It does not
// know the frameworks: it reads numbers with the words before them.
//
// An epoch begins with a line that has its number, such as "Epoch 3/10". Its metrics are in that
// line, in the lines that follow, or in the drawings of a progress bar. In general an epoch ends
// when the next one begins. It ends earlier with a line of the shape that ended the previous epoch,
// and with a line that has both the number and a metric of validation.
type text struct {
	kinds   MetricKinds
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
	separator   separator
	rounds      *rounds // of boosting; nil: no round was printed
	isSeen      bool
	isFromZero  bool // the steps of an epoch count from 0
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
func (t *text) Line(line []byte, at time.Time) []EpochReport {
	return t.line(string(line), at, true)
}

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
	rankWord      = regexp.MustCompile(`(?i)^\W*(?:local[_ ]|global[_ ])?` +
		`(?:rank|gpu|worker|proc(?:ess)?)[ _:=#]*(\d+)\b[\]):|]*\s*`)
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
	if strings.HasPrefix(line, "wandb: ") {
		return nil // the summary of a logger, behind the training
	}
	line, rank := withoutPrefix(line)
	line = withPlainHeading(line)
	if t.isOtherRank(rank) {
		return nil
	}
	if reports, isRow := t.tableLine(line, at); isRow {
		return reports
	}
	tokens := scan(line)
	t.kinds.mark(tokens)
	if reports, isRound := t.roundLine(line, tokens, at); isRound {
		return reports
	}
	if t.columns != nil || t.rounds != nil {
		return nil
	}

	if reports, isBar := t.barLine(line, tokens, at); isBar {
		return reports
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

// epochBar matches a progress bar that counts epochs.
var epochBar = regexp.MustCompile(`(?i)^\W*(?:training )?epochs?\b\W*\d+%\|[^|]*\| *(\d+)/(\d+) \[`)

// barLine reads a progress bar that counts epochs. It is redrawn when an epoch has ended.
func (t *text) barLine(
	line string, tokens []token, at time.Time,
) (reports []EpochReport, isBar bool) {
	match := epochBar.FindStringSubmatch(line)
	if match == nil {
		return nil, false
	}
	number, ok := rowNumber(match[1])
	if !ok || number <= t.last {
		return nil, true
	}
	e := openEpoch{section: scopeUnknown}
	bar := text{current: &e, percentages: t.percentages}
	bar.read(line, tokens, true)
	r := EpochReport{
		Epoch:    number,
		Epochs:   number - t.last,
		Loss:     e.loss,
		Accuracy: e.accuracy,
		Metric:   e.metric,
		At:       at,
	}
	t.percentages = bar.percentages
	t.current, t.last, t.hasLast, t.isSeen = nil, number, true, true
	return []EpochReport{r}, true
}

// isOtherRank reports whether a line is from another process than those before.
func (t *text) isOtherRank(rank string) bool { return rank != "" && t.rank != "" && rank != t.rank }

// hasLateMetric reports whether a line has a metric of validation.
func (t *text) hasLateMetric(line string, tokens []token) bool {
	e := openEpoch{section: scopeUnknown}
	late := text{current: &e, percentages: t.percentages}
	late.read(line, tokens, true)
	return e.isValidated()
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
	isValidated := e.isValidated()
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
		Metric:            e.metric,
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

func (t *text) restart() lineFormat {
	return &text{rank: t.rank, percentages: t.percentages, kinds: t.kinds}
}

func (t *text) recognized() bool { return t.isSeen }

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

// accuracyPhrase matches "Accuracy of the network on the 10000 test images: 54 %".
var accuracyPhrase = regexp.MustCompile(`(?i)\baccuracy\b[^:=]*[:=]\s*([\d.]+)\s*%`)

// read takes the metrics of a line into the current epoch, and reports whether there are any.
func (t *text) read(line string, tokens []token, hasMarker bool) (hasMetric bool) {
	e := t.current
	general := lineScope(line, tokens)
	if general == scopeUnknown {
		general = e.section
	} else if !hasMarker {
		e.section = general
	}
	if len(tokens) == 0 {
		return false
	}

	p := partOf(line, tokens, hasMarker)
	isHeldOut := !hasMarker && (general == scopeValidation || general == scopeTest)
	if p.steps > 0 && !isHeldOut {
		t.isFromZero = t.isFromZero || p.isInProgress && p.done == 0
		e.steps = p.steps
		if t.isFromZero && p.done+1 >= p.steps {
			p.isInProgress, p.isComplete = false, true
		}
	}
	isStepTime := slices.ContainsFunc(tokens, func(n token) bool { // beside the loading of its data
		return slices.Contains(n.words, "data")
	})
	var bare, perStep float64 // durations without a name
	for i := range tokens {
		n := &tokens[i]
		s := scopeOf(n.words)
		if s == scopeUnknown {
			s = general
		}
		kind := n.kind()
		isDuration := kind == metricDuration || kind == metricElapsed
		switch {
		case isDuration && isStepTime: // of a step
		case kind == metricAccuracy && isFraction(tokens, i):
			ratio, samples := n.value/tokens[i+1].value, uint64(tokens[i+1].value)
			e.setAccuracy(ratio, s, kind, samples, metricOf(n.words, ratio))
			hasMetric = true
		case isDuration && p.isInProgress: // of a part of the epoch
		case kind == noMetric && hasMarker && isScopeAlone(n):
			ratio := t.percentages.toRatio(n.value, n.unit)
			e.setAccuracy(ratio, s, metricAccuracy, 0, metricOf(n.words, n.value))
		case kind != noMetric:
			hasMetric = e.setMetric(kind, s, n, &t.percentages) || hasMetric
		case unitSeconds(n.unit) > 0 && !n.isClock && isBareDuration(n.words):
			bare = n.value * unitSeconds(n.unit)
		case perStepSeconds(n.unit) > 0 && len(n.words) == 0:
			perStep = n.value * perStepSeconds(n.unit)
		}
	}
	hasMetric = e.readPhrase(line, tokens, general) || hasMetric
	if hasMetric || p.steps > 0 {
		e.isInProgress = p.isInProgress
	}
	if !p.isInProgress && !isHeldOut && (hasMarker || hasMetric || p.isComplete) {
		e.setBareDuration(bare, perStep*e.steps)
	}
	return hasMetric || p.isComplete
}

// isScopeAlone reports whether a number is an accuracy whose name is only its scope, as in "Val: 0.8".
func isScopeAlone(n *token) bool {
	return len(n.words) == 1 && scopeOf(n.words) != scopeUnknown && !n.isWhole && !n.isClock
}

// readPhrase takes the accuracy of a sentence, if there is no other one.
func (e *openEpoch) readPhrase(line string, tokens []token, s scope) (hasMetric bool) {
	m := accuracyPhrase.FindStringSubmatch(line)
	if m == nil || e.accuracy != nil {
		return false
	}
	for i := range tokens {
		if tokens[i].text == m[1] && strings.TrimSpace(tokens[i].unit) == "%" {
			printed := Metric{Name: "accuracy", Value: tokens[i].value}
			e.setAccuracy(fromPercent(tokens[i].value), s, metricAccuracy, 0, printed)
			hasMetric = true
		}
	}
	return hasMetric
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
	return len(words) == 0 || slices.Contains(durationVerbs, words[len(words)-1])
}

var durationVerbs = []string{"in", "took", "for", "finished"}

// lineScope returns the scope that the text before the first metric states, such as "Test set:".
func lineScope(line string, tokens []token) scope {
	head := line
	for _, t := range tokens {
		if t.kind() != noMetric {
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
