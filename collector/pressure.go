package collector

import "strings"

// addPressure takes a metric of pressure stall information: the seconds in which
// at least one task waited for the resource ("some" in the kernel's words).
// The seconds in which all tasks waited are left out, because a CPU has none.
func (r *reading) addPressure(name string, seconds float64) {
	resource, found := strings.CutPrefix(name, "node_pressure_")
	if !found {
		return
	}
	if resource, found = strings.CutSuffix(resource, "_waiting_seconds_total"); found {
		r.pressure[resource] = seconds
	}
}

// pressureBetween returns the share of the time between two readings in which
// some task waited for the resource; nil where the kernel does not tell. It is
// taken from the kernel's totals and not from its averages over 10 s, which
// would smear a sample into its neighbours.
func pressureBetween(before, after reading, resource string) *float64 {
	b, known := before.pressure[resource]
	if !known {
		return nil
	}
	a, known := after.pressure[resource]
	if !known || a < b {
		return nil
	}
	return share((a - b) / after.at.Sub(before.at).Seconds())
}
