package output

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// format returns reports as lines of epoch, seconds, loss and accuracy.
func format(reports []EpochReport) []string {
	var all []string
	for _, r := range reports {
		text := fmt.Sprintf("%d %.6g", r.Epoch, r.Seconds)
		for _, v := range []*float64{r.Loss, r.Accuracy} {
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

// parse parses a complete output, and returns its reports as format does.
func parse(t *testing.T, outputFormat, expression, text string) []string {
	t.Helper()
	p, err := New(outputFormat, expression)
	if err != nil {
		t.Fatal(err)
	}
	reports := p.Write(0, []byte(text), noon)
	return format(append(reports, p.Close(noon)...))
}

const info = "2026-11-21 12:00:00 INFO  DistriOptimizer$:427 - "

func at(epoch int, seen int, clock string) string {
	return fmt.Sprintf("[Epoch %d %d/600][Iteration 9][Wall Clock %ss] ", epoch, seen, clock)
}

func TestParser_ReadsBigDL(t *testing.T) {
	trained := func(loss string) string {
		return "Trained 64.0 records in 0.05 seconds. Throughput is 1280.0 records/second. Loss is " +
			loss + ". Net's hyper parameters: Current learning rate is 0.05."
	}
	const finished = "Epoch finished. Wall clock time is 10200.5 ms"
	top1 := func(accuracy string) string {
		return "Top1Accuracy is Accuracy(correct: 9, count: 10, accuracy: " + accuracy + ")"
	}
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{
			"an epoch with the accuracy that follows",
			info + at(1, 320, "4.0") + trained("3") + "\n" + info + at(1, 640, "10.0") + trained("1") +
				"\n" +
				info + at(1, 640, "10.0") + finished + "\n" + info + at(1, 640, "10.0") +
				"Validate model...\n" +
				info + at(1, 640, "10.0") + top1("0.9") + "\n" + info + at(1, 640, "10.0") +
				"Top5Accuracy is Accuracy(correct: 10, count: 10, accuracy: 1.0)\n",
			[]string{"1 10 2 0.9"},
		},
		{
			"without a validation at the start of the next epoch",
			info + at(1, 600, "10") + finished + "\n" + info + at(2, 64, "11") + trained("0.5") + "\n" +
				info + at(2, 600, "18") + finished + "\n",
			[]string{"1 10 - -", "2 8 0.5 -"},
		},
		{
			"only accuracy lines",
			info + at(1, 600, "457.926565") + top1("0.9488") + "\n" + info + at(2, 600, "845.747782") +
				top1("0.9696") + "\n",
			[]string{"1 457.927 - 0.9488", "2 387.821 - 0.9696"},
		},
		{
			"a validation before the end of an epoch",
			info + at(1, 300, "5") + top1("0.5") + "\n" + info + at(1, 600, "9") + finished + "\n",
			[]string{"1 9 - -"},
		},
		{
			"an accuracy without a header",
			info + at(1, 600, "9") + finished + "\n" + info + top1("0.8851") + "\n",
			[]string{"1 9 - 0.8851"},
		},
		{"an accuracy before any epoch", info + top1("0.8851") + "\n", nil},
		{
			"prefix, thread and short year",
			"22-02-10 22:04:30 [Thread-4] INFO  DistriOptimizer$:475 - " + at(1, 600, "1.5E-1") +
				"bigdl_metric_0 " + top1("0.53302") + "\n",
			[]string{"1 0.15 - 0.53302"},
		},
		{
			"older form",
			"17/08/16 22:52:20 INFO optim.DistriOptimizer$: " + at(1, 150, "0.2") +
				"Train 150 in 0.21seconds. Throughput is 713.9 records/second. Loss is 1.1829382.\n" +
				"17/08/16 22:52:20 INFO optim.DistriOptimizer$: " + at(1, 600, "0.4") + finished,
			[]string{"1 0.4 1.1829382 -"},
		},
		{
			"two messages on one line",
			info + at(1, 600, "9") + finished + at(1, 600, "9") + top1("0.7") + info + at(2, 600, "12") +
				finished + "\n",
			[]string{"1 9 - 0.7", "2 3 - -"},
		},
		{
			"an incomplete accuracy",
			info + at(1, 600, "9") + finished + "\n" + info + at(1, 600, "9") +
				"Top1Accuracy is Accuracy(correct: 9, count: 10, accura[Wall Clock 3s] Save model\n",
			[]string{"1 9 - -"},
		},
		{
			"continued from a checkpoint",
			info + at(7, 64, "1") + trained("1") + "\n" + info + at(7, 600, "6") + finished + "\n" + info +
				at(8, 600, "13") + finished + "\n",
			[]string{"7 6 1 -", "8 7 - -"},
		},
		{
			"missing epochs share the time",
			info + at(1, 600, "5") + finished + "\n" + info + at(4, 600, "20") + finished + "\n",
			[]string{"1 5 - -", "4 5 - -"},
		},
		{
			"a decreasing clock",
			info + at(1, 600, "50") + finished + "\n" + info + at(2, 600, "20") + finished + "\n",
			[]string{"1 50 - -", "2 0 - -"},
		},
		{
			"a repeated line",
			info + at(1, 600, "5") + finished + "\n" + info + at(1, 600, "5") + finished + "\n",
			[]string{"1 5 - -"},
		},
		{
			"a loss of NaN",
			info + at(1, 64, "5") + trained("NaN") + "\n" + info + at(1, 600, "5") + finished,
			[]string{"1 5 - -"},
		},
		{
			"numbers out of range",
			info + "[Epoch 99999999999999999999 1/2][Iteration 1][Wall Clock 5s] " + finished + "\n" +
				info + "[Epoch 1 1/2][Iteration 1][Wall Clock 1.2.3s] " + finished + "\n",
			nil,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{FormatBigDL, FormatAuto} {
				if diff := cmp.Diff(test.want, parse(t, name, "", test.text)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

// Each recovered line of the paper's logs is parsed alone.
func TestParser_ReadsTheRecoveredLines(t *testing.T) {
	text, err := os.ReadFile("../../../shared/data/courier-paper/bigdl_log_samples.txt")
	if err != nil {
		t.Skipf("the recovered data is not available: %v", err)
	}
	var got []string
	read, recognized := 0, 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		read++
		p, err := New(FormatAuto, "")
		if err != nil {
			t.Fatal(err)
		}
		reports := p.Write(0, []byte(line), noon)
		got = append(got, format(append(reports, p.Close(noon)...))...)
		if p.Recognized() {
			recognized++
		}
	}
	if read != 35 || recognized != 24 {
		t.Errorf("%d lines, %d with a header; want 35 and 24", read, recognized)
	}
	want := []string{
		"3 91.1142 - -", "3 91.1142 - 0.9665", "3 89.182 - -", "3 89.182 - 0.9614", "1 457.927 - 0.9488",
		"2 845.748 - 0.9696",
		"1 27.8386 - -", "1 27.8386 - 0.7785", "10 17.4792 - 0.8548", "1 1121.55 - -",
		"1 1121.55 - 0.6474358974358975",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("epochs of the lines, each alone (-want +got):\n%s", diff)
	}
	guide := text[bytes.Index(text, []byte("INFO  DistriOptimizer$:427")):]
	guide = guide[:bytes.Index(guide, []byte("Wall Clock 89"))]
	if diff := cmp.Diff([]string{
		"3 91.1142 0.15130447 0.9665",
	}, parse(t, FormatAuto, "", string(guide))); diff != "" {
		t.Errorf("the guide's epoch (-want +got):\n%s", diff)
	}
}

func TestParser_ReadsJSONLines(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{
			"all fields",
			`{"epoch":3,"seconds":2.5,"loss":0.25,"accuracy":0.97}`,
			[]string{"3 2.5 0.25 0.97"},
		},
		{"the epoch alone", `{"epoch":3}`, []string{"3 0 - -"}},
		{
			"other names and capitals",
			`  {"Epoch": 3.0, "Duration": 2, "train_loss": 1, "acc": 0.5}  `,
			[]string{"3 2 1 0.5"},
		},
		{
			"accuracy on unseen data is preferred",
			`{"epoch":1,"accuracy":0.99,"val_accuracy":0.9}`,
			[]string{"1 0 - 0.9"},
		},
		{
			"NaN of Python",
			`{"epoch": 2, "loss": NaN, "accuracy": 0.1, "grad": [-Infinity, Infinity]}`,
			[]string{"2 0 - 0.1"},
		},
		{"a percentage", `{"epoch":1,"accuracy":97.5}`, []string{"1 0 - 0.975"}},
		{"an invalid accuracy", `{"epoch":1,"accuracy":-0.1}`, []string{"1 0 - -"}},
		{"a negative duration", `{"epoch":1,"seconds":-3}`, []string{"1 0 - -"}},
		{"a duration out of range", `{"epoch":1,"seconds":1e300}`, []string{"1 0 - -"}},
		{"numbers as text", `{"epoch":1,"loss":"0.5","seconds":null}`, []string{"1 0 0.5 -"}},
		{"a fraction of an epoch", `{"epoch":1.5,"loss":1}`, nil},
		{"a negative epoch", `{"epoch":-1}`, nil},
		{"an epoch out of range", `{"epoch":1e30}`, nil},
		{"an epoch as text", `{"epoch":"1"}`, []string{"1 0 - -"}},
		{"without an epoch", `{"step":1}`, nil},
		{"an incomplete line", `{"epoch":1,"sec`, nil},
		{"not at the start of the line", `INFO {"epoch":1}`, []string{"1 0 - -"}},
		{"nested", `{"a":{"epoch":1}}`, nil},
		{"coloured", "\x1b[32m{\"epoch\":1}\x1b[0m", []string{"1 0 - -"}},
		{"after a progress bar", " 45%|####\r{\"epoch\":1}\r\n", []string{"1 0 - -"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, name := range []string{FormatJSON, FormatAuto} {
				if diff := cmp.Diff(test.want, parse(t, name, "", test.text)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestParser_ReadsTheUsersPattern(t *testing.T) {
	for _, test := range []struct{ name, pattern, text, want string }{
		{"the example", PatternExample, "epoch 4: acc=0.875.", "4 0 - 0.875"},
		{
			"every group",
			`ep (?P<epoch>\d+) (?P<seconds>\S+)s loss (?P<loss>\S+) top (?P<accuracy>\S+)`,
			"ep 2 1.5s loss -3e-2 top .5",
			"2 1.5 -0.03 0.5",
		},
		{"a percentage", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 97.5%", "3 0 - 0.975"},
		{"a small percentage", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 0.5 %", "3 0 - 0.005"},
		{
			"a % elsewhere in the line",
			`(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`,
			"3 acc 97.5 (in %)",
			"3 0 - 0.975",
		},
		{
			"a ratio in a line with a %",
			`(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`,
			"3 acc 0.975 | 100%",
			"3 0 - 0.975",
		},
		{"above 1 without a %", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 97.5", "3 0 - -"},
		{"above 100 %", `(?P<epoch>\d+) acc (?P<accuracy>[\d.]+)`, "3 acc 200%", "3 0 - -"},
		{
			"not a number",
			`(?P<epoch>\d+) acc (?P<accuracy>\S+) (?P<loss>\S+) (?P<seconds>\S+)`,
			"3 acc nan inf x",
			"3 0 - -",
		},
		{"a group that did not match", `(?P<epoch>\d+)(?: acc (?P<accuracy>\S+))?`, "3", "3 0 - -"},
		{"no match", `epoch (?P<epoch>\d+)`, "step 3", ""},
		{"an epoch that is not a number", `epoch (?P<epoch>\w+)`, "epoch three", ""},
		{"an epoch out of range", `(?P<epoch>\d+)`, "99999999999999", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(
				parse(t, FormatAuto, test.pattern, test.text+"\n"),
				";",
			); got != test.want {
				t.Errorf("%q on %q = %q, want %q", test.pattern, test.text, got, test.want)
			}
		})
	}
}

func TestNew_NamesTheFlag(t *testing.T) {
	for _, test := range []struct{ format, pattern, want string }{
		{"xml", "", `--format "xml"`},
		{FormatPattern, "", "requires --epoch-pattern"},
		{FormatAuto, `(?P<epoch>`, "--epoch-pattern"},
		{FormatAuto, `(\d+)`, "missing group (?P<epoch>"},
		{FormatAuto, `(?P<epoch>\d+) (?P<acc>\d+)`, `unknown group "acc"`},
		{FormatJSON, `(?P<epoch>\d+)`, "--epoch-pattern requires --format pattern"},
		{FormatAuto, `(?P<epoch>\d+)` + strings.Repeat("x", 5000), "more than 4096"},
	} {
		if _, err := New(test.format, test.pattern); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf(
				"New(%q, %.20q) = %v, want an error that contains %q",
				test.format,
				test.pattern,
				err,
				test.want,
			)
		}
	}
}

func TestParser_UsesTheFirstFormatThatReports(t *testing.T) {
	text := `{"epoch":1}` + "\n" + info + at(
		1,
		600,
		"5",
	) + "Epoch finished. Wall clock time is 5 ms\n" + `{"epoch":2}` + "\n"
	if diff := cmp.Diff([]string{"1 0 - -", "2 0 - -"}, parse(t, FormatAuto, "", text)); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

// The reports do not depend on the pieces, and only the beginning of a long line is kept.
func TestParser_AcceptsInputInPieces(t *testing.T) {
	text := strings.Repeat(
		"x",
		5*maxLineBytes,
	) + "\n" + `{"epoch":1}` + "\r\n\r\n" + strings.Repeat(
		"y",
		3<<20,
	) + "\n" + `{"epoch":2}`
	for _, size := range []int{1, 7, 4096, len(text)} {
		p, err := New(FormatAuto, "")
		if err != nil {
			t.Fatal(err)
		}
		var got []EpochReport
		most := 0
		for part := range chunked([]byte(text), size) {
			got = append(got, p.Write(0, part, noon)...)
			most = max(most, cap(p.streams[0].partial))
		}
		got = append(got, p.Close(noon)...)
		if diff := cmp.Diff([]string{"1 0 - -", "2 0 - -"}, format(got)); diff != "" {
			t.Errorf("in pieces of %d (-want +got):\n%s", size, diff)
		}
		if most > 2*maxLineBytes || p.count != 4 {
			t.Errorf(
				"in pieces of %d: %d bytes kept, %d lines, want at most %d and 4",
				size,
				most,
				p.count,
				2*maxLineBytes,
			)
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

// A line of one stream may be interrupted by a line of the other.
func TestParser_SeparatesTheStreams(t *testing.T) {
	p, err := New(FormatAuto, "")
	if err != nil {
		t.Fatal(err)
	}
	got := p.Write(0, []byte(`{"epoch`), noon)
	got = append(got, p.Write(1, []byte("warning\n"), noon)...)
	got = append(got, p.Write(0, []byte("\":1}\n"), noon)...)
	if diff := cmp.Diff([]string{"1 0 - -"}, format(got)); diff != "" {
		t.Errorf("epochs (-want +got):\n%s", diff)
	}
}

func FuzzParser(f *testing.F) {
	f.Add([]byte(info+at(1, 600, "5")+"Epoch finished. Wall clock time is 5 ms\n"), uint8(3))
	f.Add(
		[]byte(info+at(1, 600, "5")+"Top1Accuracy is Accuracy(correct: 9, count: 10, accuracy: 0.9)\n"),
		uint8(100),
	)
	f.Add([]byte(`{"epoch":1,"seconds":2.5,"loss":NaN,"accuracy":0.97}`), uint8(1))
	f.Add([]byte("epoch 3 acc=97.5%\r\x1b[31m\x00\xff"), uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, size uint8) {
		for _, expression := range []string{
			"",
			`(?P<epoch>\d*)(?P<seconds>\D*)(?P<loss>.?)(?P<accuracy>.*)`,
		} {
			cut, err := New(FormatAuto, expression)
			if err != nil {
				t.Fatal(err)
			}
			whole, err := New(FormatAuto, expression)
			if err != nil {
				t.Fatal(err)
			}
			var inParts []EpochReport
			for part := range chunked(bytes.Clone(data), int(size)+1) {
				inParts = append(inParts, cut.Write(0, part, noon)...)
			}
			inParts = append(inParts, cut.Close(noon)...)
			atOnce := append(whole.Write(0, bytes.Clone(data), noon), whole.Close(noon)...)
			if diff := cmp.Diff(format(atOnce), format(inParts)); diff != "" {
				t.Errorf("reports of the whole and of its pieces differ:\n%s", diff)
			}
			for _, r := range inParts {
				if r.Epoch > schemas.MaxEpochs || !(r.Seconds >= 0) ||
					r.Accuracy != nil && !(*r.Accuracy >= 0 && *r.Accuracy <= 1) {
					t.Errorf("report %+v is not valid", r)
				}
			}
		}
	})
}

func TestParser_ReadsBatchSizes(t *testing.T) {
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
		p, err := New(FormatAuto, test.expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Write(0, []byte(test.text+"\n"), noon); len(got) != 1 || got[0].Epoch != 3 ||
			got[0].BatchSize != test.want {
			t.Errorf("%s: reports %+v, want epoch 3 with batch size %d", test.text, got, test.want)
		}
	}
}

func TestParser_ReadsCPUs(t *testing.T) {
	for _, test := range []struct {
		expression, text string
		want             uint32
	}{
		{"", `{"epoch":3,"cpus":4}`, 4},
		{"", `{"epoch":3}`, 0},
		{"", `{"epoch":3,"cpus":1.5}`, 0},
		{"", `{"epoch":3,"cpus":0}`, 0},
		{"", `{"epoch":3,"cpus":1e300}`, 0},
		{`ep (?P<epoch>\d+) on (?P<cpus>\S+)`, "ep 3 on 2", 2},
		{`ep (?P<epoch>\d+) on (?P<cpus>\S+)`, "ep 3 on all", 0},
	} {
		p, err := New(FormatAuto, test.expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Write(0, []byte(test.text+"\n"), noon); len(got) != 1 || got[0].Epoch != 3 ||
			got[0].CPUs != test.want {
			t.Errorf("%s: reports %+v, want epoch 3 with %d CPUs", test.text, got, test.want)
		}
	}
}

// The wall clock of a restarted command starts at zero.
func TestParser_Restart(t *testing.T) {
	p, err := New(FormatAuto, "")
	if err != nil {
		t.Fatal(err)
	}
	first := p.Write(
		0,
		[]byte(at(4, 600, "40")+"Epoch finished. \n"+at(5, 1, "41")+"\nhalf a li"),
		noon,
	)
	p = p.Restart()
	second := append(
		p.Write(0, []byte(at(5, 600, "12.5")+"Epoch finished. \n"), noon),
		p.Close(noon)...)
	if diff := cmp.Diff([]string{
		"4 40 - -",
		"5 12.5 - -",
	}, format(append(first, second...))); diff != "" {
		t.Errorf("reports (-want +got):\n%s", diff)
	}
}

func TestParser_ReadsValidationSamples(t *testing.T) {
	for _, c := range []struct {
		format, text string
		want         uint64
	}{
		{
			FormatBigDL,
			info + at(1, 600, "9") +
				"Top1Accuracy is Accuracy(correct: 9488, count: 10000, accuracy: 0.9488)\n",
			10_000,
		},
		{FormatJSON, `{"epoch":1,"accuracy":0.9,"validation_samples":597}` + "\n", 597},
		{FormatJSON, `{"epoch":1,"accuracy":0.9,"validation_samples":-3}` + "\n", 0},
		{FormatJSON, `{"epoch":1,"accuracy":0.9}` + "\n", 0},
	} {
		p, err := New(c.format, "")
		if err != nil {
			t.Fatal(err)
		}
		reports := append(p.Write(0, []byte(c.text), noon), p.Close(noon)...)
		if len(reports) != 1 || reports[0].ValidationSamples != c.want {
			t.Errorf("%s: %+v, want one epoch with %d samples", c.text, reports, c.want)
		}
	}
}

func BenchmarkParser(b *testing.B) {
	for _, test := range []struct{ name, line string }{
		{
			"bigdl iteration",
			info + at(3, 320, "91.114175155") +
				"Trained 132.0 records in 0.05 seconds. Throughput is 2560.6 records/second. " +
				"Loss is 0.15130447. Net's hyper parameters: Current learning rate is 0.05.\n",
		},
		{"json epoch", `{"epoch":3,"seconds":2.5,"loss":0.25,"accuracy":0.97}` + "\n"},
		{"other line", "step 17 of 400, all is well with the network and its data\n"},
		{"line of a megabyte", strings.Repeat("x", 1<<20) + "\n"},
	} {
		b.Run(test.name, func(b *testing.B) {
			p, err := New(FormatAuto, "")
			if err != nil {
				b.Fatal(err)
			}
			line := []byte(test.line)
			b.ReportAllocs()
			b.SetBytes(int64(len(line)))
			for b.Loop() {
				p.Write(0, line, time.Time{})
			}
		})
	}
}
