//go:build !linux

package collector

import "time"

// Only samples need these figures, and samples require Linux.

func processCPUTime() time.Duration { return 0 }

func residentBytes() float64 { return 0 }

func threadCPUTime() time.Duration { return 0 }
