package instrument_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"courier/runner/instrument"
	"courier/runner/output"
)

// start is when every job of these tests starts. Times in the tables are seconds after it.
var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func after(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// event is a message of a connection, or a printed epoch if it has no message.
type event struct {
	at      float64
	from    int
	message string
	printed uint32
}

// measured returns an epoch of ten seconds that ended at an instant, and is known a second later.
func measured(epoch int, endedAt float64, fields string) event {
	return event{at: endedAt + 1, from: 1, message: fmt.Sprintf(
		`{"type":"unit","epoch":%d,"seconds":10,"ago":1,"source":"torch"%s}`, epoch, fields)}
}

func printed(epoch uint32, at float64) event { return event{at: at, printed: epoch} }

var fit = event{from: 1, message: `{"type":"fit","source":"torch"}`}

const (
	loop = `,"loop":true`
	acc  = `,"loop":true,"values":{"val/acc":0.25}`
)

// Epochs of a job are those of one source, with the metric of the other where it has none.
func TestMerge(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []event
		counts bool // the output counts epochs
		want   []string
		notes  int
	}{
		{"output only", []event{printed(1, 10), printed(2, 20)}, true,
			[]string{"1 at 10: 0.5", "2 at 20: 0.5"}, 0},
		{"inside only", []event{fit, measured(1, 10, loop), measured(2, 20, loop)}, false,
			[]string{"1 at 10 for 10", "2 at 20 for 10"}, 0},
		{"metric from a logger", []event{fit, measured(1, 10, acc), printed(1, 9)}, true,
			[]string{"1 at 10 for 10: 0.25"}, 0},
		{"metric from the output, which is confirmed late",
			[]event{fit, measured(1, 10, loop), measured(2, 20, loop), printed(1, 9), printed(2, 19)}, true,
			[]string{"1 at 10 for 10: 0.5", "2 at 20 for 10: 0.5"}, 0},
		{"an epoch that the output leaves out",
			[]event{fit, measured(1, 10, loop), measured(2, 20, loop), printed(2, 19)}, true,
			[]string{"1 at 10 for 10", "2 at 20 for 10: 0.5"}, 0},
		{"several printed epochs within one",
			[]event{fit, printed(1, 4), printed(2, 9), measured(1, 10, loop), printed(3, 14), printed(4, 19),
				measured(2, 20, loop), printed(5, 24), printed(6, 29), measured(3, 30, loop)}, true,
			[]string{"1 at 10 for 10", "2 at 20 for 10", "3 at 30 for 10"}, 1},
		{"output that is read late", []event{fit, measured(1, 10, loop), printed(1, 11.04), measured(2, 20, loop),
			printed(2, 21.04)}, true,
			[]string{"1 at 10 for 10: 0.5", "2 at 20 for 10: 0.5"}, 0},
		{"output that counts from 0", []event{fit, measured(1, 10, loop), printed(0, 9), measured(2, 20, loop),
			printed(1, 19)}, true,
			[]string{"1 at 10 for 10: 0.5", "2 at 20 for 10: 0.5"}, 0},
		{"passes that are parts of an epoch",
			[]event{fit, measured(1, 10, ""), measured(2, 20, ""), measured(3, 30, ""), measured(4, 40, ""),
				printed(1, 19), printed(2, 39)}, true,
			[]string{"1 at 19: 0.5", "2 at 39: 0.5"}, 1},
		{"a resumed training whose loop is unknown",
			[]event{fit, measured(1, 10, ""), printed(6, 9), measured(2, 20, ""), printed(7, 19)}, true,
			[]string{"6 at 10 for 10: 0.5", "7 at 20 for 10: 0.5"}, 0},
		{"a resumed loop that counts from 0",
			[]event{fit, measured(4, 10, loop), printed(3, 9), measured(5, 20, loop), printed(4, 19)}, true,
			[]string{"4 at 10 for 10: 0.5", "5 at 20 for 10: 0.5"}, 0},
		{"a block of short epochs",
			[]event{fit, {at: 1, from: 1, message: `{"type":"unit","epoch":8,"count":8,"seconds":0.03,` +
				`"source":"xgboost","values":{"valid_auc":0.75}}`}}, false,
			[]string{"8 at 1 for 0.03 (8): 0.75"}, 0},
		{"another process", []event{fit, {from: 2, message: fit.message},
			{at: 5, from: 2, message: `{"type":"unit","epoch":1,"seconds":5,"source":"torch","loop":true}`},
			measured(1, 10, loop)}, false,
			[]string{"1 at 10 for 10"}, 0},
		{"a process after another", []event{fit, measured(1, 10, loop), {at: 11, from: 1, message: `{"type":"end"}`},
			{at: 12, from: 2, message: fit.message},
			{at: 15, from: 2, message: `{"type":"unit","epoch":1,"seconds":3,"source":"torch","loop":true}`}}, false,
			[]string{"1 at 10 for 10", "2 at 15 for 3"}, 0},
		{"no epoch inside", []event{fit, printed(1, 10), printed(2, 20), printed(3, 30)}, true,
			[]string{"1 at 10: 0.5", "2 at 20: 0.5", "3 at 30: 0.5"}, 0},
		{"a training inside after printed epochs", []event{printed(1, 10), fit, measured(1, 20, loop)}, true,
			[]string{"1 at 10: 0.5"}, 0},
		{"garbage", []event{{from: 1, message: "x\x00"}, {from: 1, message: `{"type":"unit","epoch":1}`}, fit,
			{from: 1, message: `{"type":"later"}`}, measured(1, 10, loop)}, false,
			[]string{"1 at 10 for 10"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := instrument.NewMerge()
			var got []string
			take := func(reports []output.EpochReport) {
				for i := range reports {
					got = append(got, text(&reports[i]))
				}
			}
			last := 0.0
			for _, e := range c.events {
				last = max(last, e.at)
				if e.message != "" {
					m.Line(e.from, []byte(e.message), after(e.at))
				} else {
					accuracy := 0.5
					r := output.EpochReport{Epoch: e.printed, At: after(e.at), Accuracy: &accuracy}
					take(m.Text([]output.EpochReport{r}))
				}
				take(m.Take(after(e.at), c.counts, false))
			}
			take(m.Take(after(last), c.counts, true))
			if !slices.Equal(got, c.want) {
				t.Errorf("epochs %q, want %q", got, c.want)
			}
			if notes := m.Notes(); len(notes) != c.notes {
				t.Errorf("notes %q, want %d", notes, c.notes)
			}
		})
	}
}

