package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// Names of a run's fields in Options.Columns and in refusals.
const (
	FieldRunID           = "run_id"
	FieldModel           = "model"
	FieldDataset         = "dataset"
	FieldBatchSize       = "batch_size"
	FieldCPUs            = "cpus"
	FieldEpochs          = "epochs"
	FieldSeconds         = "duration_seconds"
	FieldStartup         = "startup_seconds"
	FieldStartedAt       = "started_at"
	FieldEndedAt         = "ended_at"
	FieldAccuracy        = "accuracy"
	FieldError           = "error" // 1 - accuracy
	FieldConcurrentJobs  = "concurrent_jobs"
	FieldNodes           = "nodes"
	FieldNodeCores       = "node_cores"
	FieldCPUModel        = "cpu_model"
	FieldGPUModel        = "gpu_model"
	FieldTrainingSamples = "training_samples"
	FieldUser            = "user"
	FieldOutcome         = "outcome"
	FieldEpoch           = "epoch" // number of the epoch, if a row is an epoch
	FieldEpochSeconds    = "epoch_seconds"
	FieldLoss            = "loss"
)

// fieldNames lists the names of the fields in sources; the first is the field itself.
var fieldNames = []struct {
	field string
	known []string
}{
	{FieldRunID, []string{"run_id", "run_uuid", "run", "id", "job_id", "job"}},
	{FieldModel, []string{"model", "model_name", "network", "net", "architecture", "arch"}},
	{FieldDataset, []string{"dataset", "dataset_name", "data_set"}},
	{
		FieldBatchSize,
		[]string{
			"batch_size", "batchsize", "batch", "bs", "train_batch_size", "minibatch_size",
			"mini_batch_size",
		},
	},
	{FieldCPUs, []string{"cpus", "cpu", "cores", "num_cpus", "total_cores"}},
	{
		FieldEpochs,
		[]string{
			"epochs", "num_epochs", "n_epochs", "nepochs", "max_epochs", "max_epoch", "maxepoch",
		},
	},
	{
		FieldSeconds,
		[]string{
			"duration_seconds", "duration_s", "time_s", "time_seconds", "total_seconds",
			"elapsed_seconds", "seconds",
		},
	},
	{FieldStartup, []string{"startup_seconds", "startup_s"}},
	{FieldStartedAt, []string{"started_at", "start_time", "start", "started"}},
	{FieldEndedAt, []string{"ended_at", "end_time", "end", "ended", "finished_at"}},
	{
		FieldAccuracy,
		[]string{
			"accuracy", "final_accuracy", "val_accuracy", "validation_accuracy", "val_acc",
			"test_accuracy", "test_acc", "eval_accuracy", "top1_accuracy", "acc",
		},
	},
	{
		FieldError,
		[]string{
			"error", "val_error", "validation_error", "test_error", "eval_error", "error_rate",
			"val_error_rate", "test_error_rate", "top1_error", "val_err", "test_err", "wer", "val_wer",
			"test_wer", "cer", "val_cer", "test_cer",
		},
	},
	{FieldConcurrentJobs, []string{"concurrent_jobs", "njobs", "jobs"}},
	{FieldNodes, []string{"nodes", "node", "host", "hostname"}},
	{FieldNodeCores, []string{"node_cores"}},
	{FieldCPUModel, []string{"cpu_model", "cpu_type", "processor"}},
	{FieldGPUModel, []string{"gpu_model", "gpu_type", "gpu_name", "accelerator"}},
	{FieldTrainingSamples, []string{"training_samples", "train_samples", "samples"}},
	{FieldUser, []string{"user", "user_id"}},
	{FieldOutcome, []string{"outcome", "status", "state"}},
	{FieldEpoch, []string{"epoch"}},
	{FieldEpochSeconds, []string{
		"epoch_seconds", "epoch_time", "epoch_time_s", "epoch_duration", "time_per_epoch",
		"seconds_per_epoch",
	}},
	{FieldLoss, []string{"loss", "train_loss", "training_loss"}},
}

// Fields lists the name of every field.
func Fields() []string {
	all := make([]string, len(fieldNames))
	for i := range fieldNames {
		all[i] = fieldNames[i].field
	}
	return all
}

// columnsOf maps fields to names in a source. It uses the names that the user requested, or known
// names.
func columnsOf(have []string, requested map[string]string) map[string]string {
	found := map[string]string{}
	for _, n := range fieldNames {
		if name, ok := requested[n.field]; ok {
			if slices.Contains(have, name) {
				found[n.field] = name
			}
			continue
		}
		for _, known := range n.known {
			if i := slices.IndexFunc(have, func(h string) bool {
				return compact(h) == compact(known)
			}); i >= 0 {
				found[n.field] = have[i]
				break
			}
		}
	}
	return found
}

