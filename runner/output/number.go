package output

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// number reads the number at i, with its total, unit and mean, and returns where it ends.
func (s *scanner) number(i int) int {
	t := s.text
	if s.isListed && severalNumbers.Match(t[i:]) { // loss, acc = 0.5, 0.9
		s.name.flags |= flagExcluded
	}
	if s.isLocation && i > 0 && t[i-1] == ':' {
		s.isLocation = false
		return skipDigits(t, i)
	}
	if end := timestampEnd(t, i); end > i {
		s.breakName()
		return end
	}
	isPath := i > 1 && t[i-1] == '/' && isLetter(t[i-2])
	if isPath || t[i] == '0' && i+1 < len(t) && t[i+1] == 'x' {
		s.breakName()
		return i + max(1, len(address.Find(t[i:]))) // 1: of a sign
	}
	f := field{begin: i}
	end := skipDigits(t, i+boolInt(!isDigit(t[i]) && t[i] != '.'))
	f.isWhole = isDigit(t[i])
	begin := i
	if v, after := clock(t, i, end); after > end {
		if s.name.isEmpty() && s.durationEnd == 0 {
			return after // the time of day, or a bar's
		}
		if s.name.kind == kindNone && begin > 0 && t[begin-1] == '[' && after < len(t) && t[after] == ']' {
			s.breakName() // NAME: [10:00:00]
			return after
		}
		f.value, f.isClock, f.isWhole, f.unit, end = v, true, false, unitTime, after
		return s.finish(f, begin, end)
	}
	if v, after := s.separated(i, end); after > end {
		f.value, f.isWhole = v, false
		return s.suffix(f, begin, after)
	}
	if end+1 < len(t) && t[end] == '.' && isDigit(t[end+1]) {
		point := end
		f.isWhole, end = false, skipDigits(t, end+1)
		if end+1 < len(t) && t[end] == '.' && isDigit(t[end+1]) { // a version or an address
			s.breakName()
			return end + len(address.Find(t[end:]))
		}
		if end-point == 4 && end+1 < len(t) && t[end] == ',' && isDigit(t[end+1]) && !s.name.isEmpty() {
			s.breakName() // 1.234,5 has another point
			return skipDigits(t, end+1)
		}
	}
	if end < len(t) && (t[end]|0x20 == 'e' || t[end]|0x20 == 'f') {
		n := len(exponent.Find(t[end:min(end+8, len(t))]))
		f.isWhole, end = f.isWhole && n == 0, end+n
	}
	f.value = parseNumber(t[i:end])
	if f.isWhole && i > 0 && t[i-1] == '[' && end < len(t) && t[end] == '-' {
		if part := batchRange.FindSubmatch(t[i:]); part != nil {
			f.value, end = parseNumber(part[1]), i+len(part[0])-1
		}
	}
	return s.suffix(f, begin, end)
}

// suffix reads the total and the unit of a number that ends at end.
func (s *scanner) suffix(f field, begin, end int) int {
	if f.isWhole {
		if total, after := totalAfter(s.text, end); total > 0 {
			f.total, end = total, after
		}
	}
	return s.finish(f, begin, s.readUnit(&f, end))
}

