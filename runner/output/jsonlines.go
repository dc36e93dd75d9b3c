package output

import (
	"bytes"
	"encoding/json"
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
	epoch := number(fields, "epoch")
	if !(epoch >= 0 && epoch <= schemas.MaxEpochs) || epoch != math.Trunc(epoch) {
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
func isOwnFormat(fields map[string]json.RawMessage) bool {
	isOnly, isOwn := len(fields) > 0, false
	for name := range fields {
		i := slices.Index(ownNames, name)
		isOnly = isOnly && i >= 0
		isOwn = isOwn || i > slices.Index(ownNames, "accuracy")
		if slices.Contains(stepNames, name) {
			return false
		}
	}
	return isOnly || isOwn && fields["seconds"] != nil
}

// stepNames are fields of an object that is about a part of an epoch.
var stepNames = []string{"step", "global_step", "batch", "iter", "iteration"}

// report returns the report of an epoch with the known fields, such as "val_error" or "dev_wer".
func (j *jsonLines) report(fields map[string]json.RawMessage, epoch uint32, at time.Time) EpochReport {
	b := newBlock()
	for _, label := range slices.Sorted(maps.Keys(fields)) {
		n := nameOf([]byte(label), nil, j.own)
		if slices.Contains(secondsNames, label) {
			n.counter = countsEpochs
		}
		j.add(b, n, label, number(fields, label))
	}
	r := j.fileMetrics.report(epoch, b, at)
	if v := number(fields, "validation_samples"); v >= 1 && v < 1<<53 {
		r.ValidationSamples = uint64(v)
	}
	r.BatchSize = validCount(number(fields, "batch_size"), schemas.MaxBatchSize)
	r.CPUs = validCount(number(fields, "cpus"), schemas.MaxCPUs)
	return r
}

// parseFields returns the fields of an object by lower-case name, or nil if the text does not
// begin with an object that has an epoch.
func parseFields(text []byte) map[string]json.RawMessage {
	if !bytes.Contains(bytes.ToLower(text), []byte(`epoch`)) {
		return nil
	}
	raw := parseObject(text)
	if raw == nil {
		raw = parseObject(nonFinite.ReplaceAll(text, []byte("${1}null")))
	}
	if raw == nil {
		raw = parseDictionary(string(text))
	}
	fields := make(map[string]json.RawMessage, len(raw))
	for name, value := range raw {
		fields[strings.ToLower(name)] = value
		for inner, v := range parseObject(value) { // {"val": {"accuracy": 0.8}}
			fields[strings.ToLower(name+"_"+inner)] = v
		}
	}
	return fields
}

// parseObject returns the fields of a JSON object, which other text may follow; nil if there is
// none.
func parseObject(text []byte) map[string]json.RawMessage {
	var raw map[string]json.RawMessage
	if json.NewDecoder(bytes.NewReader(text)).Decode(&raw) != nil {
		return nil
	}
	return raw
}

// dictionaryItem matches an item of a dictionary of Python whose value is a number or a string.
var dictionaryItem = regexp.MustCompile(
	`'([\w./@ -]{1,100})': ?'?([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?|nan|inf))'?\s*[,}]`)

// parseDictionary returns the numbers of a dictionary as Python prints it.
func parseDictionary(text string) map[string]json.RawMessage {
	items := dictionaryItem.FindAllStringSubmatch(text, maxFields)
	raw := make(map[string]json.RawMessage, len(items))
	for _, item := range items {
		raw[item[1]] = json.RawMessage(item[2])
	}
	return raw
}

// number returns the field if it is a number, or a string that is one; otherwise NaN.
func number(fields map[string]json.RawMessage, name string) float64 {
	v, err := strconv.ParseFloat(strings.Trim(string(fields[name]), `"`), 64)
	if err != nil {
		return math.NaN()
	}
	return v
}
