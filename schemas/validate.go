package schemas

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Limits of a job request. They are far above sensible values; absurd numbers are errors.
const (
	MaxCandidates = 64 // batch sizes times CPU counts times numbers of workers
	MaxBatchSize  = 1 << 24
	MaxCPUs       = 1 << 16
	MaxWorkers    = 1 << 12
	MaxLoaders    = 1 << 12
	MaxEpochs     = 1_000_000
	maxText       = 256
	maxReason     = 4 << 10  // of the end of a run, or of a move
	maxOutput     = 16 << 10 // last lines of the output of a run
	maxLabels     = 64
)

// MaxTokenLength is the maximum length of a job ID, node name or target.
const MaxTokenLength = 64

// ValidToken reports whether s matches [a-z0-9_-]{1,64}.
func ValidToken(s string) bool {
	return s != "" && len(s) <= MaxTokenLength && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

func validateToken(field, s string) error {
	if !ValidToken(s) {
		return Invalid(field, "%q is not a name of 1 to 64 characters from a-z, 0-9, _ and -", Clip(s))
	}
	return nil
}

// validateOptionalToken accepts a token, or nothing.
func validateOptionalToken(field, s string) error {
	if s == "" {
		return nil
	}
	return validateToken(field, s)
}

func validateNodes(nodes []string) error {
	err := validateLength("nodes", len(nodes), MaxCandidates)
	for _, n := range nodes {
		err = cmp.Or(err, validateToken("nodes", n))
	}
	return err
}

// validateText accepts printable text of at most maxText bytes.
func validateText(field, s string) error {
	if len(s) > maxText {
		return Invalid(field, "%d bytes are more than %d", len(s), maxText)
	}
	for _, c := range s {
		if isControl(c) || c == '\uFFFD' {
			return Invalid(field, "%q contains a character that is not printable", Clip(s))
		}
	}
	return nil
}

// isControl reports whether a character may control a terminal, break a line, or change the direction
// of the text around it: C0, C1, line separators, and direction marks.
func isControl(c rune) bool {
	return unicode.Is(unicode.Cc, c) || unicode.Is(unicode.Bidi_Control, c) || c == '\u2028' || c == '\u2029'
}

// OneLine replaces control characters by blanks. So text from other sources can neither break a table
// nor control a terminal.
func OneLine(text string) string { return blank(text, "") }

// Printable is OneLine for a text of several lines, whose cells may be separated by tabs.
func Printable(text string) string { return blank(text, "\n\t") }

// blank replaces the control characters of a text by blanks, except some.
func blank(text, except string) string {
	return strings.Map(func(c rune) rune {
		if isControl(c) && !strings.ContainsRune(except, c) {
			return ' '
		}
		return c
	}, text)
}

// validateCounts accepts distinct numbers from least to limit.
func validateCounts(field string, list []int, least, limit int) error {
	err := validateLength(field, len(list), MaxCandidates)
	for i, n := range list {
		if err == nil && slices.Contains(list[:i], n) {
			return Invalid(field, "%d is given twice", n)
		}
		err = cmp.Or(err, validateRange(field, n, least, limit))
	}
	return err
}

// validateRange accepts a number from least to most.
func validateRange[N int | uint32 | float64](field string, n, least, most N) error {
	if !(n >= least && n <= most) {
		return Invalid(field, "%v is not between %v and %v", n, least, most)
	}
	return nil
}

// validateSeconds accepts the seconds of a part of a job.
func validateSeconds(field string, v float64) error {
	if !(v >= 0 && v <= MaxSLO.Seconds()) {
		return Invalid(field, "%v is not between 0 and a year", v)
	}
	return nil
}

// OneOf returns an error that names the allowed values unless value is one of them. An empty value is
// allowed if it is among them.
func OneOf[S ~string](field string, value S, allowed ...S) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	var names []string
	for _, v := range allowed {
		if v != "" {
			names = append(names, string(v))
		}
	}
	return Invalid(field, "%q is not one of %s", Clip(string(value)), strings.Join(names, ", "))
}

// validateLength accepts a text, or a list, with at most some bytes, or entries.
func validateLength(field string, length, most int) error {
	if length > most {
		return Invalid(field, "length %d is more than %d", length, most)
	}
	return nil
}

// required accepts any text except an empty one; want is what it should be.
func required(field, text, want string) error {
	if text == "" {
		return Invalid(field, "missing; want %s", want)
	}
	return nil
}

// ratioField is a field with a share from 0 to 1, or nil.
type ratioField struct {
	name  string
	value *float64
}

func validateRatios(fields ...ratioField) error {
	for _, f := range fields {
		if f.value != nil && !(*f.value >= 0 && *f.value <= 1) {
			return Invalid(f.name, "%v is not between 0 and 1", *f.value)
		}
	}
	return nil
}

// finite reports whether v is nil or a finite number.
func finite(v *float64) bool { return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0) }

// Clip truncates untrusted text for an error message.
func Clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