// finish adds the field. A duration may continue the one before it, as in "1m 12s".
func (s *scanner) finish(f field, begin, end int) int {
	if s.isPair {
		s.isPair, s.name.counter, s.name.hash = false, countsInner, 1
	}
	f.lead = s.leadOf(begin, end)
	f.isDone = f.unit == unitPercent && s.isBracketed && s.name.isEmpty() && isDigit(s.text[begin])
	f.isBar, s.isBar = s.isBar && f.total > 0, false
	if begin > 0 && s.text[begin-1] == '(' && s.countsCorrect(&f) {
		return end
	}
	if f.unit == unitPercent && end < len(s.text) && s.text[end] == '|' {
		s.isBar = true
		return end + 2 + bytes.IndexByte(s.text[end+1:], '|') // the number behind the bar "|██  |" is more exact
	}
	isNext := func() bool { // only a blank, a comma or "and" stands since the last duration
		return slices.Contains([]string{"", " ", "  ", ", ", " and "}, string(s.text[s.durationEnd:begin]))
	}
	if f.unit == unitTime && s.durationEnd > 0 && isNext() {
		s.fields[len(s.fields)-1].value += f.value
		s.name, s.durationEnd = name{}, end
		return end
	}
	if mean, after := meanAfter(s.text, end); after > end && s.name.flags&flagMean == 0 {
		isRest := math.Abs(f.value+mean-100) < 1e-6 && s.name.kind.isShare() // accuracy and error
		f.mean, f.hasMean, end = mean, !isRest, after
		if f.total > 0 && math.Abs(f.value/f.total-mean) < 0.01 && s.name.kind.isShare() { // 8200/10000 (0.82)
			f.value, f.total, f.isWhole, f.hasMean = mean, 0, false, false
		}
	}
	isCount := s.name.counter == countsEpochs && f.isWhole
	isApart := func() bool { return !s.hasColon && bytes.IndexByte(s.text[s.name.start:s.name.end], ' ') > 0 }
	// Loss at epoch 1: 0.5, and loss in epoch 1 batch 2: 0.5
	if s.name.kind != kindNone && isCount && (hasValue.Match(s.text[end:]) || isApart()) {
		n := s.name
		s.name = name{counter: countsEpochs, hash: 1}
		s.emit(f)
		s.name = n
		s.name.counter = countsNothing
		return end
	}
	if s.name.kind != kindNone && f.isWhole && numberFollows(s.text[end:]) {
		s.count(f.value)
		return end
	}
	if s.isOfName(begin, end) {
		s.name.unknown++
		s.name.hash = combine(s.name.hash, hashOf(s.text[begin:end]))
		return end
	}
	if s.name.kind != kindNone && isElement(s.text, begin, end) {
		s.name.flags |= flagExcluded
	}
	s.durationEnd = 0
	if f.unit == unitTime && len(s.fields) < maxFields {
		s.durationEnd = end
	}
	s.emit(f)
	return end
}

// isOfName reports whether a number belongs to the name of the next one.
func (s *scanner) isOfName(begin, end int) bool {
	switch {
	case s.name.kind == kindNone:
		return false
	case begin > 0 && s.text[begin-1] == '[' && index.Match(s.text[end:]): // loss[0] = 0.5
		return true
	case s.hasColon:
		return false
	}
	// AP .5 0.4, and loss 1.5: 0.4
	return s.name.kind == kindPrecision && s.text[begin] == '.' || numberFollows(s.text[end:]) && s.text[end] == ':'
}

// countsCorrect reports whether a field has the correct answers of an accuracy before it: "acc: 95.1% (951/1000)".
func (s *scanner) countsCorrect(f *field) bool {
	if f.total == 0 || len(s.fields) == 0 {
		return false
	}
	last := &s.fields[len(s.fields)-1]
	value := last.value
	if last.unit == unitPercent || value > 1 {
		value = FromPercent(value)
	}
	return last.name.kind.isShare() && math.Abs(value-f.value/f.total) < 0.01
}

// batchRange matches the first and the last batch of several, as in "Batch [0-100]".
var batchRange = regexp.MustCompile(`^\d+-(\d+)\]`)

// index matches what follows the index of a name, as in "loss[0] = 0.5" and "Err[0]PerSample = 0.5".
var index = regexp.MustCompile(`^\](?: ?[=:] ?[-\d]|\pL)`)

// severalNumbers matches the first of several numbers.
var severalNumbers = regexp.MustCompile(`^[-+\d.eEf%]+[ ,;|]+[-+]?\d`)

// list matches two numbers without names, which may follow another one, and cellForm one in a table.
var (
	list     = regexp.MustCompile(`^\d+\.\d+ +-?\d+\.\d+(?: |$)`)
	cellForm = regexp.MustCompile(`^\| *-?\d+\.\d+ *(?:\||$)`)
)

// isElement reports whether text[begin:end] is the first number of several, such as (1, 0.5), [0.5, 0.4]
// or ['0.5', '0.4'].
func isElement(t []byte, begin, end int) bool {
	if begin > 0 && end < len(t) && t[begin-1] == '\'' && t[end] == '\'' {
		begin, end = begin-1, end+1
	}
	if bytes.HasPrefix(t[end:], []byte("), ")) { // [np.float32(0.5), np.float32(0.4)]
		word := bytes.LastIndexAny(t[:begin], "[ ")
		return word >= 0 && t[word] == '['
	}
	next := skipBlanks(t, end)
	switch {
	case next == len(t):
	case next > end && isDigit(t[next]) && list.Match(t[next:]), // 0.5 0.4 0.3
		t[next] == '|' && cellForm.Match(t[next:]): // | loss | 0.5 | 0.4 |
		return true
	}
	if begin == 0 || t[begin-1] != '(' && t[begin-1] != '[' || end >= len(t) || t[end] != ',' {
		return false
	}
	next = skipBlanks(t, end+1)
	return next < len(t) && (isDigit(t[next]) || t[next] == '\'')
}

