package schemas

import (
	"cmp"
	"fmt"
	"strings"
)

// Phases are parts of an epoch that were measured inside the training, and what the training used. Figures
// that were not measured are absent. The seconds may overlap: an evaluation waits for its own input, which
// does not count as InputWaitSeconds.
type Phases struct {
	// Time in which the training waited for batches.
	InputWaitSeconds *float64 `json:"input_wait_seconds,omitempty" ch:"input_wait_seconds"`
	// Time of the evaluations in the epoch and after it.
	EvaluationSeconds *float64 `json:"evaluation_seconds,omitempty" ch:"evaluation_seconds"`
	// Time in which checkpoints were saved.
	CheckpointSeconds *float64 `json:"checkpoint_seconds,omitempty" ch:"checkpoint_seconds"`
	// Highest memory until the end of the epoch: allocated on the fullest device or, without a device,
	// resident in the process.
	PeakMemoryBytes *float64 `json:"peak_memory_bytes,omitempty" ch:"peak_memory_bytes"`
	// Name of the first device, such as a GPU; empty if the training uses none.
	Device string `json:"device,omitempty" ch:"device"`
	// Number of devices that the training uses.
	Devices uint32 `json:"devices,omitempty" ch:"devices"`
}

// parts returns the seconds with their names.
func (p *Phases) parts() []struct {
	field, name string
	seconds     **float64
} {
	return []struct {
		field, name string
		seconds     **float64
	}{
		{"input_wait_seconds", "input wait", &p.InputWaitSeconds},
		{"evaluation_seconds", "evaluation", &p.EvaluationSeconds},
		{"checkpoint_seconds", "checkpoints", &p.CheckpointSeconds},
	}
}

// Add adds the phases of a later epoch: its seconds, and the memory and the devices that it has used.
func (p *Phases) Add(o Phases) {
	others := o.parts()
	for i, part := range p.parts() {
		if seconds := *others[i].seconds; seconds != nil {
			sum := *seconds
			if *part.seconds != nil {
				sum += **part.seconds
			}
			*part.seconds = &sum
		}
	}
	if peak := o.PeakMemoryBytes; peak != nil && (p.PeakMemoryBytes == nil || *peak > *p.PeakMemoryBytes) {
		p.PeakMemoryBytes = peak
	}
	p.Device, p.Devices = cmp.Or(o.Device, p.Device), max(o.Devices, p.Devices)
}

// Text lists the phases for people; it is empty if none was measured.
func (p *Phases) Text() string {
	var all []string
	for _, part := range p.parts() {
		if *part.seconds != nil {
			all = append(all, part.name+" "+FormatSeconds(**part.seconds))
		}
	}
	if p.PeakMemoryBytes != nil {
		all = append(all, fmt.Sprintf("peak memory %.3g GB", *p.PeakMemoryBytes/1e9))
	}
	if p.Device != "" {
		all = append(all, fmt.Sprintf("%d × %s", max(p.Devices, 1), p.Device))
	}
	return strings.Join(all, ", ")
}

// Validate returns an *Error that names a wrong field.
func (p *Phases) Validate() error {
	err := validateText("device", p.Device)
	for _, part := range p.parts() {
		if *part.seconds != nil {
			err = cmp.Or(err, validateSeconds(part.field, **part.seconds))
		}
	}
	if p.PeakMemoryBytes != nil {
		err = cmp.Or(err, validateRange("peak_memory_bytes", *p.PeakMemoryBytes, 0, maxMemoryBytes))
	}
	return err
}

// maxMemoryBytes is more than any machine has: an exabyte.
const maxMemoryBytes = 1e18

// EpochProgress is the progress within the running epoch, measured inside the training. It is not in the
// log, so that no recorded advice depends on it.
type EpochProgress struct {
	// Number of the running epoch; absent if its progress is unknown.
	RunningEpoch uint32 `json:"running_epoch,omitempty"`
	// Share of its batches that are done, 0 to 1.
	EpochRatio float64 `json:"epoch_ratio,omitempty"`
	// Its duration, estimated from these batches, without its evaluation.
	EpochSeconds float64 `json:"epoch_seconds,omitempty"`
}

// LeftSeconds returns the estimated time until the end of the running epoch.
func (p *EpochProgress) LeftSeconds() float64 { return p.EpochSeconds * (1 - p.EpochRatio) }

func (p *EpochProgress) validate() error {
	return cmp.Or(
		validateSeconds("epoch_seconds", p.EpochSeconds),
		validateRatios(ratioField{"epoch_ratio", &p.EpochRatio}),
	)
}
