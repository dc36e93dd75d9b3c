package digits

import (
	"encoding/json"
	"fmt"
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
	if o.format == formatText {
		_, err := fmt.Fprintf(w, "epoch %d/%d seconds=%.3f loss=%.4f accuracy=%.4f\n",
			r.epoch, o.epochs, r.duration.Seconds(), r.loss, r.accuracy)
		return err
	}
	return json.NewEncoder(w).Encode(epochLine{
		Epoch: r.epoch, Seconds: r.duration.Seconds(), Loss: r.loss,
		Accuracy: r.accuracy, BatchSize: o.batchSize, CPUs: o.cpus,
		Samples: r.images, HeldOut: r.heldOut,
	})
}
