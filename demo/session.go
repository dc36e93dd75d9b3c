package demo

import (
	"io"
	"math/rand/v2"

	"courier/bus"
)

// Options are the options of Run.
type Options struct {
	Bus        *bus.Bus      // connection to the cluster
	SpoolDir   string        // for events that cannot be published
	WebPage    string        // URL to print
	NATSURL    string        // URL to print
	SQLMissing func() string // why the cluster has no SQL; empty if it has

	Seed   uint64    // of the order of runs and the random batch sizes
	Stderr io.Writer // receives messages and the progress bar
}

// demo is one run of the demo.
type demo struct {
	o      Options
	printf func(format string, args ...any) // prints a message
	random *rand.Rand
	copies int // distorted copies of each image in an epoch
}
