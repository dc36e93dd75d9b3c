package collector

import (
	"cmp"
	"path/filepath"
	"time"

	"courier/schemas"
	"courier/spool"
)

// Options are the options of a Collector.
type Options struct {
	// Node is the name of this node; default schemas.LocalNodeName.
	Node string

	// Interval is the time between samples, from 100 ms to 1 h; default 2 s, as in the paper
	// (Courier, ICPE 2021).
	Interval time.Duration

	// SamplesPerMessage is the number of samples in a message, 1 to 100; default 1. Samples wait
	// until their message is full.
	SamplesPerMessage int

	// Dedicated means that this process runs nothing else. Memory that only the start or a speed
	// measurement needed is then released, see ReleaseMemory.
	Dedicated bool

	// SpoolDir is the directory for unpublished samples, and for events of runs on this node; default
	// spool.DefaultDir.
	SpoolDir string
}

// samplesDir returns the directory for the samples of this node. Without a check of the node's name,
// they are not published.
func (o Options) samplesDir() string { return filepath.Join(o.SpoolDir, "samples-"+o.Node) }

const (
	defaultInterval = 2 * time.Second
	minInterval     = 100 * time.Millisecond
	maxInterval     = time.Hour
)

func (o Options) withDefaults() (Options, error) {
	if o.Node == "" {
		name, err := schemas.LocalNodeName()
		if err != nil {
			return o, err
		}
		o.Node = name
	}
	if !schemas.ValidToken(o.Node) {
		return o, schemas.Invalid("node", "%q is not a name of 1 to %d characters a-z, 0-9, _ and -",
			o.Node, schemas.MaxTokenLength)
	}
	o.SpoolDir = cmp.Or(o.SpoolDir, spool.DefaultDir())
	o.Interval = cmp.Or(o.Interval, defaultInterval)
	if o.Interval < minInterval || o.Interval > maxInterval {
		return o, schemas.Invalid("interval", "%s is not between %s and %s",
			o.Interval, minInterval, maxInterval)
	}
	o.SamplesPerMessage = cmp.Or(o.SamplesPerMessage, 1)
	if o.SamplesPerMessage < 1 || o.SamplesPerMessage > spool.MaxSampleBatch {
		return o, schemas.Invalid("samples_per_message", "%d is not between 1 and %d",
			o.SamplesPerMessage, spool.MaxSampleBatch)
	}
	return o, nil
}
