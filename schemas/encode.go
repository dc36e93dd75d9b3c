package schemas

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"time"
)

// jsonWriter writes an advice as encoding/json does, in a third of the time:
// every answer is one, and writing it was the larger part of answering. A test
// holds both against each other, field by field. The bytes go from hand to hand: a
// slice in memory is one that the garbage collector wants to know of at each change.
type jsonWriter struct{ err error }

func (w *jsonWriter) advice(b []byte, a *Advice) []byte {
	b = w.text(b, `{"event_id":`, a.EventID)
	b = w.time(b, `,"at":`, a.At)
	b = w.text(b, `,"job_id":`, a.JobID)
	b = number(b, `,"run":`, uint64(a.Run))
	if a.CauseSequence != 0 {
		b = number(b, `,"cause_sequence":`, a.CauseSequence)
	}
	b = w.text(b, `,"decision":`, string(a.Decision))
	b = w.text(b, `,"action":`, string(a.Action))
	b = w.text(b, `,"message":`, a.Message)
	b = w.text(b, `,"model":`, a.Model)
	if a.Dataset != "" {
		b = w.text(b, `,"dataset":`, a.Dataset)
	}
	b = w.texts(b, `,"nodes":`, a.Nodes)
	b = w.some(b, `,"slo_seconds":`, a.SLOSeconds)
	b = w.some(b, `,"elapsed_seconds":`, a.ElapsedSeconds)
	b = w.float(b, `,"confidence":`, a.Confidence)
	b = w.some(b, `,"threshold":`, a.Threshold)
	b = number(b, `,"epochs_done":`, uint64(a.EpochsDone))
	b = w.some(b, `,"epoch_ratio":`, a.EpochRatio)
	b = w.float(b, `,"load":{"concurrent_jobs":`, a.Load.ConcurrentJobs)
	b = w.float(b, `,"processes":`, a.Load.Processes)
	b = w.float(b, `,"processes_per_core":`, a.Load.ProcessesPerCore)
	b = w.float(b, `,"stable_time_ratio":`, a.Load.StableTimeRatio)
	b = w.ratio(b, `,"foreign_cpu_ratio":`, a.Load.ForeignCPURatio)
	b = w.ratio(b, `,"foreign_io_wait_ratio":`, a.Load.ForeignIOWaitRatio)
	b = w.alternatives(append(b, '}'), a)
	if len(a.Effects) > 0 {
		b = w.other(b, `,"effects":`, a.Effects)
	}
	if len(a.Menu) > 0 {
		b = w.other(b, `,"menu":`, a.Menu)
	}
	if len(a.Probes) > 0 {
		b = w.other(b, `,"probes":`, a.Probes)
	}
	if len(a.Relatives) > 0 {
		b = w.texts(b, `,"relatives":`, a.Relatives)
	}
	if a.Admission != nil {
		b = w.other(b, `,"admission":`, a.Admission)
	}
	return append(w.digests(b, a.Regressors), '}')
}

// alternatives writes the chosen one, then all, of which it is one.
func (w *jsonWriter) alternatives(b []byte, a *Advice) []byte {
	b = append(b, `,"chosen":`...)
	from := len(b)
	if a.Chosen == nil {
		b = append(b, "null"...)
	} else {
		b = w.alternative(b, a.Chosen)
	}
	chosen := b[from:]
	b = append(b, `,"alternatives":`...)
	if a.Alternatives == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := range a.Alternatives {
		if i > 0 {
			b = append(b, ',')
		}
		if alt := &a.Alternatives[i]; a.Chosen != nil && *alt == *a.Chosen {
			b = append(b, chosen...)
		} else {
			b = w.alternative(b, alt)
		}
	}
	return append(b, ']')
}

