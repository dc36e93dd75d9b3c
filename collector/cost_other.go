//go:build !linux

package collector

import "time"

// Where nothing is sampled, sampling costs nothing.
func processCPU() time.Duration { return 0 }
func residentBytes() float64    { return 0 }

// threadTime tells no CPU time here: a speed is measured for samples only.
func threadTime() time.Duration { return 0 }
