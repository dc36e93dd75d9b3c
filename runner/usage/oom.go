package usage

import (
	"bytes"
	"os"
	"strconv"
)

// OOMKills returns how many processes of this machine the kernel has killed because memory was missing; 0
// where that is not known.
func OOMKills() uint64 {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); string(name) == "oom_kill" {
			n, err := strconv.ParseUint(string(value), 10, 64)
			if err != nil {
				return 0
			}
			return n
		}
	}
	return 0
}