func (w *jsonWriter) alternative(b []byte, a *Alternative) []byte {
	b = number(b, `{"batch_size":`, uint64(a.BatchSize))
	b = number(b, `,"cpus":`, uint64(a.CPUs))
	b = number(b, `,"epochs":`, uint64(a.Epochs))
	b = w.known(b, `,"predicted_seconds":`, a.PredictedSeconds)
	b = w.known(b, `,"mean_seconds":`, a.MeanSeconds)
	b = w.known(b, `,"upper_bound_seconds":`, a.UpperBoundSeconds)
	b = w.known(b, `,"predicted_accuracy":`, a.PredictedAccuracy)
	b = w.known(b, `,"probability":`, a.Probability)
	b = w.known(b, `,"cpu_seconds":`, a.CPUSeconds)
	b = w.known(b, `,"score":`, a.Score)
	if a.Extrapolated {
		b = append(b, `,"extrapolated":true`...)
	}
	if a.Reason != "" {
		b = w.text(b, `,"reason":`, a.Reason)
	}
	b = w.known(b, `,"mean_accuracy":`, a.MeanAccuracy)
	b = w.known(b, `,"accuracy_lower":`, a.AccuracyLower)
	b = w.known(b, `,"accuracy_upper":`, a.AccuracyUpper)
	b = w.known(b, `,"slo_probability":`, a.SLOProbability)
	b = w.known(b, `,"accuracy_probability":`, a.AccuracyProbability)
	if a.Evidence != nil {
		b = w.evidence(append(b, `,"evidence":`...), a.Evidence)
	}
	return append(b, '}')
}

// digests writes the regressors in the order of their names.
func (w *jsonWriter) digests(b []byte, all map[string]string) []byte {
	b = append(b, `,"regressors":`...)
	if all == nil {
		return append(b, "null"...)
	}
	names := make([]string, 0, 8)
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	before := "{"
	for _, name := range names {
		b = w.text(b, before, name)
		b = w.text(b, ":", all[name])
		before = ","
	}
	if len(names) == 0 {
		b = append(b, '{')
	}
	return append(b, '}')
}

func number(b []byte, name string, v uint64) []byte {
	return strconv.AppendUint(append(b, name...), v, 10)
}

// known writes a number that may be absent, some one that is absent where it is 0.
func (w *jsonWriter) known(b []byte, name string, v *float64) []byte {
	if v == nil {
		return b
	}
	return w.float(b, name, *v)
}

func (w *jsonWriter) some(b []byte, name string, v float64) []byte {
	if v == 0 {
		return b
	}
	return w.float(b, name, v)
}

// ratio writes a known ratio and leaves out an unknown one.
func (w *jsonWriter) ratio(b []byte, name string, r Ratio) []byte {
	if r == (Ratio{}) {
		return b
	}
	if !r.Known {
		return append(append(b, name...), "null"...)
	}
	return w.float(b, name, r.Value)
}

// float writes a number without exponent where that is short, as encoding/json.
func (w *jsonWriter) float(b []byte, name string, v float64) []byte {
	if n := math.RoundToEven(v * 1e6); n/1e6 == v && math.Abs(n) < 1e15 && n != 0 {
		return millionths(append(b, name...), int64(n))
	}
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) || math.IsNaN(v) {
		return w.other(b, name, v)
	}
	return strconv.AppendFloat(append(b, name...), v, 'f', -1, 64)
}

// millionths writes a whole number of them, as most figures are. With at most 15
// digits that is the shortest number that reads back as the same float64, which
// strconv would have to search for.
func millionths(b []byte, n int64) []byte {
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendInt(b, n/1e6, 10)
	rest := uint32(n % 1e6)
	if rest == 0 {
		return b
	}
	digits := [7]byte{'.', '0', '0', '0', '0', '0', '0'}
	for i := 6; i > 0; i-- {
		digits[i] += byte(rest % 10)
		rest /= 10
	}
	last := 6
	for digits[last] == '0' {
		last--
	}
	return append(b, digits[:last+1]...)
}

// plain are the bytes that stand for themselves in a text.
var plain = func() (is [256]bool) {
	for c := byte(' '); c < 0x7f; c++ {
		is[c] = c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
	}
	return is
}()

// text writes a string; one that needs escapes goes the long way.
func (w *jsonWriter) text(b []byte, name, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] {
			return w.other(b, name, s)
		}
	}
	b = append(append(b, name...), '"')
	return append(append(b, s...), '"')
}

// texts writes those of a list.
func (w *jsonWriter) texts(b []byte, name string, all []string) []byte {
	if len(all) == 0 {
		return w.other(b, name, all) // null or []
	}
	b = append(b, name...)
	before := "["
	for _, s := range all {
		b = w.text(b, before, s)
		before = ","
	}
	return append(b, ']')
}

func (w *jsonWriter) time(b []byte, name string, t time.Time) []byte {
	if y := t.Year(); y < 1 || y > 9999 || t.Location() != time.UTC {
		return w.other(b, name, t)
	}
	b = append(append(b, name...), '"')
	return append(t.AppendFormat(b, time.RFC3339Nano), '"')
}

// other writes what is rare or large as encoding/json does.
func (w *jsonWriter) other(b []byte, name string, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	return append(append(b, name...), data...)
}