// A training whose steps are not seen shows where its loop begins. The start-up ends there.
func TestMerge_BeginOfTheLoop(t *testing.T) {
	for _, c := range []struct {
		epoch           uint32
		beganAt, wantAt float64
		loop            string
	}{
		{1, 0, 4, "loop"},
		{0, 9, 4, "loop"},
		{1, 2, 2, "loop"}, // the output says so
		{6, 0, 0, "loop"}, // of an unknown number of epochs
		{1, 9, 9, "none"},
	} {
		m := instrument.NewMerge()
		m.Line(1, fmt.Appendf(nil, `{"type":%q,"ago":1}`, c.loop), after(5))
		m.Line(2, fmt.Appendf(nil, `{"type":%q,"ago":0}`, c.loop), after(6))
		r := output.EpochReport{Epoch: c.epoch, At: after(10)}
		if c.beganAt > 0 {
			r.BeganAt = after(c.beganAt)
		}
		var want time.Time
		if c.wantAt > 0 {
			want = after(c.wantAt)
		}
		if got := m.Text([]output.EpochReport{r})[0].BeganAt; !got.Equal(want) {
			t.Errorf("epoch %d, begun at %g, %s: begin %v, want %v", c.epoch, c.beganAt, c.loop, got, want)
		}
	}
}

// The batch size is the measured one, unless the job counts several batches as one.
func TestMerge_BatchSize(t *testing.T) {
	for _, c := range []struct {
		requested uint32
		world     int
		fields    string
		want      uint32
	}{
		{64, 1, `,"batch_size":32,"batches":10,"steps":10`, 32},
		{64, 1, `,"batch_size":32,"batches":10,"steps":5`, 64},
		{64, 2, `,"batch_size":32,"batches":10,"steps":10`, 64},
		{256, 2, `,"batch_size":32,"batches":40,"steps":10`, 256},
		{32, 2, `,"batch_size":32,"batches":40,"steps":10`, 32},
		{64, 1, ``, 0},
		{64, 1, `,"batch_size":4000000000`, 0},
	} {
		m := instrument.NewMerge()
		m.BatchSize = c.requested
		m.Line(1, fmt.Appendf(nil, `{"type":"fit","world":%d}`, c.world), start)
		m.Line(1, []byte(measured(1, 10, c.fields).message), after(11))
		reports := m.Take(after(11), false, true)
		if len(reports) != 1 || reports[0].BatchSize != c.want {
			t.Errorf("requested %d, %d processes, %s: %+v, want batch size %d",
				c.requested, c.world, c.fields, reports, c.want)
		}
	}
}

