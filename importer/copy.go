package importer

import (
	"math"
	"strconv"
	"strings"
)

// rejectCopies rejects a run with exactly the time of an earlier one. In Courier's published study
// a script repeated the previous time for a log without one. Times with few digits coincide by
// chance, so the times need enough digits that a coincidence in the import has a probability below
// one in a thousand.
func (r *Reader) rejectCopies() {
	first := map[string]*PastRun{}
	enough := max(minDigits, math.Log10(1000*float64(len(r.runs))))
	r.filter(func(run *PastRun) *Refusal {
		times, digits := run.timeText()
		if float64(digits) < enough {
			return nil
		}
		if o := first[times]; o != nil {
			return refuse(ReasonCopied, FieldSeconds, "%s s is exactly the time of %s",
				clip(times), o.Place)
		}
		first[times] = run
		return nil
	})
}

// minDigits is the minimum number of digits that identify a copy.
const minDigits = 6

// timeText returns the time of the run, or the times of its epochs, as text, and the number of
// significant digits of the distinct times.
func (r *PastRun) timeText() (text string, digits int) {
	if r.hasNoTime {
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

// significant returns the number of digits of a decimal number without leading and trailing zeros.
func significant(s string) int {
	s = strings.ReplaceAll(s, ".", "")
	return len(strings.Trim(s, "0"))
}
