package importer

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/runner/output"
	"courier/schemas"
)

// Names of a run's fields in Options.Columns and in refusals.
const (
	FieldRunID           = "run_id"
	FieldModel           = "model"
	FieldDataset         = "dataset"
	FieldBatchSize       = "batch_size"
	FieldCPUs            = "cpus"
	FieldWorkers         = "workers" // with cpus each
	FieldEpochs          = "epochs"
	FieldEpochsDone      = "epochs_done" // of a run that ended early
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
	FieldCommand         = "command"    // whose flags have the fields that no column has
	FieldTimeLimit       = "time_limit" // of the batch system
	FieldDevices         = "devices"    // of a run, if the batch size is that of one
	FieldAccumulation    = "accumulation_steps"
	FieldJobName         = "job_name" // the model of a job of a batch system that has no other
)

// count parses a whole number between 1 and limit.
func count(field, text string, limit uint64) (uint64, *Refusal) {
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64) // accepts 128.0
	if err != nil || v != math.Trunc(v) || !(v >= 1 && v <= float64(limit)) {
		return 0, refuse(ReasonInvalid, field, "%q is not a whole number between 1 and %d", schemas.Clip(text), limit)
	}
	return uint64(v), nil
}

// parseSeconds returns the seconds of a duration, also in the form of ISO 8601, such as PT1H2M3S.
func parseSeconds(text string) (seconds float64, known bool) {
	text = strings.TrimSpace(strings.TrimSuffix(text, "(s)")) // 3600 second(s)
	if iso, isISO := strings.CutPrefix(text, "P"); isISO && strings.Contains(iso, "T") {
		text = strings.ToLower(strings.Replace(iso, "T", "", 1))
	}
	return output.ParseSeconds(text)
}

// limitSeconds returns the seconds of a time limit, of which a plain number is in minutes, as in Slurm; 0
// without a limit.
func limitSeconds(text string) float64 {
	limit, known := parseSeconds(text)
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		limit *= 60
	}
	if !known || !(limit > 0) {
		return 0
	}
	return limit
}

// seconds parses a duration above 0, or a start-up that takes no time: a number of seconds, or a text such as
// 8m13.5s, 1.2min, 01:02:03, 1-02:03:04 or "0 days 00:05:00".
func seconds(field, text string) (float64, *Refusal) {
	v, known := parseSeconds(text)
	switch {
	case !known:
		return 0, refuse(ReasonInvalid, field,
			"%q is not a time in seconds, such as 493.5, or with a unit, such as 8m13.5s", schemas.Clip(text))
	case !(v > 0) && (v != 0 || field != FieldStartup):
		return 0, refuse(ReasonPositive, field, "%s is not above 0 seconds", schemas.Clip(text))
	case v > schemas.MaxSLO.Seconds():
		return 0, refuse(ReasonInvalid, field, "%s seconds is more than a year", schemas.Clip(text))
	}
	return v, nil
}

// ratio parses a ratio from 0 to 1, or a percentage: a number above 1, or with a percent sign.
func ratio(field, text string) (*float64, *Refusal) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err == nil && (isPercent || v > 1) {
		v = output.FromPercent(v)
	}
	if err != nil || !(v >= 0 && v <= 1) {
		return nil, refuse(ReasonInvalid, field,
			"%q is neither a number between 0 and 1 nor a percentage", schemas.Clip(text))
	}
	return &v, nil
}

// Accepted layouts of timestamps with and without a time zone.
var (
	zonedLayouts = []string{
		time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700",
		"2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05 Z0700", "2006-01-02 15:04:05 UTC",
		"2006-01-02 15:04:05 -0700 MST", "2006-01-02 15:04Z07:00",
	}
	localLayouts = []string{
		"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02_15-04-05", "2006/01/02 15:04:05",
		"2006-01-02T15:04", "2006-01-02 15:04", "2006/01/02 15:04", "2006-01-02", "2006/01/02",
		"2006-01-02 3:04:05 PM", "2006-01-02 3:04 PM", "Mon Jan _2 15:04:05 2006",
		"Jan _2 15:04:05 2006", "Jan _2 15:04:05 2006 L",
	}
)

