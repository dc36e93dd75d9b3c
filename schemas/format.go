package schemas

import (
	"math"
	"strconv"
)

// FormatCPUs returns a number of CPUs as text: "1 CPU", "2 CPUs".
func FormatCPUs(n uint32) string { return string(AppendCount(nil, uint64(n), "CPU")) }

// FormatCount returns a number of things as text: "1 epoch", "2 epochs".
func FormatCount(n uint64, thing string) string { return string(AppendCount(nil, n, thing)) }

// AppendCount appends the result of FormatCount.
func AppendCount(b []byte, n uint64, thing string) []byte {
	b = append(append(strconv.AppendUint(b, n, 10), ' '), thing...)
	if n == 1 {
		return b
	}
	return append(b, 's')
}

// FormatProbability returns a probability with three digits. It never rounds to 0 or 1: "0.962",
// "over 0.999", "under 0.001".
func FormatProbability(p float64) string { return string(AppendProbability(nil, p)) }

// AppendProbability appends the result of FormatProbability.
func AppendProbability(b []byte, p float64) []byte {
	const digits, half = 3, 0.0005
	switch {
	case p < half:
		return append(b, "under 0.001"...)
	case p >= 1-half:
		return append(b, "over 0.999"...)
	}
	return strconv.AppendFloat(b, p, 'f', digits, 64)
}

// FormatSeconds returns a duration in seconds as readable text: "0.114 s", "48.7 s", "7m 38s",
// "6h 28m", "2d".
func FormatSeconds(v float64) string { return string(AppendSeconds(nil, v)) }

// AppendSeconds appends the result of FormatSeconds.
func AppendSeconds(b []byte, v float64) []byte {
	const minute, hour, day = 60, 60 * 60, hoursPerDay * 60 * 60
	if v < 0 {
		b, v = append(b, '-'), -v
	}
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return append(b, "unknown"...)
	case v == 0:
		return append(b, "0 s"...)
	case v < 0.001:
		return append(b, "under 1 ms"...)
	case v < 99.95:
		return append(strconv.AppendFloat(b, v, 'g', 3, 64), " s"...)
	case v < hour-0.5:
		return appendUnits(b, math.Round(v), minute, "m", "s")
	case v < day-minute/2:
		return appendUnits(b, math.Round(v/minute), minute, "h", "m")
	}
	return appendUnits(b, math.Round(v/hour), hoursPerDay, "d", "h")
}

// appendUnits appends a count of small units as large units and, unless it is 0, the remainder.
func appendUnits(b []byte, count, perLarge float64, large, small string) []byte {
	b = append(strconv.AppendFloat(b, math.Floor(count/perLarge), 'f', 0, 64), large...)
	rest := math.Mod(count, perLarge)
	if rest == 0 {
		return b
	}
	return append(strconv.AppendFloat(append(b, ' '), rest, 'f', 0, 64), small...)
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
