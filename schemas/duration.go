package schemas

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span that JSON and flags write as text: "10m", "90s", "1h30m", "2d".
type Duration time.Duration

// MarshalJSON formats the duration with time.Duration.String, for example "10m0s".
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON parses a JSON string as UnmarshalText does. The error names the field slo.
func (d *Duration) UnmarshalJSON(b []byte) error {
	s, err := strconv.Unquote(string(b)) // a duration has no escape that only JSON knows
	if err != nil || b[0] != '"' {
		return Invalid("slo", `want a duration as text, such as "10m"`)
	}
	return d.UnmarshalText([]byte(s))
}

// UnmarshalText parses a flag with ParseDuration. It refuses 0, because a request without an SLO
// has no such field.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := ParseDuration(string(b))
	if err == nil && v == 0 {
		err = Invalid("slo", `%q is not positive; want a duration such as "10m"`, Clip(string(b)))
	}
	if err != nil {
		return err
	}
	*d = Duration(v)
	return nil
}

// Seconds returns the duration in seconds.
func (d Duration) Seconds() float64 { return time.Duration(d).Seconds() }

const hoursPerDay = 24

// MaxSLO is the maximum SLO of a job.
const MaxSLO = 366 * hoursPerDay * time.Hour

// ParseInstant parses an instant in RFC 3339, or a duration before now, such as "24h" or "7d".
func ParseInstant(text string, now time.Time) (time.Time, error) {
	if ago, err := ParseDuration(text); err == nil && ago > 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("want an instant such as 2026-11-28T08:00:00Z, or a duration before now "+
			"such as 24h or 7d, not %q", Clip(text))
	}
	return at, nil
}

// ParseDuration parses a duration with the units of time.ParseDuration, optionally preceded by days
// of 24 hours: "90s", "1h30m", "2d", "1d12h". It also accepts the output of FormatSeconds, with its
// spaces. The error is an *Error with CodeInvalid for the field slo.
func ParseDuration(s string) (time.Duration, error) {
	text := removeUnitSpaces(s)
	if days, rest, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseFloat(days, 64)
		if math.Abs(n) > MaxSLO.Hours()/hoursPerDay {
			return 0, Invalid("slo", "%q is longer than %s", Clip(s), FormatSeconds(MaxSLO.Seconds()))
		}
		if err == nil {
			text = strconv.FormatFloat(n*hoursPerDay, 'f', -1, 64) + "h" + rest
		}
	}

	d, err := time.ParseDuration(text)
	switch {
	case err == nil:
		return d, nil
	case text != "" && strings.Contains("0123456789", text[len(text)-1:]):
		return 0, Invalid("slo", `%q: missing unit, use for example "10m"`, Clip(s))
	}
	return 0, Invalid("slo", `%q is not a duration such as "10m", "90s", "1h30m" or "2d"`, Clip(s))
}

