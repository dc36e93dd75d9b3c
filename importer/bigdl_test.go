package importer_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"courier/importer"
)

// driverLog returns the log of a BigDL driver that starts at a time of day, and trains from 12 s
// later with 469 iterations per epoch.
func driverLog(stamped bool, clocks ...float64) string {
	var b strings.Builder
	line := func(clock float64, format string, values ...any) {
		if stamped {
			s := 12 + clock
			fmt.Fprintf(&b, "2020-10-21 13:%02d:%02d INFO  DistriOptimizer$:427 - ", int(s)/60, int(s)%60)
		}
		fmt.Fprintf(&b, format+"\n", values...)
	}
	line(-12, "Running Spark version 2.3.0")
	for i, clock := range clocks {
		head := fmt.Sprintf("[Epoch %d 60032/60000][Iteration %d][Wall Clock %gs]", i+1, 469*(i+1), clock)
		line(clock-2,
			"[Epoch %d 128/60000][Iteration %d][Wall Clock %gs] Trained 128.0 records in 0.05 seconds. Throughput is"+
				" 2560.6 records/second. Loss is 0.5.",
			i+1, 469*i+1, clock-2)
		line(clock, "%s Epoch finished. Wall clock time is %g ms", head, 1000*clock)
		line(clock, "%s Top1Accuracy is Accuracy(correct: 9%d00, count: 10000, accuracy: 0.9%d)",
			head, i, i)
		line(clock, "[Wall Clock %gs] Save model to /tmp/lenet5", clock)
	}
	return b.String()
}

func TestReader_BigDL(t *testing.T) {
	whole := driverLog(true, 27.5, 51.25, 74)
	for _, c := range []struct {
		name, text, promised string
		want                 string
	}{
		{
			"a run with times of its own", whole, "3",
			"lenet5 b128 c4 e3 on cpu4-netlenet5 from 2020-10-21T13:00:00 86s finished startup 12 accuracy 0.92" +
				" 1:27.5=0.9 2:23.75=0.91 3:22.75=0.92\n",
		},
		{
			"without times", driverLog(false, 27.5, 51.25), "",
			"lenet5 b128 c4 e2 on cpu4-netlenet5 from 2020-10-21T00:00:00 51.25s finished accuracy 0.91 1:27.5=0.9" +
				" 2:23.75=0.91\n",
		},
		{
			"fewer epochs than promised", whole, "10",
			"refused: logs/cpu4-netlenet5.log: epochs: expected 10 epochs, found 3\n",
		},
		{
			"it was cut within an epoch", whole[:strings.Index(whole, "[Epoch 3 60032")], "",
			"refused: logs/cpu4-netlenet5.log: epoch: the log ends within epoch 3\n",
		},
		{
			"another job wrote into it", whole + driverLog(true, 28, 52), "",
			"refused: logs/cpu4-netlenet5.log:15: epoch: iteration 1 at 26 s follows iteration 1407 at 74 s: use a" +
				" separate log for each job\n",
		},
		{
			"it begins late", whole[strings.Index(whole, "2020-10-21 13:01:03"):], "",
			"refused: logs/cpu4-netlenet5.log: epoch: epoch 2 follows epoch 0: epochs are missing, or two runs are" +
				" mixed\n",
		},
		{
			"no log of BigDL", "hello\nworld\n", "",
			"refused: logs/cpu4-netlenet5.log: epoch: the log has no completed epoch: want lines of BigDL such as" +
				" [Epoch 1 60032/60000][Iteration 469][Wall Clock 27.8s] Epoch finished.\n",
		},
	} {
		o := importer.Options{
			Since:    since,
			Now:      now,
			Names:    regexp.MustCompile(`cpu(?P<cpus>\d+)-net(?P<model>\w+)`),
			Defaults: map[string]string{importer.FieldEpochs: c.promised},
		}
		if got := brief(read(t, o, importer.FormatBigDL, "logs/cpu4-netlenet5.log", c.text)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// Loggers use several formats of dates.
func TestReader_BigDLTimes(t *testing.T) {
	for _, stamp := range []string{
		"2021-10-29 01:57:48 INFO ", "22-02-10 22:04:30 [Thread-4] INFO ",
		"17/08/16 22:52:20 INFO ", "[2021-10-29T01:57:48.250] ",
	} {
		text := stamp + "[Epoch 1 128/128][Iteration 1][Wall Clock 2.5s] Trained 128 records in 2.5 seconds. Loss is" +
			" 0.5.\n" + stamp + "[Epoch 1 128/128][Iteration 1][Wall Clock 2.5s] Epoch finished. Wall clock time is" +
			" 2500 ms\n"
		o := importer.Options{
			Defaults: map[string]string{importer.FieldModel: "m", importer.FieldCPUs: "1"},
		}
		if f := read(t, o, importer.FormatBigDL, "a.log", text); len(f.Runs) != 1 ||
			f.LaidOut != 0 {
			t.Errorf("timestamp %q: read %s, want one run with its own times", stamp, brief(f))
		}
	}
}
