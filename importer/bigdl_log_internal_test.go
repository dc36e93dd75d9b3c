package importer

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const info = "2026-11-21 12:00:00 INFO  DistriOptimizer$:427 - "

func at(epoch int, seen int, clock string) string {
	return fmt.Sprintf("[Epoch %d %d/600][Iteration 9][Wall Clock %ss] ", epoch, seen, clock)
}

func TestDriverLog_ReadsLines(t *testing.T) {
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
			if diff := cmp.Diff(test.want, bigdlReports(test.text)); diff != "" {
				t.Errorf("epochs (-want +got):\n%s", diff)
			}
		})
	}
}

// bigdlReports returns the epochs of a log as lines of epoch, seconds, loss and accuracy.
func bigdlReports(text string) (all []string) {
	l := &driverLog{zone: time.UTC, draft: newDraft(Place{})}
	for line := range strings.Lines(text) {
		l.line(1, []byte(strings.TrimSuffix(line, "\n")))
	}
	for _, e := range l.draft.epochs {
		s := fmt.Sprintf("%d %.6g", e.Number, e.Seconds)
		for _, v := range []*float64{e.Loss, e.Accuracy} {
			if v == nil {
				s += " -"
			} else {
				s += fmt.Sprintf(" %g", *v)
			}
		}
		all = append(all, s)
	}
	return all
}
