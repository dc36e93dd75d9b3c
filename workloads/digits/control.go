package digits

import (
	"encoding/json"
	"os"
)

// controlVariable names the file that tells a running training its batch size;
// `courier run --adapt control` sets it.
const controlVariable = "COURIER_CONTROL"

// control is what the file says.
type control struct {
	BatchSize int `json:"batch_size"`
	FromEpoch int `json:"from_epoch"` // not before this one
}

// obey changes the batch size as the control file says, before an epoch begins.
// A file that is not there, is not understood, or asks for what the flags would
// refuse changes nothing: who wrote it sees from the lines that nothing came of it.
//
// The size of a step stays what it is, as for a training that began with this
// batch size: what was learnt of those still holds.
func (t *trainer) obey(path string, epoch int) {
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
	t.hire()
}
