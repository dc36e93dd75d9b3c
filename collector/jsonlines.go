package collector

import (
	"bytes"
	"encoding/json"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// jsonLines reads lines that are a JSON object with a whole "epoch". Other
// fields are optional and known by several names; capitals do not matter.
type jsonLines struct{ seen bool }

// Names of the fields, the best first: an accuracy on unseen data before one
// that may be of training.
var (
	secondsNames  = []string{"seconds", "duration_seconds", "epoch_seconds", "duration", "epoch_time"}
	lossNames     = []string{"loss", "train_loss", "training_loss"}
	accuracyNames = []string{"val_accuracy", "validation_accuracy", "val_acc", "test_accuracy", "test_acc", "eval_accuracy", "accuracy", "acc", "top1", "top1_accuracy"}
)

// notJSON matches the numbers that Python's json module writes and JSON does not know.
var notJSON = regexp.MustCompile(`([:,\[]\s*)(?:NaN|-?Infinity)\b`)

// line implements parser.
func (j *jsonLines) line(line []byte, at time.Time) []report {
	if line[0] != '{' || !bytes.Contains(bytes.ToLower(line), []byte(`"epoch"`)) {
		return nil
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(line, &raw) != nil && json.Unmarshal(notJSON.ReplaceAll(line, []byte("${1}null")), &raw) != nil {
		return nil
	}
	fields := make(map[string]json.RawMessage, len(raw))
	for name, value := range raw {
		fields[strings.ToLower(name)] = value
	}
	epoch, ok := number(fields, "epoch")
	if !ok || epoch != math.Trunc(epoch) || epoch < 0 || epoch > schemas.MaxEpochs {
		return nil
	}
	j.seen = true
	r := report{epoch: uint32(epoch), at: at}
	if v, ok := first(fields, secondsNames); ok {
		r.seconds = reportedSeconds(v)
	}
	if v, ok := first(fields, lossNames); ok {
		r.loss = lossOf(v)
	}
	if v, ok := first(fields, accuracyNames); ok {
		r.accuracy = accuracyOf(v)
	}
	if v, ok := number(fields, "validation_samples"); ok && v >= 1 && v < 1<<53 {
		r.samples = uint64(v)
	}
	if v, ok := number(fields, "batch_size"); ok {
		r.batch = batchOf(v)
	}
	return []report{r}
}

// first returns the number of the first of the names that has one.
func first(fields map[string]json.RawMessage, names []string) (float64, bool) {
	for _, name := range names {
		if v, ok := number(fields, name); ok {
			return v, true
		}
	}
	return 0, false
}

// number returns the field if it is a finite number.
func number(fields map[string]json.RawMessage, name string) (float64, bool) {
	v, err := strconv.ParseFloat(string(fields[name]), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return v, true
}

// end implements parser: each line is complete in itself.
func (j *jsonLines) end() []report { return nil }

// again implements parser.
func (j *jsonLines) again() parser { return &jsonLines{} }

// familiar implements parser.
func (j *jsonLines) familiar() bool { return j.seen }