// numberFollows reports whether another number follows, as in "loss 12 0.5", "loss 12: 0.5" and "loss (12) 0.5".
// The first one counts batches, and the name is that of the second one.
func numberFollows(t []byte) bool {
	i := boolInt(len(t) > 0 && (t[0] == ':' || t[0] == ')' || t[0] == ' '))
	if i > 0 && t[0] != ' ' {
		i = skipBlanks(t, i)
	}
	return i > 0 && i < len(t) && isDigit(t[i])
}

// hasValue matches a number behind a colon, a bracket or "is".
var hasValue = regexp.MustCompile(`^[ :=)]*(?:is )?[-\d]`)

// leadOf returns the form of a number with which the line begins: '[' for "[0]", ':' for "0:", '|' for
// "0 | loss 0.5" and "0 loss 0.5"; 0 for other numbers.
func (s *scanner) leadOf(begin, end int) byte {
	rest := skipBlanks(s.text, end)
	isBatch := bytes.HasPrefix(bytes.TrimPrefix(s.text[rest:], []byte("]")), []byte("["))
	isMetric := end+2 < len(s.text) && s.text[end] == ',' && s.text[end+1] == ' ' && isLetter(s.text[end+2])
	if (isBatch || isMetric) && s.name.isScope() && s.name.scope == scopeTrain && len(s.fields) == 0 {
		return '[' // Train: 0 [  50/156 ...], train: [0][50/156], and Train 0, loss: 0.5
	}
	if len(s.fields) > 0 || !s.name.isEmpty() || end >= len(s.text) {
		return 0
	}
	if begin > 0 && s.text[begin-1] == '[' {
		rest = skipBlanks(s.text, end+1)
		isPair := s.text[end] == ',' && rest < len(s.text) && isDigit(s.text[rest]) &&
			skipDigits(s.text, rest) < len(s.text) && s.text[skipDigits(s.text, rest)] == ']'
		if s.text[end] == ']' || isPair { // [1,  2000] loss: 0.5
			s.isPair = isPair
			return '['
		}
	}
	switch {
	case s.words > 0:
	case s.text[end] == ':':
		return ':'
	case rest < len(s.text) && (s.text[rest] == '|' || rest > end && isLetter(s.text[rest])):
		return '|'
	}
	return 0
}

// Numbers with commas before groups of three digits, and with a comma before the fraction.
var (
	thousands = regexp.MustCompile(`^[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?`)
	fraction  = regexp.MustCompile(`^\d+,\d+`)
	listRest  = regexp.MustCompile(`^,?\d`)

	decimalPoint = regexp.MustCompile(`\d\.\d`)
	decimalComma = regexp.MustCompile(`\b(?:0,\d+|\d+,\d\d?)(?:[^\d,]|$)`)
)

// separated returns the value of "1,234.5" or "0,51" at i, whose first digits end at end, and where it
// ends; the same end if no separator follows. Numbers without a name are cells of a table.
func (s *scanner) separated(i, end int) (float64, int) {
	t := s.text
	if s.name.isEmpty() || end+1 >= len(t) || t[end] != ',' || !isDigit(t[end+1]) {
		return 0, end
	}
	isOver := func(n int) bool { // neither a digit nor another number of a list follows
		return n > 0 && !listRest.Match(t[i+n:])
	}
	n := len(thousands.Find(t[i:]))
	isMetric := s.name.kind != kindNone && s.name.kind != kindTime
	isEither := isMetric && n == len(fraction.Find(t[i:])) && !decimalPoint.Match(t) // 1,234 is 1234 or 1.234
	isDecimal := isEither && decimalComma.Match(t)
	if isEither && !isDecimal {
		s.name.flags |= flagExcluded
	}
	if isOver(n) && !isDecimal {
		return parseNumber(bytes.ReplaceAll(t[i:i+n], []byte(","), nil)), i + n
	}
	n = len(fraction.Find(t[i:]))
	percent := skipBlanks(t, i+n)
	isShort := end-i == 1 || s.hasColon || percent < len(t) && t[percent] == '%'
	if !isOver(n) || !isShort || i+n+1 < len(t) && t[i+n] == '.' && isDigit(t[i+n+1]) {
		return 0, end // a list
	}
	return parseNumber(bytes.Replace(t[i:i+n], []byte(","), []byte("."), 1)), i + n
}