// dayOrMonthFirst matches dates such as 3/4/2021, which may begin with the day or the month.
var dayOrMonthFirst = regexp.MustCompile(`^(\d{1,2})([./-])(\d{1,2})[./-](\d{4})\b`)

// isMonthFirst reports whether the dates of a source begin with the month, because they have a number that is no
// month; nil if none has.
func isMonthFirst(texts []string) *bool {
	day, month := false, false
	for _, text := range texts {
		if m := dayOrMonthFirst.FindStringSubmatch(text); m != nil && m[2] != "." {
			day, month = day || numberOf(m[1]) > 12, month || numberOf(m[3]) > 12
		}
	}
	if day == month {
		return nil
	}
	return &month
}

// yearFirst returns a timestamp with the year first. Dates with dots begin with the day.
func yearFirst(text string, monthFirst *bool) string {
	m := dayOrMonthFirst.FindStringSubmatch(text)
	if m == nil || monthFirst == nil && m[2] != "." {
		return text
	}
	day, month := m[1], m[3]
	if m[2] != "." && *monthFirst {
		day, month = month, day
	}
	return fmt.Sprintf("%s-%02s-%02s%s", m[4], month, day, text[len(m[0]):])
}

// Instant parses a timestamp: RFC 3339, a date with or without a time of day in the zone, or
// seconds or milliseconds since 1970. With a nil zone, a timestamp without one is an error.
func Instant(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	isValid := func(t time.Time, err error) bool {
		return err == nil && t.Year() >= 1970 && t.Year() <= 2200
	}
	for i, layout := range slices.Concat(zonedLayouts, localLayouts) {
		t, err := time.ParseInLocation(layout, text, cmp.Or(zone, time.UTC))
		switch {
		case !isValid(t, err):
		case zone == nil && i >= len(zonedLayouts):
			return time.Time{}, fmt.Errorf("%q has no time zone: give --time-zone, such as"+
				" --time-zone Europe/Amsterdam or --time-zone UTC", schemas.Clip(text))
		default:
			return t.UTC(), nil
		}
	}
	if dayOrMonthFirst.MatchString(text) {
		return time.Time{}, fmt.Errorf("%q may begin with the day or with the month: write 2020-10-21",
			schemas.Clip(text))
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
		" 2020-10-21 13:57:28, 2020-10-21, or seconds or milliseconds since 1970", schemas.Clip(text))
}

// outcomes maps words in sources to outcomes; "" is a run that has not ended.
var outcomes = map[string]string{"": schemas.EventFinished}

func init() {
	for outcome, words := range map[string]string{
		schemas.EventFinished: "finished success successful succeeded complete completed done ok pass" +
			" passed true cd",
		schemas.EventFailed: "failed fail failure error crashed timeout node_fail out_of_memory oom" +
			" oomkilled boot_fail deadline preempted evicted exit false",
		schemas.EventCancelled: "cancelled canceled killed pruned stopped aborted revoked interrupted",
		"": "running in_progress in-progress scheduled" +
			" started pending queued waiting paused submitted requeued suspended" +
			" unknown completing configuring active r pd run pend",
	} {
		for word := range strings.FieldsSeq(words) {
			outcomes[word] = outcome
		}
	}
}

// endOf returns the outcome of a run that succeeded or failed.
func endOf(succeeded bool) string {
	if succeeded {
		return schemas.EventFinished
	}
	return schemas.EventFailed
}

// outcomeOf returns the outcome of a word, such as that of "CANCELLED by 1000", "TrialState.COMPLETE" or 1/1.
func outcomeOf(text string) (outcome string, known bool) {
	word, _, _ := strings.Cut(strings.ToLower(text), " ")
	word = strings.TrimPrefix(strings.TrimPrefix(word[strings.LastIndexByte(word, '.')+1:], "job_"), "state_")
	outcome, known = outcomes[word]
	if done, all, found := strings.Cut(word, "/"); found && numberOf(all) > 0 { // completions of a Kubernetes job
		if done == all {
			return schemas.EventFinished, true
		}
		return "", true
	}
	return outcome, known
}
