package collector

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func ptr[T any](v T) *T { return &v }

// show writes reports as a test reads them.
func show(reports []report) []string {
	var all []string
	for _, r := range reports {
		text := fmt.Sprintf("%d %.6g", r.epoch, r.seconds)
		for _, v := range []*float64{r.loss, r.accuracy} {
			if v == nil {
				text += " -"
			} else {
				text += fmt.Sprintf(" %g", *v)
			}
		}
		all = append(all, text)
	}
	return all
}

// parse reads a whole text and returns epoch, seconds, loss and accuracy.
func parse(t *testing.T, format, expression, text string) []string {
	t.Helper()
	o, err := newOutput(format, expression)
	if err != nil {
		t.Fatal(err)
	}
	reports := o.write(0, []byte(text), noon)
	return show(append(reports, o.close(noon)...))
}

const info = "2026-11-21 12:00:00 INFO  DistriOptimizer$:427 - "

func at(epoch int, seen int, clock string) string {
	return fmt.Sprintf("[Epoch %d %d/600][Iteration 9][Wall Clock %ss] ", epoch, seen, clock)
}

func TestOutput_ReadsBigDL(t *testing.T) {
	trained := func(loss string) string {
		return "Trained 64.0 records in 0.05 seconds. Throughput is 1280.0 records/second. Loss is " + loss + ". Net's hyper parameters: Current learning rate is 0.05."
	}
	const finished = "Epoch finished. Wall clock time is 10200.5 ms"
	top1 := func(accuracy string) string {
		return "Top1Accuracy is Accuracy(correct: 9, count: 10, accuracy: " + accuracy + ")"
	}
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"an epoch is reported with the accuracy that follows", info + at(1, 320, "4.0") + trained("3") + "\n" + info + at(1, 640, "10.0") + trained("1") + "\n" +
			info + at(1, 640, "10.0") + finished + "\n" + info + at(1, 640, "10.0") + "Validate model...\n" +
			info + at(1, 640, "10.0") + top1("0.9") + "\n" + info + at(1, 640, "10.0") + "Top5Accuracy is Accuracy(correct: 10, count: 10, accuracy: 1.0)\n",
			[]string{"1 10 2 0.9"}},
		{"without validation when the next epoch begins", info + at(1, 600, "10") + finished + "\n" + info + at(2, 64, "11") + trained("0.5") + "\n" + info + at(2, 600, "18") + finished + "\n",
			[]string{"1 10 - -", "2 8 0.5 -"}},
		{"accuracy lines alone", info + at(1, 600, "457.926565") + top1("0.9488") + "\n" + info + at(2, 600, "845.747782") + top1("0.9696") + "\n",
			[]string{"1 457.927 - 0.9488", "2 387.821 - 0.9696"}},
		{"a validation within an epoch ends none", info + at(1, 300, "5") + top1("0.5") + "\n" + info + at(1, 600, "9") + finished + "\n", []string{"1 9 - -"}},
		{"an accuracy without a header", info + at(1, 600, "9") + finished + "\n" + info + top1("0.8851") + "\n", []string{"1 9 - 0.8851"}},
		{"an accuracy before any epoch", info + top1("0.8851") + "\n", nil},
		{"prefix, thread and short year", "22-02-10 22:04:30 [Thread-4] INFO  DistriOptimizer$:475 - " + at(1, 600, "1.5E-1") + "bigdl_metric_0 " + top1("0.53302") + "\n", []string{"1 0.15 - 0.53302"}},
		{"older form", "17/08/16 22:52:20 INFO optim.DistriOptimizer$: " + at(1, 150, "0.2") + "Train 150 in 0.21seconds. Throughput is 713.9 records/second. Loss is 1.1829382.\n" +
			"17/08/16 22:52:20 INFO optim.DistriOptimizer$: " + at(1, 600, "0.4") + finished, []string{"1 0.4 1.1829382 -"}},
		{"two lines that ran together", info + at(1, 600, "9") + finished + at(1, 600, "9") + top1("0.7") + info + at(2, 600, "12") + finished + "\n", []string{"1 9 - 0.7", "2 3 - -"}},
		{"an accuracy that was cut", info + at(1, 600, "9") + finished + "\n" + info + at(1, 600, "9") + "Top1Accuracy is Accuracy(correct: 9, count: 10, accura[Wall Clock 3s] Save model\n", []string{"1 9 - -"}},
		{"from a checkpoint on", info + at(7, 64, "1") + trained("1") + "\n" + info + at(7, 600, "6") + finished + "\n" + info + at(8, 600, "13") + finished + "\n", []string{"7 6 1 -", "8 7 - -"}},
		{"epochs that were not seen share the time", info + at(1, 600, "5") + finished + "\n" + info + at(4, 600, "20") + finished + "\n", []string{"1 5 - -", "4 5 - -"}},
		{"a clock that went back tells no duration", info + at(1, 600, "50") + finished + "\n" + info + at(2, 600, "20") + finished + "\n", []string{"1 50 - -", "2 0 - -"}},
		{"the epoch of a repeated line", info + at(1, 600, "5") + finished + "\n" + info + at(1, 600, "5") + finished + "\n", []string{"1 5 - -"}},
		{"a loss that is no number", info + at(1, 64, "5") + trained("NaN") + "\n" + info + at(1, 600, "5") + finished, []string{"1 5 - -"}},
		{"numbers beyond all bounds", info + "[Epoch 99999999999999999999 1/2][Iteration 1][Wall Clock 5s] " + finished + "\n" + info + "[Epoch 1 1/2][Iteration 1][Wall Clock 1.2.3s] " + finished + "\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, format := range []string{FormatBigDL, FormatAuto} {
				if diff := cmp.Diff(test.want, parse(t, format, "", test.text)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", format, diff)
				}
			}
		})
	}
}