// normalize returns a name in lower case with underscores as separators.
func normalize(name string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '-' || r == '.' {
			return '_'
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// compact returns a name in lower case without separators, so that "ValAcc" equals "val_acc".
func compact(name string) string { return strings.ReplaceAll(normalize(name), "_", "") }

// proposals maps the columns that are not used to the field that each resembles, or to "".
func proposals(have []string, columns map[string]string) map[string]string {
	unused := map[string]string{}
	for _, name := range have {
		isUsed := false
		for _, column := range columns {
			isUsed = isUsed || column == name
		}
		if !isUsed {
			unused[name] = resembledField(compact(name), columns)
		}
	}
	return unused
}

// resembledField returns the field without a column that has a known name which contains the name,
// or is contained in it.
func resembledField(name string, columns map[string]string) string {
	const least = 4           // characters; shorter names are contained in too many others
	if name == "epochsdone" { // courier explore: the epochs of a run that were completed
		return ""
	}
	for _, n := range fieldNames {
		if _, found := columns[n.field]; found {
			continue
		}
		for _, known := range n.known {
			k := compact(known)
			if len(name) >= least && strings.Contains(k, name) ||
				len(k) >= least && strings.Contains(name, k) {
				return n.field
			}
		}
	}
	return ""
}

// count parses a whole number between 1 and limit.
func count(field, text string, limit uint64) (uint64, *Refusal) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64) // accepts 128.0
	if err != nil || v != math.Trunc(v) || !(v >= 1 && v <= float64(limit)) {
		return 0, refuse(ReasonInvalid, field, "%q is not a whole number between 1 and %d",
			clip(text), limit)
	}
	return uint64(v), nil
}

// seconds parses a duration: a number of seconds, or a Go duration with units.
func seconds(field, text string) (float64, *Refusal) {
	text = strings.TrimSpace(text)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		d, bad := time.ParseDuration(text)
		if bad != nil {
			return 0, refuse(ReasonInvalid, field,
				"%q is not a time in seconds, such as 493.5, or with a unit, such as 8m13.5s",
				clip(text))
		}
		v = d.Seconds()
	}
	switch {
	case !(v > 0):
		return 0, refuse(ReasonPositive, field, "%s is not above 0 seconds", clip(text))
	case v > schemas.MaxSLO.Seconds():
		return 0, refuse(ReasonInvalid, field, "%s seconds is more than a year", clip(text))
	}
	return v, nil
}

// ratio parses a ratio from 0 to 1, or a percentage: a number above 1, or with a percent sign.
func ratio(field, text string) (*float64, *Refusal) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err == nil && (isPercent || v > 1) {
		v = fromPercent(v)
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return nil, refuse(ReasonInvalid, field,
			"%q is neither a number between 0 and 1 nor a percentage", clip(text))
	}
	return &v, nil
}

// fromPercent returns a percentage as a ratio, without the digits that the division adds.
func fromPercent(v float64) float64 { return math.Round(v*1e10) / 1e12 }

// Accepted layouts of timestamps with and without a time zone.
var (
	zonedLayouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00"}
	localLayouts = []string{
		"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02",
	}
)

// Instant parses a timestamp: RFC 3339, a date with or without a time of day in the zone, or
// seconds or milliseconds since 1970. With a nil zone, a timestamp without one is an error.
func Instant(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	isValid := func(t time.Time, err error) bool {
		return err == nil && t.Year() >= 1970 && t.Year() <= 2200
	}
	for _, layout := range zonedLayouts {
		if t, err := time.Parse(layout, text); isValid(t, err) {
			return t.UTC(), nil
		}
	}
	for _, layout := range localLayouts {
		t, err := time.ParseInLocation(layout, text, cmp.Or(zone, time.UTC))
		switch {
		case !isValid(t, err):
		case zone == nil:
			return time.Time{}, fmt.Errorf("%q has no time zone: give --time-zone, such as"+
				" --time-zone Europe/Amsterdam or --time-zone UTC", clip(text))
		default:
			return t.UTC(), nil
		}
	}
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case v >= 1e8 && v < 1e10:
			return time.UnixMicro(int64(math.Round(v * 1e6))).UTC(), nil
		case v >= 1e11 && v < 7.2e12:
			return time.UnixMicro(int64(math.Round(v * 1e3))).UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a timestamp such as 2020-10-21T13:57:28Z,"+
		" 2020-10-21 13:57:28, 2020-10-21, or seconds or milliseconds since 1970",
		clip(text))
}

// outcomes maps words in sources to outcomes; "" is a run that has not ended.
var outcomes = map[string]string{
	"":          schemas.EventFinished,
	"finished":  schemas.EventFinished,
	"success":   schemas.EventFinished,
	"succeeded": schemas.EventFinished,
	"completed": schemas.EventFinished,
	"done":      schemas.EventFinished,
	"ok":        schemas.EventFinished,
	"failed":    schemas.EventFailed,
	"error":     schemas.EventFailed,
	"crashed":   schemas.EventFailed,
	"cancelled": schemas.EventCancelled,
	"canceled":  schemas.EventCancelled,
	"killed":    schemas.EventCancelled,
	"running":   "",
	"scheduled": "",
	"started":   "",
}