// The parts of an epoch are those of its message, if they can be right.
func TestMerge_Phases(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{``, ""},
		{`,"wait":1.5,"evaluation":2,"save":0.25,"rss_peak":2e9`,
			"input wait 1.5 s, evaluation 2 s, checkpoints 0.25 s, peak memory 2 GB"},
		{`,"rss_peak":2e9,"gpu_peak_allocated":8e9,"devices":2,"device":"A100"`, "peak memory 8 GB, 2 × A100"},
		{`,"wait":-1,"evaluation":2`, ""},
		{`,"device":"a\nb"`, ""},
	} {
		m := instrument.NewMerge()
		m.Line(1, []byte(fit.message), start)
		m.Line(1, []byte(measured(1, 10, c.fields).message), after(11))
		reports := m.Take(after(11), false, true)
		if len(reports) != 1 || reports[0].Phases.Text() != c.want {
			t.Errorf("%s: %+v, want %q", c.fields, reports, c.want)
		}
	}
}

// The progress within an epoch gives its duration, until its end is reported.
func TestMerge_Progress(t *testing.T) {
	begun := event{at: 3, from: 1, message: `{"type":"fit","source":"torch","ago":1}`}
	half := func(at float64, fields string) event {
		return event{at: at, from: 1, message: `{"type":"progress","unit":1,` + fields + `}`}
	}
	for _, c := range []struct {
		name           string
		events         []event
		ratio, seconds float64 // at 12
	}{
		{"none", []event{begun}, 0, 0},
		{"a quarter at 7", []event{begun, half(7, `"batches":25,"of":100`)}, 0.5, 20},
		{"the last one counts", []event{begun, half(7, `"batches":25,"of":100`), half(8, `"batches":60,"of":100`)}, 1, 10},
		{"no length", []event{begun, half(7, `"batches":25`)}, 0, 0},
		{"more batches than there are", []event{begun, half(7, `"batches":25,"of":10`)}, 0, 0},
		{"before a training", []event{half(7, `"batches":25,"of":100`)}, 0, 0},
		{"the epoch has ended", []event{begun, half(7, `"batches":25,"of":100`), measured(1, 8, "")}, 0, 0},
		{"the second epoch", []event{begun, measured(1, 8, ""), half(10, `"batches":1,"of":4`)}, 0.5, 8},
	} {
		m := instrument.NewMerge()
		for _, e := range c.events {
			m.Line(e.from, []byte(e.message), after(e.at))
		}
		ratio, seconds := m.Progress(after(12))
		if math.Abs(ratio-c.ratio) > 1e-6 || math.Abs(seconds-c.seconds) > 1e-6 {
			t.Errorf("%s: %g of %g s, want %g of %g s", c.name, ratio, seconds, c.ratio, c.seconds)
		}
	}
}

func text(r *output.EpochReport) string {
	s := fmt.Sprintf("%d at %g", r.Epoch, r.At.Sub(start).Seconds())
	if r.Seconds > 0 {
		s += fmt.Sprintf(" for %g", r.Seconds)
	}
	if r.Epochs > 1 {
		s += fmt.Sprintf(" (%d)", r.Epochs)
	}
	if r.Accuracy != nil {
		s += fmt.Sprintf(": %g", *r.Accuracy)
	}
	return s
}

// The Python files are laid out for PYTHONPATH, before the directories of the user.
func TestWrite(t *testing.T) {
	dir, err := instrument.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sitecustomize.py", "courier_instrument/__init__.py"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "PYTHONPATH=" + dir},
		{[]string{"PYTHONPATH="}, "PYTHONPATH=" + dir},
		{[]string{"PYTHONPATH=/lib", "X=y"}, "PYTHONPATH=" + dir + string(os.PathListSeparator) + "/lib"},
	} {
		env := instrument.Environment(c.env, dir, "/socket")
		want := append(slices.Clone(c.env), c.want, "COURIER_INSTRUMENT_CHANNEL=/socket")
		if !slices.Equal(env, want) {
			t.Errorf("Environment(%q) = %q, want %q", c.env, env, want)
		}
	}
}
