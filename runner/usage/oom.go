package usage

import "os"

// OOMKills returns how many processes of this machine the kernel has killed because memory was missing; 0
// where that is not known.
func OOMKills() float64 {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	return parseKeyed(text)["oom_kill"]
}