// The lines that were recovered for the paper, each by itself.
func TestOutput_ReadsTheRecoveredLines(t *testing.T) {
	text, err := os.ReadFile("../../shared/data/courier-paper/bigdl_log_samples.txt")
	if err != nil {
		t.Skipf("recovered data is not here: %v", err)
	}
	var got []string
	read, familiar := 0, 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		read++
		o, err := newOutput(FormatAuto, "")
		if err != nil {
			t.Fatal(err)
		}
		reports := o.write(0, []byte(line), noon)
		got = append(got, show(append(reports, o.close(noon)...))...)
		if o.familiar() {
			familiar++
		}
	}
	if read != 35 || familiar != 24 {
		t.Errorf("%d lines, %d with a header; want 35 and 24", read, familiar)
	}
	want := []string{
		"3 91.1142 - -", "3 91.1142 - 0.9665", "3 89.182 - -", "3 89.182 - 0.9614", "1 457.927 - 0.9488", "2 845.748 - 0.9696",
		"1 27.8386 - -", "1 27.8386 - 0.7785", "10 17.4792 - 0.8548", "1 1121.55 - -", "1 1121.55 - 0.6474358974358975",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("epochs of the lines, each alone (-want +got):\n%s", diff)
	}
	guide := text[bytes.Index(text, []byte("INFO  DistriOptimizer$:427")):]
	guide = guide[:bytes.Index(guide, []byte("Wall Clock 89"))]
	if diff := cmp.Diff([]string{"3 91.1142 0.15130447 0.9665"}, parse(t, FormatAuto, "", string(guide))); diff != "" {
		t.Errorf("the guide's epoch (-want +got):\n%s", diff)
	}
}

func TestOutput_ReadsJSONLines(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"all fields", `{"epoch":3,"seconds":2.5,"loss":0.25,"accuracy":0.97}`, []string{"3 2.5 0.25 0.97"}},
		{"the epoch alone", `{"epoch":3}`, []string{"3 0 - -"}},
		{"other names and capitals", `  {"Epoch": 3.0, "Duration": 2, "train_loss": 1, "acc": 0.5}  `, []string{"3 2 1 0.5"}},
		{"unseen data before training data", `{"epoch":1,"accuracy":0.99,"val_accuracy":0.9}`, []string{"1 0 - 0.9"}},
		{"NaN of Python", `{"epoch": 2, "loss": NaN, "accuracy": 0.1, "grad": [-Infinity, Infinity]}`, []string{"2 0 - 0.1"}},
		{"an accuracy that is none", `{"epoch":1,"accuracy":97.5}`, []string{"1 0 - -"}},
		{"a negative duration", `{"epoch":1,"seconds":-3}`, []string{"1 0 - -"}},
		{"an absurd duration", `{"epoch":1,"seconds":1e300}`, []string{"1 0 - -"}},
		{"numbers as text are none", `{"epoch":1,"loss":"0.5","seconds":null}`, []string{"1 0 - -"}},
		{"a part of an epoch", `{"epoch":1.5,"loss":1}`, nil},
		{"a negative epoch", `{"epoch":-1}`, nil},
		{"an absurd epoch", `{"epoch":1e30}`, nil},
		{"an epoch as text", `{"epoch":"1"}`, nil},
		{"no epoch", `{"step":1}`, nil},
		{"half a line", `{"epoch":1,"sec`, nil},
		{"not at the begin", `INFO {"epoch":1}`, nil},
		{"nested", `{"a":{"epoch":1}}`, nil},
		{"coloured", "\x1b[32m{\"epoch\":1}\x1b[0m", []string{"1 0 - -"}},
		{"after a progress bar", " 45%|####\r{\"epoch\":1}\r\n", []string{"1 0 - -"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, format := range []string{FormatJSON, FormatAuto} {
				if diff := cmp.Diff(test.want, parse(t, format, "", test.text)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", format, diff)
				}
			}
		})
	}
}

