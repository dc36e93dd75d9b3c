package digits

import (
	"encoding/json"
	"os"
)

// controlVariable is the environment variable with the name of the control file, which has the
// batch size for a running job. `courier run --adapt control` sets it.
const controlVariable = "COURIER_CONTROL"

// control is the content of the control file.
type control struct {
	BatchSize int `json:"batch_size"`
	FromEpoch int `json:"from_epoch"` // first epoch with this batch size
}

// applyControl reads the batch size from the control file before an epoch begins. A file
// that is absent, cannot be parsed or has an invalid batch size changes nothing. The
// batch size in the output shows which one applies.
//
// The learning rate does not change, so the job continues like a job that began with this batch
// size, and the same predictions apply.
func (t *trainer) applyControl(path string, epoch int) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	var c control
	if json.Unmarshal(text, &c) != nil || c.FromEpoch > epoch ||
		c.BatchSize == t.options.batchSize ||
		within("", c.BatchSize, smallestBatch, largestBatch) != nil {
		return
	}
	t.options.batchSize = c.BatchSize
	t.addWorkers()
}
