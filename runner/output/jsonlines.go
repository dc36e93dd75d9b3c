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

// jsonLines reads lines that contain a JSON object, or a dictionary of Python, with an "epoch". The
// other fields are optional, have several known names, and are not case-sensitive. A prefix of a
// logger or a launcher is skipped.
//
// An epoch with a fraction is from the Trainer of Hugging Face, which prints losses after a number
// of steps and evaluations after an epoch. There an epoch ends with its evaluation, or else with
// the first line of the next epoch.
type jsonLines struct {
	kinds       MetricKinds
	seen        bool
	last        uint32 // last reported epoch, once seen is set
	percentages percentages
	rank        string // of the first process that printed an epoch; empty: none has a rank

	isTrainer   bool         // the lines are from the Trainer of Hugging Face
	lastTrainer uint32       // its last reported epoch
	loss        *float64     // of its last line
	accuracy    *float64     // of its last evaluation; nil: none in this epoch
	metric      Metric       // of its last evaluation
	pending     *EpochReport // an epoch whose evaluation may follow; its metrics are not set
}

// Known names of the fields, in order of preference. An accuracy on unseen data comes before an
// accuracy that may be on training data.
var (
	secondsNames = []string{
		"seconds",
		"duration_seconds",
		"epoch_seconds",
		"duration",
		"epoch_time",
		"time",
		"train_wall",
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
	begin := bytes.IndexByte(line, '{')
	if begin < 0 {
		return nil
	}
	_, rank := withoutPrefix(string(line[:begin]))
	if rank != "" && j.rank != "" && rank != j.rank {
		return nil
	}
	fields := parseFields(line[begin:])
	epoch, ok := number(fields, "epoch")
	if !ok || epoch < 0 || epoch > schemas.MaxEpochs {
		return nil
	}
	if j.rank == "" {
		j.rank = rank
	}
	if j.isTrainer = j.isTrainer || isTrainerLine(fields); j.isTrainer {
		return j.trainerLine(fields, epoch, at)
	}
	if epoch != math.Trunc(epoch) {
		return nil
	}

	isRepeated := j.seen && j.last == uint32(epoch)
	j.seen, j.last = true, uint32(epoch)
	if isRepeated { // by another line or rank
		return nil
	}
	return []EpochReport{j.report(fields, uint32(epoch), at)}
}

// report returns the report of an epoch with the known fields.
func (j *jsonLines) report(
	fields map[string]json.RawMessage, epoch uint32, at time.Time,
) EpochReport {
	r := EpochReport{Epoch: epoch, At: at}
	if v, ok := firstNumber(fields, secondsNames); ok {
		r.Seconds = validSeconds(v)
	}
	if v, ok := firstNumber(fields, lossNames); ok {
		r.Loss = validLoss(v)
	}
	r.Accuracy, r.Metric = j.accuracyOf(fields)
	if v, ok := number(fields, "validation_samples"); ok && v >= 1 && v < 1<<53 {
		r.ValidationSamples = uint64(v)
	}
	if v, ok := number(fields, "batch_size"); ok {
		r.BatchSize = validCount(v, schemas.MaxBatchSize)
	}
	if v, ok := number(fields, "cpus"); ok {
		r.CPUs = validCount(v, schemas.MaxCPUs)
	}
	return r
}

// accuracyOf returns the accuracy of an epoch. If the object has none with a known name, its other
// fields are read by the words of their names, such as "val_error" or "dev_wer".
func (j *jsonLines) accuracyOf(fields map[string]json.RawMessage) (*float64, Metric) {
	for _, name := range accuracyNames {
		if v, ok := number(fields, name); ok {
			return validAccuracy(j.percentages.toRatio(v, "")), metricOf([]string{name}, v)
		}
	}
	var m measurements
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		words := j.kinds.extend(nameWords(strings.ReplaceAll(name, "/", "_")))
		v, ok := number(fields, name)
		if kind := kindOf(words); ok && kind < metricDuration {
			n := token{value: v, words: []string{name}}
			m.setMetric(kind, scopeOf(words), &n, &j.percentages)
		}
	}
	return m.accuracy, m.metric
}

