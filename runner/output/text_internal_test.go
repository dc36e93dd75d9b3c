package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestParser_ReadsCapturedOutput reads what training frameworks really printed.
func TestParser_ReadsCapturedOutput(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/framework-output/*.txt")
	if err != nil || len(files) == 0 {
		t.Skip("there is no ../shared/data/framework-output")
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&all, strings.TrimSuffix(filepath.Base(file), ".txt"))
		whole := parseLines(t, 0, string(text), true)
		for _, line := range whole {
			fmt.Fprintln(&all, "\t"+line)
		}
		if diff := cmp.Diff(parse(t, "", string(text)), parseBytes(t, string(text))); diff != "" {
			t.Errorf("%s: the reports depend on the pieces that arrive (-whole +bytes):\n%s", file, diff)
		}
	}
	const golden = "testdata/captured.golden"
	if os.Getenv("COURIER_UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), all.String()); diff != "" {
		t.Errorf("reports of captured output, COURIER_UPDATE=1 writes them (-want +got):\n%s", diff)
	}
}

// parseBytes parses an output that arrives byte by byte.
func parseBytes(t *testing.T, text string) []string {
	t.Helper()
	p, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	var reports []EpochReport
	for i := range len(text) {
		reports = append(reports, p.Write(0, []byte{text[i]}, noon)...)
	}
	return format(append(reports, p.Close(noon, true)...))
}

// A report has the metric behind its accuracy as it was printed.
func TestParser_ReportsThePrintedMetric(t *testing.T) {
	const none = -1
	for _, c := range []struct {
		name, line string
		accuracy   float64
		want       Metric
	}{
		{"a ratio", "Epoch 1/2 loss=0.5 val_acc=0.91", 0.91, Metric{"val acc", 0.91}},
		{"a percentage", "Epoch 1/2 loss=0.5 val_acc=91.5", 0.915, Metric{"val acc", 91.5}},
		{"a percent sign", "Epoch 1/2, test accuracy: 91 %", 0.91, Metric{"test accuracy", 91}},
		{"an error rate", "Epoch 1/2 loss=0.5 val_error=0.08", 0.92, Metric{"val error", 0.08}},
		{"a word error rate", "epoch 1 | loss 0.5 | dev WER 0.25", 0.75, Metric{"dev wer", 0.25}},
		{"a distance", "Epoch 1/2 loss=0.5 val_rmse=3.2", none, Metric{"val rmse", 3.2}},
		{"validation wins", "Epoch 1/2 acc=0.99 val_acc=0.9", 0.9, Metric{"val acc", 0.9}},
		{"accuracy wins over a loss", "Epoch 1/2 val_acc=0.9 val_loss=0.4", 0.9, Metric{"val acc", 0.9}},
		{"the loss before a decrease", "Epoch 1/2 val loss: 0.4\nValidation loss decreased (0.9 --> 0.4)", none,
			Metric{"val loss", 0.4}},
		{"only a loss of the training", "Epoch 1/2 loss=0.5", none, Metric{}},
		{"JSON", `{"epoch":1,"dev_wer":0.25}`, 0.75, Metric{"dev wer", 0.25}},
		{"JSON with a percentage", `{"epoch":1,"val_acc":91.5}`, 0.915, Metric{"val acc", 91.5}},
		{"Hugging Face", `{'eval_loss': 0.5, 'eval_wer': 0.25, 'eval_runtime': 1, 'epoch': 1.0}`, 0.75,
			Metric{"eval wer", 0.25}},
	} {
		p, err := New("")
		if err != nil {
			t.Fatal(err)
		}
		reports := append(p.Write(0, []byte(c.line+"\nEpoch 2/2\n"), noon), p.Close(noon, true)...)
		if len(reports) == 0 {
			t.Errorf("%s: no report", c.name)
			continue
		}
		accuracy := float64(none)
		if a := reports[0].Accuracy; a != nil {
			accuracy = *a
		}
		if accuracy != c.accuracy || reports[0].Metric != c.want {
			t.Errorf("%s: accuracy %g of %+v, want %g of %+v", c.name, accuracy, reports[0].Metric, c.accuracy, c.want)
		}
	}
}

// A suggested pattern reads the epochs of the line that it was made of.
func TestParser_SuggestsAPattern(t *testing.T) {
	for _, test := range []struct {
		text string
		want []string
	}{
		{
			"started\ne1 done, quality 0.91\ne2 done, quality 0.93\ne3 done, quality 0.95\n",
			nil, // no number counts: e1 is a word
		},
		{
			"pass 1 finished: acc=0.91 loss=1e-1 (12 s)\npass 2 finished: acc=0.93 loss=9e-2 (11 s)\n",
			[]string{"1 0 0.1 0.91", "2 0 0.09 0.93"},
		},
	} {
		p := newParserFor(t, 0)
		p.Write(0, []byte(test.text), noon)
		_, pattern := p.Suggest()
		if pattern == "" {
			if test.want != nil {
				t.Errorf("no pattern for %q", test.text)
			}
			continue
		}
		if diff := cmp.Diff(test.want, parse(t, pattern, test.text)); diff != "" {
			t.Errorf("reports by %q (-want +got):\n%s", pattern, diff)
		}
	}
}
