package digits

import (
	"encoding/json"
	"os"
)

// controlVariable is the environment variable with the name of the control file, which has the
// batch size and the CPUs for a running job. `courier run` sets it.
const controlVariable = "COURIER_CONTROL"

// control is the content of the control file.
type control struct {
	BatchSize int `json:"batch_size"`
	CPUs      int `json:"cpus"`       // number of workers; 0: unchanged
	FromEpoch int `json:"from_epoch"` // first epoch with these values
}

// applyControl reads the batch size and the number of workers from the control file before an epoch
// begins. A file that is absent or cannot be parsed changes nothing, and neither does an invalid
// value. The output shows which values apply.
//
// The learning rate does not change, so the job continues like a job that began with this batch
// size, and the same predictions apply.
func (t *trainer) applyControl(path string, epoch int) {
	text, err := os.ReadFile(path)
	if err != nil {
		return
	}
	var c control
	if json.Unmarshal(text, &c) != nil || c.FromEpoch > epoch {
		return
	}
	previous := t.options
	if within("", c.BatchSize, smallestBatch, largestBatch) == nil {
		t.options.batchSize = c.BatchSize
	}
	if within("", c.CPUs, 1, mostCPUs) == nil {
		t.options.cpus = c.CPUs
	}
	if t.options.cpus != previous.cpus {
		t.barrier = newBarrier(t.options.cpus)
	}
	if t.options != previous {
		t.addWorkers()
	}
}