func TestOutput_ReadsTheUsersPattern(t *testing.T) {
	for _, test := range []struct{ name, pattern, text, want string }{
		{"the example of the messages", PatternExample, "epoch 4: acc=0.875.", "4 0 - 0.875"},
		{"every group", `ep (?P<epoch>\d+) (?P<seconds>\S+)s loss (?P<loss>\S+) top (?P<accuracy>\S+)`, "ep 2 1.5s loss -3e-2 top .5", "2 1.5 -0.03 0.5"},
		{"a percentage", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 97.5%", "3 0 - 0.975"},
		{"a small percentage", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 0.5 %", "3 0 - 0.005"},
		{"a percentage by its line", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 97.5 (in %)", "3 0 - 0.975"},
		{"a share beside a %", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 0.975 | 100%", "3 0 - 0.975"},
		{"above 1 without a %", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 97.5", "3 0 - -"},
		{"above 100 %", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 200%", "3 0 - -"},
		{"no number", `(?P<epoch>\d+) acc (?P<accuracy>\S+) (?P<loss>\S+) (?P<seconds>\S+)`, "3 acc nan inf x", "3 0 - -"},
		{"a group that did not match", `(?P<epoch>\d+)(?: acc (?P<accuracy>\S+))?`, "3", "3 0 - -"},
		{"no match", `epoch (?P<epoch>\d+)`, "step 3", ""},
		{"an epoch that is no number", `epoch (?P<epoch>\w+)`, "epoch three", ""},
		{"an epoch beyond all bounds", `(?P<epoch>\d+)`, "99999999999999", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(parse(t, FormatAuto, test.pattern, test.text+"\n"), ";"); got != test.want {
				t.Errorf("%q on %q = %q, want %q", test.pattern, test.text, got, test.want)
			}
		})
	}
}

func TestNewOutput_NamesTheFlag(t *testing.T) {
	for _, test := range []struct{ format, pattern, want string }{
		{"xml", "", `--format "xml"`},
		{FormatPattern, "", "needs --epoch-pattern"},
		{FormatAuto, `(?P<epoch>`, "--epoch-pattern"},
		{FormatAuto, `(\d+)`, "no group (?P<epoch>"},
		{FormatAuto, `(?P<epoch>\d+) (?P<acc>\d+)`, `group "acc" is not`},
		{FormatJSON, `(?P<epoch>\d+)`, "--epoch-pattern is for --format pattern"},
		{FormatAuto, `(?P<epoch>\d+)` + strings.Repeat("x", 5000), "more than 4096"},
	} {
		if _, err := newOutput(test.format, test.pattern); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("newOutput(%q, %.20q) = %v, want an error that contains %q", test.format, test.pattern, err, test.want)
		}
	}
}

func TestOutput_KeepsToTheFirstFormatThatReports(t *testing.T) {
	text := `{"epoch":1}` + "\n" + info + at(1, 600, "5") + "Epoch finished. Wall clock time is 5 ms\n" + `{"epoch":2}` + "\n"
	if diff := cmp.Diff([]string{"1 0 - -", "2 0 - -"}, parse(t, FormatAuto, "", text)); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

// However the bytes are cut, the same epochs come out, and of a line only its
// begin is kept.
func TestOutput_TakesBytesAsTheyCome(t *testing.T) {
	text := strings.Repeat("x", 5*maxLine) + "\n" + `{"epoch":1}` + "\r\n\r\n" + strings.Repeat("y", 3<<20) + "\n" + `{"epoch":2}`
	for _, size := range []int{1, 7, 4096, len(text)} {
		o, err := newOutput(FormatAuto, "")
		if err != nil {
			t.Fatal(err)
		}
		var got []report
		most := 0
		for part := range chunked([]byte(text), size) {
			got = append(got, o.write(0, part, noon)...)
			most = max(most, cap(o.streams[0].kept))
		}
		got = append(got, o.close(noon)...)
		if diff := cmp.Diff([]string{"1 0 - -", "2 0 - -"}, show(got)); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
		}
		if most > 2*maxLine || o.count != 4 {
			t.Errorf("in pieces of %d: %d bytes kept, %d lines; want at most %d, 4", size, most, o.count, 2*maxLine)
		}
	}
}

func chunked(data []byte, size int) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(data) > 0 {
			n := min(size, len(data))
			if !yield(data[:n]) {
				return
			}
			data = data[n:]
		}
	}
}

// Two streams are read apart: half a line of one is not the other's.
func TestOutput_KeepsStreamsApart(t *testing.T) {
	o, err := newOutput(FormatAuto, "")
	if err != nil {
		t.Fatal(err)
	}
	got := o.write(0, []byte(`{"epoch`), noon)
	got = append(got, o.write(1, []byte("warning\n"), noon)...)
	got = append(got, o.write(0, []byte("\":1}\n"), noon)...)
	if diff := cmp.Diff([]string{"1 0 - -"}, show(got)); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte(info+at(1, 600, "5")+"Epoch finished. Wall clock time is 5 ms\n"), uint8(3))
	f.Add([]byte(info+at(1, 600, "5")+"Top1Accuracy is Accuracy(correct: 9, count: 10, accuracy: 0.9)\n"), uint8(100))
	f.Add([]byte(`{"epoch":1,"seconds":2.5,"loss":NaN,"accuracy":0.97}`), uint8(1))
	f.Add([]byte("epoch 3 acc=97.5%\r\x1b[31m\x00\xff"), uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		for _, expression := range []string{"", `(?P<epoch>\d*)(?P<seconds>\D*)(?P<loss>.?)(?P<accuracy>.*)`} {
			cut, err := newOutput(FormatAuto, expression)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := newOutput(FormatAuto, expression)
			if err != nil {
				t.Fatal(err)
			}
			var inParts []report
			for part := range chunked(bytes.Clone(data), int(size)+1) {
				inParts = append(inParts, cut.write(0, part, noon)...)
			}
			inParts = append(inParts, cut.close(noon)...)
			atOnce := append(whole.write(0, bytes.Clone(data), noon), whole.close(noon)...)
			if diff := cmp.Diff(show(atOnce), show(inParts)); diff != "" {
				t.Errorf("at once and in parts differ:\n%s", diff)
			}
			for _, e := range newEpochs(noon).add(inParts) {
				if e.number < 1 || !(e.seconds > 0) || e.accuracy != nil && !(*e.accuracy >= 0 && *e.accuracy <= 1) {
					t.Errorf("epoch %+v is none", e)
				}
			}
		}
	})
}