// isTrainerLine reports whether a dictionary is from the Trainer of Hugging Face.
func isTrainerLine(fields map[string]json.RawMessage) bool {
	for _, name := range []string{"eval_runtime", "train_runtime", "grad_norm", "learning_rate"} {
		if _, ok := fields[name]; ok {
			return true
		}
	}
	return false
}

// trainerLine takes a line of the Trainer. Its epochs count from 1 where they are whole.
func (j *jsonLines) trainerLine(
	fields map[string]json.RawMessage, epoch float64, at time.Time,
) []EpochReport {
	const tolerance = 0.005 // the Trainer rounds epochs to two digits
	whole := uint32(math.Round(epoch))
	isWhole := math.Abs(epoch-math.Round(epoch)) < tolerance && whole > 0
	_, isEvaluation := firstNumber(fields, []string{"eval_runtime", "eval_loss"})
	_, isEnd := number(fields, "train_runtime")
	j.seen = true

	var reports []EpochReport
	if p := j.pending; p != nil && (epoch > float64(p.Epoch)+tolerance || isEnd) {
		reports = j.End()
	}
	if v, ok := number(fields, "loss"); ok {
		j.loss = validLoss(v)
	}
	if done := uint32(epoch); !isWhole && done > j.lastTrainer && !isEnd {
		reports = append(reports, j.trainerReport(done, at)) // it ended without a line of its own
	}
	if m := j.evaluated(fields); isEvaluation && m.metric.Name != "" {
		j.accuracy, j.metric = m.accuracy, m.metric
	}
	switch {
	case isWhole && isEvaluation && whole > j.lastTrainer:
		reports = append(reports, j.trainerReport(whole, at))
	case isWhole && !isEvaluation && whole > j.lastTrainer:
		if isEnd {
			return append(reports, j.trainerReport(whole, at))
		}
		j.pending = &EpochReport{Epoch: whole, At: at}
	}
	return reports
}

// evaluated returns the metrics of an evaluation.
func (j *jsonLines) evaluated(fields map[string]json.RawMessage) (m measurements) {
	for name := range fields {
		rest, isEvaluation := strings.CutPrefix(name, "eval_")
		v, ok := number(fields, name)
		if kind := kindOf(j.kinds.extend(nameWords(rest))); isEvaluation && ok && kind != metricDuration {
			n := token{value: v, words: []string{strings.ToLower(name)}}
			m.setMetric(kind, scopeValidation, &n, &j.percentages)
		}
	}
	return m
}

// trainerReport ends an epoch.
func (j *jsonLines) trainerReport(epoch uint32, at time.Time) EpochReport {
	r := EpochReport{
		Epoch:    epoch,
		Epochs:   epoch - j.lastTrainer,
		Loss:     j.loss,
		Accuracy: j.accuracy,
		Metric:   j.metric,
		At:       at,
	}
	j.lastTrainer, j.pending, j.loss, j.accuracy = epoch, nil, nil, nil
	j.metric = Metric{}
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
	items := dictionaryItem.FindAllStringSubmatch(text, maxTokens)
	raw := make(map[string]json.RawMessage, len(items))
	for _, item := range items {
		raw[item[1]] = json.RawMessage(item[2])
	}
	return raw
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

// number returns the field if it is a finite number, or a string that is one.
func number(fields map[string]json.RawMessage, name string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.Trim(string(fields[name]), `"`), 64)
	if err != nil || !isFinite(v) {
		return 0, false
	}
	return v, true
}

// End implements lineFormat.
func (j *jsonLines) End() []EpochReport {
	if j.pending == nil {
		return nil
	}
	return []EpochReport{j.trainerReport(j.pending.Epoch, j.pending.At)}
}

func (j *jsonLines) restart() lineFormat {
	return &jsonLines{percentages: j.percentages, kinds: j.kinds}
}

func (j *jsonLines) recognized() bool { return j.seen }
