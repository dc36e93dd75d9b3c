//go:build !linux

package collector

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

// gatherer is never created, because the collectors of node_exporter require Linux.
type gatherer struct {
	unavailable []string
}

func sharedGatherer() (*gatherer, error) {
	return nil, fmt.Errorf("node samples require Linux, this is %s", runtime.GOOS)
}

func (g *gatherer) read() (nodeReading, error) {
	return nodeReading{}, fmt.Errorf("no node counters on %s", runtime.GOOS)
}

func readBootID() (string, error) {
	return "", fmt.Errorf("no boot ID on %s", runtime.GOOS)
}

func sinceBoot() time.Duration { return 0 }

// threadCPUTime is only needed for samples, and samples require Linux.
func threadCPUTime() time.Duration { return 0 }

// ReleaseMemory releases memory that only the start of the program needed.
func ReleaseMemory() { debug.FreeOSMemory() }
