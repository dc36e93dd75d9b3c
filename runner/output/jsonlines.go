package output

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

// jsonLines reads lines that are a JSON object with an integer "epoch". The other fields are
// optional, have several known names, and are not case-sensitive.
type jsonLines struct{ seen bool }

// Known names of the fields, in order of preference. An accuracy on unseen data comes before an
// accuracy that may be on training data.
var (
	secondsNames = []string{
		"seconds",
		"duration_seconds",
		"epoch_seconds",
		"duration",
		"epoch_time",
	}
	lossNames     = []string{"loss", "train_loss", "training_loss"}
	accuracyNames = []string{
		"val_accuracy",
		"validation_accuracy",
		"val_acc",
		"test_accuracy",
		"test_acc",
		"eval_accuracy",
		"accuracy",
		"acc",
		"top1",
		"top1_accuracy",
	}
)

// nonFinite matches the numbers that Python's json module writes and JSON does not allow.
var nonFinite = regexp.MustCompile(`([:,\[]\s*)(?:NaN|-?Infinity)\b`)

// Line implements lineFormat.
func (j *jsonLines) Line(line []byte, at time.Time) []EpochReport {
	fields := parseFields(line)
	epoch, ok := number(fields, "epoch")
	if !ok || epoch != math.Trunc(epoch) || epoch < 0 || epoch > schemas.MaxEpochs {
		return nil
	}

	j.seen = true
	r := EpochReport{Epoch: uint32(epoch), At: at}
	if v, ok := firstNumber(fields, secondsNames); ok {
		r.Seconds = validSeconds(v)
	}
	if v, ok := firstNumber(fields, lossNames); ok {
		r.Loss = validLoss(v)
	}
	if v, ok := firstNumber(fields, accuracyNames); ok {
		r.Accuracy = validAccuracy(v)
	}
	if v, ok := number(fields, "validation_samples"); ok && v >= 1 && v < 1<<53 {
		r.ValidationSamples = uint64(v)
	}
	if v, ok := number(fields, "batch_size"); ok {
		r.BatchSize = validBatchSize(v)
	}
	return []EpochReport{r}
}

// parseFields returns the fields of a JSON object by lower-case name, or nil if the line is not
// an object with an epoch.
func parseFields(line []byte) map[string]json.RawMessage {
	if line[0] != '{' || !bytes.Contains(bytes.ToLower(line), []byte(`"epoch"`)) {
		return nil
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(line, &raw) != nil {
		finite := nonFinite.ReplaceAll(line, []byte("${1}null"))
		if json.Unmarshal(finite, &raw) != nil {
			return nil
		}
	}
	fields := make(map[string]json.RawMessage, len(raw))
	for name, value := range raw {
		fields[strings.ToLower(name)] = value
	}
	return fields
}

// firstNumber returns the number of the first of the names that has one.
func firstNumber(fields map[string]json.RawMessage, names []string) (float64, bool) {
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

// End implements lineFormat. Each line is complete, so nothing is left.
func (j *jsonLines) End() []EpochReport { return nil }

func (j *jsonLines) restart() lineFormat { return &jsonLines{} }

func (j *jsonLines) recognised() bool { return j.seen }