// totalForm matches "/N" and " of N", also in other languages.
var totalForm = regexp.MustCompile(`^(?: */ *| +(?:of|von|de|sur|di|van|из) +)\d{1,12}`)

// totalAfter returns the total at i, and where it ends.
func totalAfter(t []byte, i int) (float64, int) {
	if next := skipBlanks(t, i); next == len(t) || t[next] != '/' && !isLetter(t[next]) && t[next] < utf8.RuneSelf {
		return 0, i
	}
	begin := i + 1 // of "3/10", which is frequent
	end := skipDigits(t, begin)
	if t[i] != '/' || end == begin {
		end = i + len(totalForm.Find(t[i:]))
		begin = i + max(0, bytes.IndexAny(t[i:end], "0123456789"))
	}
	isPart := end+1 < len(t) && (t[end] == '.' || t[end] == '/') && isDigit(t[end+1]) // of a date or an address
	if end == i || isPart || end-begin > 12 || end < len(t) && isDigit(t[end]) {
		return 0, i
	}
	return parseNumber(t[begin:end]), end
}

// meanAfter returns the number in parentheses at i, such as the running mean of a meter.
func meanAfter(t []byte, i int) (float64, int) {
	at := skipBlanks(t, i)
	if at-i > 2 || at+2 >= len(t) || t[at] != '(' {
		return 0, i
	}
	begin := skipBlanks(t, at+1)
	end := begin + bytes.IndexByte(t[begin:], ')')
	if v, err := strconv.ParseFloat(string(t[begin:max(begin, end)]), 64); err == nil && v-v == 0 {
		return v, end + 1
	}
	return 0, i
}

// clockForm matches mm:ss or h:mm:ss.
var clockForm = regexp.MustCompile(`^\d{1,4}(?::\d\d){1,2}(?:\.\d+)?`)

// clock returns the seconds of the clock at i, whose first digits end at end, and where it ends.
func clock(t []byte, i, end int) (seconds float64, after int) {
	if end >= len(t) || t[end] != ':' {
		return 0, end
	}
	after = i + len(clockForm.Find(t[i:]))
	if after == i || after < len(t) && isDigit(t[after]) {
		return 0, end
	}
	for part := range bytes.SplitSeq(t[i:after], []byte(":")) {
		seconds = seconds*60 + parseNumber(part)
	}
	return seconds, after
}

const timeOfDay = `[ T_-]?\d{1,2}(?:[:-]\d\d)+(?:[.,]\d+)?`

// timestamp matches a date, with its time of day if it has one, and always if it has no year.
var timestamp = regexp.MustCompile(`^(?:(?:\d{4}-\d{1,2}-(?:\d{4}|\d{1,2})|\d{4}/\d{1,2}/(?:\d{4}|\d{1,2})|` +
	`\d{1,2}-\d{1,2}-(?:\d{4}|\d\d)|\d{1,2}/\d{1,2}/(?:\d{4}|\d\d))(?:` + timeOfDay + `)?|` +
	`\d\d(?:[-/]\d{1,2}|\.\d{1,2}_)` + timeOfDay + `)`)

// timestampEnd returns the end of a date at i, with its time of day, or i.
func timestampEnd(t []byte, i int) int {
	end := skipDigits(t, i)
	n := end - i
	if n != 1 && n != 2 && n != 4 || end+2 >= len(t) || t[end] != '-' && t[end] != '/' && t[end] != '.' ||
		!isDigit(t[end+1]) || t[end] == '.' && bytes.IndexByte(t[end:min(end+4, len(t))], '_') < 0 {
		return i
	}
	if t[end] == '/' && !bytes.ContainsAny(t[end+1:min(end+9, len(t))], "/:") {
		return i // 3/10
	}
	after := i + len(timestamp.Find(t[i:]))
	if after < len(t) && isDigit(t[after]) {
		return i
	}
	return after
}

// Exponents, and the rest of a version or an address.
var (
	exponent = regexp.MustCompile(`^[eEfF][-+]?\d+`)
	address  = regexp.MustCompile(`^(?:[a-zA-Z\d.]|:\d)*`)
)
