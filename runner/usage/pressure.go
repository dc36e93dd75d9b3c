package usage

import (
	"bytes"
	"math"
	"strconv"
)

// stallTime is how long tasks have waited for a resource, in seconds: at least one task (some),
// and all tasks that were not idle (full), as in the kernel's pressure stall information. An
// unknown figure is nil.
type stallTime struct{ some, full *float64 }

// parsePressure parses pressure stall information in the format of /proc/pressure and cgroups.
// It uses the totals, because the averages of the kernel cover the time before the interval.
func parsePressure(text []byte) stallTime {
	var s stallTime
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) < 2 {
			continue
		}
		total, found := bytes.CutPrefix(fields[len(fields)-1], []byte("total="))
		if !found {
			continue
		}
		microseconds, err := strconv.ParseUint(string(total), 10, 64)
		if err != nil {
			continue
		}
		seconds := float64(microseconds) / 1e6
		switch string(fields[0]) {
		case "some":
			s.some = &seconds
		case "full":
			s.full = &seconds
		}
	}
	return s
}

// pressureRatio returns the share of an interval in which tasks waited. Clocks of different
// resolution can put it slightly above 1, which is corrected. Six digits are more than the
// resolution of the counters.
func pressureRatio(before, after *float64, seconds float64) *float64 {
	waited := increase(before, after)
	if waited == nil || !(seconds > 0) {
		return nil
	}
	return new(math.Round(min(*waited/seconds, 1)*1e6) / 1e6)
}
