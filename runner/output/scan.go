package output

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a number in a line, with the text before it.
type token struct {
	given   []string // kind of the metric that the user gave; nil: none
	value   float64
	text    string   // the number as printed
	gap     string   // text between the previous number and this one
	words   []string // lower-case words of the name, which is the end of gap
	unit    string   // lower-case letters or % that follow the number
	isClock bool     // printed as mm:ss or h:mm:ss; value is in seconds
	isWhole bool     // printed as digits only
}

// maxTokens bounds the numbers of a line that are read.
const maxTokens = 64

// scan returns the numbers of a line.
func scan(line string) []token {
	var tokens []token
	end := 0 // of the previous number and its unit
	for i := 0; i < len(line) && len(tokens) < maxTokens; {
		length := numberLength(line, i)
		if length == 0 {
			i = skip(line, i)
			continue
		}
		t := token{text: line[i : i+length], gap: line[end:i]}
		rest := line[i+length:]
		t.isClock = strings.Contains(t.text, ":")
		t.isWhole = strings.Trim(t.text, "0123456789") == ""
		if t.isClock {
			t.value = clockSeconds(t.text)
		} else {
			text := strings.Replace(t.text, ",", ".", 1)
			t.value, _ = strconv.ParseFloat(text, 64) // an infinity if it is out of range
		}
		t.unit = unitOf(rest)
		t.words = nameWords(t.gap)
		end = i + length + len(t.unit)
		i = end
		t.unit = strings.ToLower(t.unit)
		if n := len(tokens); n > 0 && continuesDuration(&tokens[n-1], &t) {
			last := &tokens[n-1]
			last.value = last.value*unitSeconds(last.unit) + t.value*unitSeconds(t.unit)
			last.unit = "s"
			continue
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// continuesDuration reports whether a number is the second one of "1m 12s".
func continuesDuration(first, second *token) bool {
	unit := strings.TrimSpace(first.unit)
	return slices.Contains([]string{"h", "m", "min", "minutes"}, unit) &&
		slices.Contains([]string{"", "and"}, strings.Trim(second.gap, " ")) &&
		unitSeconds(second.unit) > 0 && unitSeconds(second.unit) < unitSeconds(first.unit)
}

// skip returns the index after the word or character at i. Digits inside a word, as in "top1" or
// "acc@1", belong to the word.
func skip(line string, i int) int {
	r, size := utf8.DecodeRuneInString(line[i:])
	if !isWordRune(r) {
		return i + size
	}
	for i < len(line) {
		r, size = utf8.DecodeRuneInString(line[i:])
		isHyphen := r == '-' && i+1 < len(line) && isDigit(line[i+1]) // top-1
		if !isWordRune(r) && r != '@' && !isHyphen && !unicode.IsDigit(r) {
			break
		}
		i += size
	}
	return i
}

func isWordRune(r rune) bool { return unicode.IsLetter(r) || r == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// numberLength returns the length of the number that begins at i, or 0.
func numberLength(line string, i int) int {
	start := i
	if (line[i] == '-' || line[i] == '+') &&
		(i == 0 || strings.IndexByte(" \t=:([,'\"", line[i-1]) >= 0) {
		i++
	}
	for _, word := range []string{"nan", "inf"} {
		if hasWord(line[i:], word) {
			return i + len(word) - start
		}
	}
	digits := i
	for i < len(line) && isDigit(line[i]) {
		i++
	}
	if i == digits && (i+1 >= len(line) || line[i] != '.' || !isDigit(line[i+1])) {
		return 0
	}
	if clock := clockLength(line, i); clock > 0 && i > digits {
		return i + clock - start
	}
	if comma := commaLength(line[i:]); comma > 0 && line[digits:i] == "0" {
		return i + comma - start
	}
	if i+1 < len(line) && line[i] == '.' && isDigit(line[i+1]) {
		for i++; i < len(line) && isDigit(line[i]); {
			i++
		}
	}
	return i + exponentLength(line[i:]) - start
}

// commaLength returns the length of ",51" in a number with a decimal comma, or 0. A list of numbers
// is not one.
func commaLength(text string) int {
	i := 1
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	if len(text) < 2 || text[0] != ',' || i == 1 || i+1 < len(text) && text[i] == ',' &&
		isDigit(text[i+1]) {
		return 0
	}
	return i
}

// hasWord reports whether text begins with a word, in lower, upper or mixed case.
func hasWord(text, word string) bool {
	if len(text) < len(word) || !strings.EqualFold(text[:len(word)], word) {
		return false
	}
	r, _ := utf8.DecodeRuneInString(text[len(word):])
	return len(text) == len(word) || !isWordRune(r) && !unicode.IsDigit(r)
}

// clockLength returns the length of ":ss" or ":mm:ss" at i, or 0.
func clockLength(line string, i int) int {
	length := 0
	for parts := 0; parts < 2; parts++ {
		at := i + length
		if at+2 >= len(line) || line[at] != ':' || !isDigit(line[at+1]) || !isDigit(line[at+2]) ||
			at+3 < len(line) && isDigit(line[at+3]) {
			break
		}
		length += 3
	}
	return length
}

// clockSeconds returns the seconds of mm:ss or h:mm:ss.
func clockSeconds(text string) float64 {
	seconds := 0.0
	for part := range strings.SplitSeq(text, ":") {
		v, _ := strconv.ParseFloat(part, 64) // numberLength found digits only
		seconds = 60*seconds + v
	}
	return seconds
}

// exponentLength returns the length of an exponent such as e-02, or 0.
func exponentLength(text string) int {
	if len(text) < 2 || text[0] != 'e' && text[0] != 'E' {
		return 0
	}
	i := 1
	if text[i] == '-' || text[i] == '+' {
		i++
	}
	digits := i
	for i < len(text) && isDigit(text[i]) {
		i++
	}
	if i == digits {
		return 0
	}
	return i
}

// unitOf returns the % or the letters at the start of the text, such as s, ms/step or it/s. A unit
// of time may follow a blank.
func unitOf(text string) string {
	trimmed := strings.TrimLeft(text, " ")
	if strings.HasPrefix(trimmed, "%") {
		return text[:len(text)-len(trimmed)+1]
	}
	length := 0
	for length < len(text) {
		r, size := utf8.DecodeRuneInString(text[length:])
		if !unicode.IsLetter(r) && r != '/' || r == '/' && length == 0 {
			break
		}
		length += size
	}
	if length > 0 || len(trimmed) == len(text) {
		return text[:length]
	}
	for _, unit := range []string{"seconds", "second", "secs", "sec", "s", "ms", "minutes", "min"} {
		if hasWord(trimmed, unit) {
			return text[:len(text)-len(trimmed)+len(unit)]
		}
	}
	return ""
}

// unitSeconds returns the seconds of a unit of time, 0 for other units.
func unitSeconds(unit string) float64 {
	switch strings.TrimSpace(unit) {
	case "s", "sec", "secs", "second", "seconds":
		return 1
	case "ms":
		return 1e-3
	case "us", "µs":
		return 1e-6
	case "min", "mins", "minutes", "m":
		return 60
	case "h":
		return 3600
	}
	return 0
}

// perStepSeconds returns the seconds of a unit such as ms/step, 0 for other units.
func perStepSeconds(unit string) float64 {
	time, per, _ := strings.Cut(unit, "/")
	if per != "step" && per != "sample" && per != "batch" {
		return 0
	}
	return unitSeconds(time)
}

// parenthesis matches "(micro avg)" at the end of a name.
var parenthesis = regexp.MustCompile(`\([A-Za-z ]+\)[\s:=]*$`)

var nameSeparators = []string{",", ";", "|", "•", "\t", " - ", "(", "[", "{", "]", ")", "│"}

// nameWords returns the lower-case words at the end of a gap, after the last separator.
func nameWords(gap string) []string {
	name := strings.TrimRight(parenthesis.ReplaceAllString(gap, ""), " \t:=>#[({\"'%)")
	for _, separator := range nameSeparators {
		if i := strings.LastIndex(name, separator); i >= 0 {
			name = name[i+len(separator):]
		}
	}
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words, word = append(words, strings.ToLower(string(word))), nil
		}
	}
	for _, r := range name {
		switch {
		case unicode.IsUpper(r):
			if len(word) > 0 && unicode.IsLower(word[len(word)-1]) {
				flush() // valLoss
			}
			word = append(word, r)
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '@':
			word = append(word, r)
		default:
			flush()
		}
	}
	flush()
	return words
}

// isFinite reports whether a number can be a metric.
func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
