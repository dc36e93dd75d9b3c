package digits

import (
	"encoding/json"
	"io"
)

// epochLine is the JSON of one epoch.
type epochLine struct {
	Epoch     int     `json:"epoch"`
	Seconds   float64 `json:"seconds"`
	Loss      float64 `json:"loss"`
	Accuracy  float64 `json:"accuracy"`
	BatchSize int     `json:"batch_size"`
	CPUs      int     `json:"cpus"`
	Samples   int     `json:"samples"`
	HeldOut   int     `json:"validation_samples"`
}

// report writes the line of a finished epoch.
func report(w io.Writer, o options, r result) error {
	return json.NewEncoder(w).Encode(epochLine{
		Epoch: r.epoch, Seconds: r.duration.Seconds(), Loss: r.loss,
		Accuracy: r.accuracy, BatchSize: o.batchSize, CPUs: o.cpus,
		Samples: r.images, HeldOut: r.heldOut,
	})
}
