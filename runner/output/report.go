package output

import (
	"math"
	"time"

	"courier/schemas"
)

// EpochReport is what a job's output contains about one epoch.
type EpochReport struct {
	Epoch             uint32    // number as printed, or from 1 if it was recognised by structure
	Epochs            uint32    // epochs that the report covers, up to Epoch; 0 means 1
	Seconds           float64   // duration of one epoch; 0: not reported
	Loss              *float64  // training loss; nil: not reported
	IsLossHeldOut     bool      // Loss is that of held-out data: the output has no other
	Accuracy          *float64  // 0 to 1; nil: not reported
	Metric            Metric    // behind Accuracy, or a loss on held-out data without one
	ValidationSamples uint64    // number of samples behind Accuracy; 0: not reported
	BatchSize         uint32    // batch size of the epoch; 0: not reported
	CPUs              uint32    // CPUs of the epoch; 0: not reported
	Loaders           *uint32   // data loaders of the epoch; nil: not reported
	At                time.Time // arrival of its last line
	ReportedAt        time.Time // arrival of the line that showed that the epoch had ended
	BeganAt           time.Time // arrival of the first line about the epoch; zero: unknown

	IsStated bool // in Courier's own format

	Phases schemas.Phases // measured inside the training
}

// validSeconds returns a duration, or 0 if an epoch cannot have it.
func validSeconds(seconds float64) float64 {
	if seconds > 0 && seconds <= schemas.MaxSLO.Seconds() {
		return seconds
	}
	return 0
}

// validAccuracy returns an accuracy, or nil if it is outside 0 to 1.
func validAccuracy(v float64) *float64 {
	if v >= 0 && v <= 1 {
		return &v
	}
	return nil
}

// validCount returns a count from 1 to a maximum, or 0 if the number is not a valid one.
func validCount(v, most float64) uint32 {
	if v >= 1 && v <= most && v == math.Trunc(v) {
		return uint32(v)
	}
	return 0
}