func TestOutput_ReadsBatchSizes(t *testing.T) {
	for _, test := range []struct {
		expression, text string
		want             uint32
	}{
		{"", `{"epoch":3,"batch_size":128}`, 128},
		{"", `{"epoch":3,"Batch_Size":1.28e2}`, 128},
		{"", `{"epoch":3}`, 0},
		{"", `{"epoch":3,"batch_size":0.5}`, 0},
		{"", `{"epoch":3,"batch_size":-8}`, 0},
		{"", `{"epoch":3,"batch_size":1e300}`, 0},
		{"", `{"epoch":3,"batch_size":"many"}`, 0},
		{`ep (?P<epoch>\d+) of (?P<batch_size>\S+)`, "ep 3 of 32", 32},
		{`ep (?P<epoch>\d+) of (?P<batch_size>\S+)`, "ep 3 of all", 0},
	} {
		o, err := newOutput(FormatAuto, test.expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.write(0, []byte(test.text+"\n"), noon); len(got) != 1 || got[0].epoch != 3 || got[0].batch != test.want {
			t.Errorf("%s: reports %+v, want epoch 3 with batch size %d", test.text, got, test.want)
		}
	}
}

// A command that is started again counts its wall clock from zero.
func TestOutput_BeginsAgain(t *testing.T) {
	o, err := newOutput(FormatAuto, "")
	if err != nil {
		t.Fatal(err)
	}
	first := o.write(0, []byte(at(4, 600, "40")+"Epoch finished. \n"+at(5, 1, "41")+"\nhalf a li"), noon)
	o = o.again()
	second := append(o.write(0, []byte(at(5, 600, "12.5")+"Epoch finished. \n"), noon), o.close(noon)...)
	if diff := cmp.Diff([]string{"4 40 - -", "5 12.5 - -"}, show(append(first, second...))); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestOutput_ReadsHowManySamplesAnAccuracyIsOf(t *testing.T) {
	for _, c := range []struct {
		format, text string
		want         uint64
	}{
		{FormatBigDL, info + at(1, 600, "9") + "Top1Accuracy is Accuracy(correct: 9488, count: 10000, accuracy: 0.9488)\n", 10_000},
		{FormatJSON, `{"epoch":1,"accuracy":0.9,"validation_samples":597}` + "\n", 597},
		{FormatJSON, `{"epoch":1,"accuracy":0.9,"validation_samples":-3}` + "\n", 0},
		{FormatJSON, `{"epoch":1,"accuracy":0.9}` + "\n", 0},
	} {
		o, err := newOutput(c.format, "")
		if err != nil {
			t.Fatal(err)
		}
		reports := append(o.write(0, []byte(c.text), noon), o.close(noon)...)
		if len(reports) != 1 || reports[0].samples != c.want {
			t.Errorf("%s: %+v, want one epoch with %d samples", c.text, reports, c.want)
		}
	}
}
