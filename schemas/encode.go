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
// holds both against each other, field by field.
type jsonWriter struct {
	b   []byte
	err error
}

func (w *jsonWriter) advice(a *Advice) {
	w.text(`{"event_id":`, a.EventID)
	w.time(`,"at":`, a.At)
	w.text(`,"job_id":`, a.JobID)
	w.number(`,"run":`, uint64(a.Run))
	if a.CauseSequence != 0 {
		w.number(`,"cause_sequence":`, a.CauseSequence)
	}
	w.text(`,"decision":`, string(a.Decision))
	w.text(`,"action":`, string(a.Action))
	w.text(`,"message":`, a.Message)
	w.text(`,"model":`, a.Model)
	w.other(`,"nodes":`, a.Nodes)
	w.some(`,"slo_seconds":`, a.SLOSeconds)
	w.some(`,"elapsed_seconds":`, a.ElapsedSeconds)
	w.float(`,"confidence":`, a.Confidence)
	w.some(`,"threshold":`, a.Threshold)
	w.number(`,"epochs_done":`, uint64(a.EpochsDone))
	w.some(`,"epoch_ratio":`, a.EpochRatio)
	w.float(`,"load":{"concurrent_jobs":`, a.Load.ConcurrentJobs)
	w.float(`,"processes":`, a.Load.Processes)
	w.float(`,"processes_per_core":`, a.Load.ProcessesPerCore)
	w.float(`,"foreign_cpu_ratio":`, a.Load.ForeignCPURatio)
	w.float(`,"stable_time_ratio":`, a.Load.StableTimeRatio)
	w.raw(`},"chosen":`)
	if a.Chosen == nil {
		w.raw("null")
	} else {
		w.alternative(a.Chosen)
	}
	w.raw(`,"alternatives":`)
	w.alternatives(a.Alternatives)
	if len(a.Effects) > 0 {
		w.other(`,"effects":`, a.Effects)
	}
	if len(a.Menu) > 0 {
		w.other(`,"menu":`, a.Menu)
	}
	if len(a.Probes) > 0 {
		w.other(`,"probes":`, a.Probes)
	}
	if len(a.Relatives) > 0 {
		w.other(`,"relatives":`, a.Relatives)
	}
	if a.Admission != nil {
		w.other(`,"admission":`, a.Admission)
	}
	w.digests(a.Regressors)
	w.raw("}")
}

func (w *jsonWriter) alternatives(all []Alternative) {
	if all == nil {
		w.raw("null")
		return
	}
	w.raw("[")
	for i := range all {
		if i > 0 {
			w.raw(",")
		}
		w.alternative(&all[i])
	}
	w.raw("]")
}

func (w *jsonWriter) alternative(a *Alternative) {
	w.number(`{"batch_size":`, uint64(a.BatchSize))
	w.number(`,"cpus":`, uint64(a.CPUs))
	w.number(`,"epochs":`, uint64(a.Epochs))
	w.known(`,"predicted_seconds":`, a.PredictedSeconds)
	w.known(`,"mean_seconds":`, a.MeanSeconds)
	w.known(`,"upper_bound_seconds":`, a.UpperBoundSeconds)
	w.known(`,"predicted_accuracy":`, a.PredictedAccuracy)
	w.known(`,"probability":`, a.Probability)
	w.known(`,"cpu_seconds":`, a.CPUSeconds)
	w.known(`,"score":`, a.Score)
	if a.Extrapolated {
		w.raw(`,"extrapolated":true`)
	}
	if a.Reason != "" {
		w.text(`,"reason":`, a.Reason)
	}
	w.raw("}")
}

// digests writes the regressors in the order of their names.
func (w *jsonWriter) digests(all map[string]string) {
	w.raw(`,"regressors":`)
	if all == nil {
		w.raw("null")
		return
	}
	names := make([]string, 0, 8)
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	before := "{"
	for _, name := range names {
		w.text(before, name)
		w.text(":", all[name])
		before = ","
	}
	if len(names) == 0 {
		w.raw("{")
	}
	w.raw("}")
}

func (w *jsonWriter) raw(s string) { w.b = append(w.b, s...) }

func (w *jsonWriter) number(name string, v uint64) {
	w.raw(name)
	w.b = strconv.AppendUint(w.b, v, 10)
}

// known writes a number that may be absent, some one that is absent where it is 0.
func (w *jsonWriter) known(name string, v *float64) {
	if v != nil {
		w.float(name, *v)
	}
}

func (w *jsonWriter) some(name string, v float64) {
	if v != 0 {
		w.float(name, v)
	}
}

// float writes a number without exponent where that is short, as encoding/json.
func (w *jsonWriter) float(name string, v float64) {
	if size := math.Abs(v); size != 0 && (size < 1e-6 || size >= 1e21) || math.IsNaN(v) {
		w.other(name, v)
		return
	}
	w.raw(name)
	if n := math.Round(v * 1e6); n/1e6 == v && math.Abs(n) < 1e15 && n != 0 {
		w.millionths(int64(n))
		return
	}
	w.b = strconv.AppendFloat(w.b, v, 'f', -1, 64)
}

// millionths writes a whole number of them, as most figures are. With at most 15
// digits that is the shortest number that reads back as the same float64, which
// strconv would have to search for.
func (w *jsonWriter) millionths(n int64) {
	if n < 0 {
		w.raw("-")
		n = -n
	}
	w.b = strconv.AppendInt(w.b, n/1e6, 10)
	rest := n % 1e6
	if rest == 0 {
		return
	}
	digits := 6
	for ; rest%10 == 0; rest /= 10 {
		digits--
	}
	w.raw(".")
	at := len(w.b)
	w.b = append(w.b, "000000"[:digits]...)
	for i := digits - 1; i >= 0; i-- {
		w.b[at+i] = '0' + byte(rest%10)
		rest /= 10
	}
}

// text writes a string; one that needs escapes goes the long way.
func (w *jsonWriter) text(name, s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			w.other(name, s)
			return
		}
	}
	w.raw(name)
	w.b = append(append(append(w.b, '"'), s...), '"')
}

func (w *jsonWriter) time(name string, t time.Time) {
	if y := t.Year(); y < 1 || y > 9999 || t.Location() != time.UTC {
		w.other(name, t)
		return
	}
	w.raw(name)
	w.b = append(t.AppendFormat(append(w.b, '"'), time.RFC3339Nano), '"')
}

// other writes what is rare or large as encoding/json does.
func (w *jsonWriter) other(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.raw(name)
	w.b = append(w.b, b...)
}
