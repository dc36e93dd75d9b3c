package collector

import (
	"bytes"
	"strconv"
)

// stall is how long tasks waited for a resource so far, in seconds: at least
// one of them ("some" in the kernel's words), and all that had work ("full").
// What the kernel does not tell is nil.
type stall struct{ some, full *float64 }

// parsePressure reads pressure stall information as /proc/pressure and a cgroup
// tell it. Taken are the totals: the averages over 10 s and more would smear a
// reading into its neighbours.
func parsePressure(text []byte) stall {
	var s stall
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

// pressureBetween returns the shares of some seconds in which tasks waited for a
// resource; nil where the kernel does not tell.
func pressureBetween(before, after stall, seconds float64) (some, full *float64) {
	return shareBetween(before.some, after.some, seconds), shareBetween(before.full, after.full, seconds)
}

func shareBetween(before, after *float64, seconds float64) *float64 {
	d := difference(before, after)
	if d == nil || !(seconds > 0) {
		return nil
	}
	return share(*d / seconds)
}
