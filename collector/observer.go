package collector

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"courier/schemas"
)

// Observer measures the load of this node for one job. It needs no collector service and no bus. It
// is not safe for concurrent use.
type Observer struct {
	gatherer *gatherer // nil: unavailable on this system
	log      *slog.Logger
	last     nodeReading
}

// NewObserver returns an observer of this node. If the counters of the node are unavailable, all
// figures of Load are missing.
func NewObserver(log *slog.Logger) *Observer {
	g, err := sharedGatherer()
	if err != nil {
		log.Info("node load is not measured", "reason", err)
	}
	return &Observer{gatherer: g, log: log}
}

// Hardware returns the node's cores and CPU model.
func (o *Observer) Hardware() schemas.Hardware {
	return schemas.Hardware{Cores: o.last.cores(), CPUModel: localCPUModel()}
}

// Load sets the node fields of an epoch event to the load since the previous call. The first call
// sets only the cores and the load average.
func (o *Observer) Load(e *schemas.Epoch) {
	var current nodeReading
	if o.gatherer != nil {
		var err error
		if current, err = o.gatherer.read(); err != nil {
			o.log.Debug("node load not measured completely", "error", err)
		}
	}
	e.NodeCores, e.NodeLoadAverage = current.cores(), current.value(loadMetric)
	e.NodeCPURatio, e.NodeIOWaitRatio = cpuBetween(o.last, current)
	o.last = current
}

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
