package collector

import (
	"os"
	"slices"
	"strings"
)

const maxCPUModelBytes = 128

// cpuModelOf returns the CPU models in the text of /proc/cpuinfo, or an empty string if it has
// none. Most ARM systems have only part numbers, which are not used.
func cpuModelOf(cpuinfo string) string {
	var models []string
	for line := range strings.Lines(cpuinfo) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name", "cpu model", "cpu": // x86; MIPS; POWER
			words := strings.FieldsFunc(value, isUnprintable)
			model := strings.ToValidUTF8(strings.Join(words, " "), "")
			if model != "" && !slices.Contains(models, model) {
				models = append(models, model)
			}
		}
	}
	all := strings.Join(models, " and ")
	return strings.ToValidUTF8(all[:min(len(all), maxCPUModelBytes)], "")
}

func isUnprintable(c rune) bool { return c <= ' ' || c == 0x7f }

func localCPUModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	return cpuModelOf(string(text))
}
