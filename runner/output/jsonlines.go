package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// newJSONLines returns a reader of JSON lines. A line may have the loss of a validation alone, where the
// training reports its own on another line.
func newJSONLines(m fileMetrics, isOwn bool) *jsonLines {
	m.isTrainingLoss = true
	return &jsonLines{fileMetrics: m, isOwn: isOwn}
}

// jsonLines reads lines that contain a JSON object, or a dictionary of Python, with an "epoch". The
// other fields are optional, are read by the words of their names, and are not case-sensitive. A prefix
// of a logger or a launcher is skipped.
type jsonLines struct {
	fileMetrics
	isOwn bool // only objects of Courier's own format count
	seen  bool
	last  uint32 // last reported epoch, once seen is set
}

// secondsNames are names of the duration of an epoch without the word. Other times may be since the
// start.
var secondsNames = []string{"seconds", "duration_seconds", "duration", "time_this_iter_s"}

// nonFinite matches the numbers that Python's json module writes and JSON does not allow.
var nonFinite = regexp.MustCompile(`([:,\[]\s*)(?:NaN|-?Infinity)\b`)

// Line implements lineFormat.
func (j *jsonLines) Line(line []byte, at time.Time) []EpochReport {
	begin := bytes.IndexByte(line, '{')
	if begin < 0 || j.isOwn && begin > 0 {
		return nil
	}
	fields := parseFields(line[begin:])
	if j.isOwn && !isOwnFormat(fields) {
		return nil
	}
	epoch, isTold := fields["epoch"]
	if !isTold || !(epoch >= 0 && epoch <= schemas.MaxEpochs) || epoch != math.Trunc(epoch) {
		return nil
	}

	isRepeated := j.seen && j.last == uint32(epoch)
	j.seen, j.last = true, uint32(epoch)
	if isRepeated { // by another line or rank
		return nil
	}
	return []EpochReport{j.report(fields, uint32(epoch), at)}
}

// ownNames are the fields of Courier's own format.
var ownNames = []string{"epoch", "seconds", "loss", "accuracy", "validation_samples", "batch_size", "cpus"}

// isOwnFormat reports whether an object is of Courier's own format: it has no other fields, or it
// has seconds beside a batch size, CPUs or a number of samples. All other objects are recognised by
// structure, because they may be about a batch or a part of an epoch.
func isOwnFormat(fields map[string]float64) bool {
	isOnly, isOwn := len(fields) > 0, false
	for name := range fields {
		i := slices.Index(ownNames, name)
		isOnly = isOnly && i >= 0
		isOwn = isOwn || i > slices.Index(ownNames, "accuracy")
		if slices.Contains(stepNames, name) {
			return false
		}
	}
	_, isTimed := fields["seconds"]
	return isOnly || isOwn && isTimed
}

// stepNames are fields of an object that is about a part of an epoch.
var stepNames = []string{"step", "global_step", "batch", "iter", "iteration"}

// report returns the report of an epoch with the known fields, such as "val_error" or "dev_wer".
func (j *jsonLines) report(fields map[string]float64, epoch uint32, at time.Time) EpochReport {
	b := newBlock()
	for _, label := range slices.Sorted(maps.Keys(fields)) {
		n := nameOf([]byte(label), nil, j.own)
		if slices.Contains(secondsNames, label) {
			n.counter = countsEpochs
		}
		j.add(b, n, label, fields[label])
	}
	r := j.fileMetrics.report(epoch, b, at)
	if v := fields["validation_samples"]; v >= 1 && v < 1<<53 {
		r.ValidationSamples = uint64(v)
	}
	r.BatchSize = validCount(fields["batch_size"], schemas.MaxBatchSize)
	r.CPUs = validCount(fields["cpus"], schemas.MaxCPUs)
	return r
}

// parseFields returns the numbers in an object by lower-case name, and NaN for other fields. There are none
// if the text does not begin with an object that has an epoch.
func parseFields(text []byte) map[string]float64 {
	fields := map[string]float64{}
	if !bytes.Contains(bytes.ToLower(text), []byte(`epoch`)) {
		return fields
	}
	raw := parseObject(text)
	if raw == nil {
		raw = parseObject(nonFinite.ReplaceAll(text, []byte("${1}null")))
	}
	if raw == nil {
		for _, item := range dictionaryItem.FindAllStringSubmatch(string(text), maxFields) {
			fields[strings.ToLower(item[1])] = number(item[2])
		}
	}
	for name, value := range raw {
		fields[strings.ToLower(name)] = number(value)
		inner, _ := value.(map[string]any) // {"val": {"accuracy": 0.8}}
		for k, v := range inner {
			fields[strings.ToLower(name+"_"+k)] = number(v)
		}
	}
	return fields
}

// parseObject returns the fields of a JSON object, which other text may follow; nil if there is
// none.
func parseObject(text []byte) (raw map[string]any) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if d.Decode(&raw) != nil {
		return nil
	}
	return raw
}

// dictionaryItem matches an item of a dictionary of Python whose value is a number or a string.
var dictionaryItem = regexp.MustCompile(
	`'([\w./@ -]{1,100})': ?'?([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))'?\s*[,}]`)

// number returns a number, or that of a string, else NaN.
func number(value any) float64 {
	v, err := strconv.ParseFloat(fmt.Sprint(value), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
