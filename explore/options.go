package explore

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"courier/schemas"
)

// Options of a study. Zero fields mean the documented defaults.
type Options struct {
	Model        string   `json:"model"`             // name of the model
	Dataset      string   `json:"dataset,omitempty"` // name of the dataset; empty: unnamed
	Command      []string `json:"command"`
	Factors      Factors  `json:"factors"`
	Design       string   `json:"design"`       // default DesignAdaptive, or DesignFull without SLOs
	Epochs       int      `json:"epochs"`       // of each run
	Replications int      `json:"replications"` // of each cell; the design adaptive needs fewer; default 3
	Seed         uint64   `json:"seed"`         // of the random order; default 1

	// The options below may change when a study is continued.
	Cores          int             `json:"-"` // of the node
	SLOs           []time.Duration `json:"-"`
	Confidence     float64         `json:"-"` // of a promise; default schemas.DefaultConfidence
	TargetAccuracy float64         `json:"-"` // 0: none
	Budget         time.Duration   `json:"-"` // no block starts that would end after it; 0: none
}

// minGain is the expected gain of accuracy below which a measurement is not worth its time.
const minGain = 0.002

// withDefaults returns the options with defaults for empty fields.
func (o Options) withDefaults() Options {
	if o.Design == "" {
		o.Design = DesignAdaptive
		if len(o.SLOs) == 0 {
			o.Design = DesignFull
		}
	}
	o.Replications = cmp.Or(o.Replications, 3)
	o.Seed = cmp.Or(o.Seed, 1)
	o.Cores = max(1, o.Cores)
	o.Confidence = cmp.Or(o.Confidence, schemas.DefaultConfidence)
	f := &o.Factors
	for _, list := range []*[]int{&f.BatchSizes, &f.CPUs, &f.Workers, &f.GPUs, &f.Jobs} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if len(f.CPUs) == 0 {
		f.CPUs = []int{1}
	}
	if len(f.Workers) == 0 {
		f.Workers = []int{1}
	}
	if len(f.GPUs) == 0 {
		f.GPUs = []int{0}
	}
	if len(f.Jobs) == 0 {
		f.Jobs = []int{1}
	}
	return o
}

// validate checks the options.
func (o *Options) validate() error {
	for _, list := range []struct {
		flag   string
		levels []int
		least  int
		most   int
	}{
		{"--batch-sizes", o.Factors.BatchSizes, 1, schemas.MaxBatchSize},
		{"--cpus", o.Factors.CPUs, 1, schemas.MaxCPUs},
		{"--workers", o.Factors.Workers, 1, schemas.MaxWorkers},
		{"--gpus", o.Factors.GPUs, 0, schemas.MaxCPUs},
		{"--jobs", o.Factors.Jobs, 1, maxJobs},
	} {
		if len(list.levels) == 0 {
			return fmt.Errorf("%s is missing: give the levels to measure, for example 32,64,128",
				list.flag)
		}
		for _, level := range list.levels {
			if level < list.least || level > list.most {
				return fmt.Errorf("%s: %d is not between %d and %d",
					list.flag, level, list.least, list.most)
			}
		}
	}
	if n := len(o.Factors.Cells()); n > maxCells {
		return fmt.Errorf("%d combinations of levels, want at most %d", n, maxCells)
	}
	if o.Epochs < 1 || o.Epochs > schemas.MaxEpochs {
		return fmt.Errorf("--epochs: %d is not between 1 and %d", o.Epochs, schemas.MaxEpochs)
	}
	if o.Replications < 1 || o.Replications > maxReplications {
		return fmt.Errorf("--replications: %d is not between 1 and %d",
			o.Replications, maxReplications)
	}
	if o.Design == DesignAdaptive && len(o.SLOs) == 0 {
		return errors.New("--design adaptive needs at least one --slo: it measures what decides")
	}
	return nil
}

// Bounds of a study.
const (
	maxJobs         = 256
	maxCells        = 10_000
	maxReplications = 1000
)