// removeUnitSpaces removes each space before or after a unit. A space between two numbers stays.
func removeUnitSpaces(s string) string {
	if !strings.Contains(s, " ") {
		return s
	}
	isUnit := func(i int) bool { return i >= 0 && i < len(s) && s[i] >= 'a' && s[i] <= 'z' }
	var b strings.Builder
	for i := range len(s) {
		if s[i] != ' ' || !isUnit(i-1) && !isUnit(i+1) {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// FormatCPUs returns a number of CPUs as text: "1 CPU", "2 CPUs".
func FormatCPUs(n uint32) string { return FormatCount(uint64(n), "CPU") }

// FormatShape returns the workers of a job, 0 for a single one, with the CPUs of each: "2 CPUs", "2 workers
// of 1 CPU each".
func FormatShape(workers, cpus uint32) string {
	if workers <= 1 {
		return FormatCPUs(cpus)
	}
	return fmt.Sprintf("%d workers of %s each", workers, FormatCPUs(cpus))
}

// ShortShape returns a shape for the column CPUs of a table: "2", or "3 x 2" for three workers.
func ShortShape(workers, cpus uint32) string {
	if workers <= 1 {
		return fmt.Sprint(cpus)
	}
	return fmt.Sprintf("%d x %d", workers, cpus)
}

// FormatCount returns a number of things as text: "1 epoch", "2 epochs".
func FormatCount(n uint64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}

// FormatList lists the first few names for a message: "a, b", "a, b, c, d, e and 2 more".
func FormatList(names []string) string {
	const some = 5
	text := strings.Join(names[:min(len(names), some)], ", ")
	if more := len(names) - some; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// FormatProbability returns a probability with three digits. It never rounds to 0 or 1: "0.962",
// "over 0.999", "under 0.001".
func FormatProbability(p float64) string {
	switch {
	case p < 0.0005:
		return "under 0.001"
	case p >= 0.9995:
		return "over 0.999"
	}
	return fmt.Sprintf("%.3f", p)
}

// AndReached completes "SLO met" by a target accuracy, which the probability is about, too; "" for 0, no target.
func AndReached(target float64) string {
	if target == 0 {
		return ""
	}
	return fmt.Sprintf(" and accuracy %.4g reached", target)
}

// WorkAfter describes how long a command worked after its last epoch; "" for less than a second.
func WorkAfter(seconds float64) string {
	if seconds < 1 {
		return ""
	}
	return "it worked for another " + FormatSeconds(seconds) + " after its last epoch"
}

// OptionalProbability is FormatProbability, or "-" if the probability is unknown.
func OptionalProbability(p *float64) string { return optional(p, FormatProbability) }

// OptionalSeconds is FormatSeconds, or "-" if the time is unknown.
func OptionalSeconds(v *float64) string { return optional(v, FormatSeconds) }

// OptionalNumber formats a number with a verb of fmt, or is "-" if the number is unknown.
func OptionalNumber(v *float64, verb string) string {
	return optional(v, func(x float64) string { return fmt.Sprintf(verb, x) })
}

func optional(v *float64, format func(float64) string) string {
	if v == nil {
		return "-"
	}
	return format(*v)
}

// FormatSeconds returns a duration in seconds as readable text: "0.114 s", "48.7 s", "7m 38s",
// "6h 28m", "2d".
func FormatSeconds(v float64) string {
	const minute, hour, day = 60, 60 * 60, hoursPerDay * 60 * 60
	switch {
	case v < 0:
		return "-" + FormatSeconds(-v)
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "unknown"
	case v == 0:
		return "0 s"
	case v < 0.001:
		return "under 1 ms"
	case v < 99.95:
		return fmt.Sprintf("%.3g s", v)
	case v < hour-0.5:
		return formatUnits(math.Round(v), minute, "m", "s")
	case v < day-minute/2:
		return formatUnits(math.Round(v/minute), minute, "h", "m")
	}
	return formatUnits(math.Round(v/hour), hoursPerDay, "d", "h")
}

// FormatRunning is FormatSeconds for a time that still runs: rounded to seconds, or below ten to tenths.
func FormatRunning(v float64) string {
	if v >= 10 {
		return FormatSeconds(math.Round(v))
	}
	return FormatSeconds(math.Round(10*v) / 10)
}

// formatUnits returns a count of small units as large units and, unless it is 0, the remainder.
func formatUnits(count, perLarge float64, large, small string) string {
	text := fmt.Sprintf("%.0f%s", math.Floor(count/perLarge), large)
	if rest := math.Mod(count, perLarge); rest != 0 {
		text += fmt.Sprintf(" %.0f%s", rest, small)
	}
	return text
}

// CeilSeconds returns the shortest duration of at least v seconds that FormatSeconds prints without
// rounding, so that a request with the printed duration is long enough.
func CeilSeconds(v float64) float64 {
	const minute, hour, day = 60, 60 * 60, hoursPerDay * 60 * 60
	unit := 0.001
	switch {
	case v > day-minute/2:
		unit = hour
	case v > hour-0.5:
		unit = minute
	case v > 99.9:
		unit = 1
	case v > 9.99:
		unit = 0.1
	case v > 0.999:
		unit = 0.01
	}
	return math.Round(math.Ceil(v/unit-1e-9)*unit*1e3) / 1e3
}
