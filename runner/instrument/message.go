package instrument

import (
	"cmp"

	"courier/schemas"
)

// message is a line of the instrumentation. Unknown types and fields are ignored.
type message struct {
	Type      string             `json:"type"`
	Source    string             `json:"source"`
	Epoch     uint32             `json:"epoch"`
	Count     uint32             `json:"count"` // of the epochs of a block, up to Epoch
	Seconds   float64            `json:"seconds"`
	Ago       float64            `json:"ago"`        // seconds since the end of the epoch
	BatchSize uint32             `json:"batch_size"` // of one process and one batch
	Batches   float64            `json:"batches"`
	Steps     float64            `json:"steps"` // of the optimizer
	Of        float64            `json:"of"`    // batches or epochs, if the type is progress or fit
	World     uint32             `json:"world"` // processes that train together
	IsLoop    bool               `json:"loop"`  // the epoch is a value of the script's own loop
	Values    map[string]float64 `json:"values"`

	Wait       *float64 `json:"wait"`       // seconds, for batches
	Evaluation *float64 `json:"evaluation"` // seconds
	Save       *float64 `json:"save"`       // seconds, of checkpoints
	Device     string   `json:"device"`
	Devices    uint32   `json:"devices"`
	DevicePeak *float64 `json:"gpu_peak_allocated"` // bytes
	Peak       *float64 `json:"rss_peak"`           // bytes
}

// phases returns the phases of an epoch, without figures that cannot be right.
func (m *message) phases() schemas.Phases {
	p := schemas.Phases{
		InputWaitSeconds:  m.Wait,
		EvaluationSeconds: m.Evaluation,
		CheckpointSeconds: m.Save,
		PeakMemoryBytes:   cmp.Or(m.DevicePeak, m.Peak),
		Device:            m.Device,
		Devices:           m.Devices,
	}
	if p.Validate() != nil {
		return schemas.Phases{}
	}
	return p
}
