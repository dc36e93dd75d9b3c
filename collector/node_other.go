//go:build !linux

package collector

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// gatherer is never made here: node_exporter compiles for Linux only, as it is
// used in this program.
type gatherer struct {
	leftOut []string
}

func theGatherer() (*gatherer, error) {
	return nil, fmt.Errorf("node samples are for Linux, this is %s", runtime.GOOS)
}

func (g *gatherer) read(context.Context) (reading, error) { return g.readBrief() }

func (g *gatherer) readBrief() (reading, error) {
	return reading{}, fmt.Errorf("no node metrics on %s", runtime.GOOS)
}

func bootID() (string, error) {
	return "", fmt.Errorf("no boot ID on %s", runtime.GOOS)
}

func sinceBoot() time.Duration { return 0 }
