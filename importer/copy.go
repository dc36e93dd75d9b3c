package importer

import (
	"math"
	"strconv"
	"strings"
)

// copies refuses a run whose time is that of an earlier one to the last digit: a
// reader that met a log without a time kept the one before, as in Courier's
// published study. Few digits are equal by chance, so the digits must
// tell all runs apart: chance must make less than one run in a thousand a copy.
func (r *Reader) copies() {
	first := map[string]*Run{}
	enough := max(leastDigits, math.Log10(1000*float64(len(r.runs))))
	r.filter(func(run *Run) *Refusal {
		mark, digits := run.mark()
		if float64(digits) < enough {
			return nil
		}
		if o := first[mark]; o != nil {
			return refuse(ReasonCopied, FieldSeconds, "%s s is the time of %s, to the last digit", clip(mark), o.Place)
		}
		first[mark] = run
		return nil
	})
}

// leastDigits are the fewest digits that can tell a copy.
const leastDigits = 6

// mark is the run's time, or those of its epochs, as written, and how many
// digits of it tell something: those of each time that differs from the others.
func (r *Run) mark() (text string, digits int) {
	if r.silent {
		return "", 0
	}
	if len(r.Epochs) == 0 {
		s := strconv.FormatFloat(r.Seconds, 'f', -1, 64)
		return s, significant(s)
	}
	var all []string
	seen := map[string]bool{}
	for i := range r.Epochs {
		s := strconv.FormatFloat(r.Epochs[i].Seconds, 'f', -1, 64)
		if all = append(all, s); !seen[s] {
			seen[s] = true
			digits += significant(s)
		}
	}
	return strings.Join(all, " "), digits
}

// significant counts the digits of a decimal number but for zeros at its begin
// and end.
func significant(s string) int {
	s = strings.ReplaceAll(s, ".", "")
	return len(strings.Trim(s, "0"))
}
