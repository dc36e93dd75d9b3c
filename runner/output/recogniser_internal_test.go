package output

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newParserFor returns a parser of any output for a number of requested epochs.
func newParserFor(t testing.TB, epochs int) *Parser {
	t.Helper()
	p, err := New("")
	if err != nil {
		t.Fatal(err)
	}
	p.SetEpochs(uint32(epochs))
	return p
}

// An epoch that runs when the program fails has not ended.
func TestParser_LeavesEpochOfFailedJob(t *testing.T) {
	text := repeat(1, 3, "Epoch {e}/9\nstep 10/20 - loss: {v}\n")
	if got := read(9, text, false); len(got) != 2 {
		t.Errorf("got %q, want 2 epochs", got)
	}
	if got := read(9, text+"Traceback (most recent call last):\nRuntimeError: out of memory\n", false); len(got) != 2 {
		t.Errorf("got %q, want 2 epochs", got)
	}
}

// One epoch is reported at the end, and without a number that was asked for the second one confirms.
func TestParser_ReadsOneEpochAndAnyNumber(t *testing.T) {
	if got := read(1, "Epoch 1/1 - loss: 0.5 - val_acc: 0.9\n", true); len(got) != 1 || got[0] != "1 0.5 0.9" {
		t.Errorf("got %q, want one epoch", got)
	}
	if got := read(0, repeat(1, 4, "Epoch {e} - loss: {v}\n"), true); len(got) != 4 {
		t.Errorf("got %q, want 4 epochs", got)
	}
	if got := read(5, repeat(1, 1, "Epoch {e}/5 - loss: {v}\n"), false); len(got) != 0 {
		t.Errorf("got %q of a job that failed, want none", got)
	}
}

// A number above the requested epochs is never an epoch, and the parser reports that there were more.
func TestParser_LeavesEpochsAboveTheRequestedOnes(t *testing.T) {
	for _, c := range []struct {
		last       int
		isExceeded bool
	}{{3, false}, {4, true}, {9, true}} {
		p := newParserFor(t, 3)
		var got []string
		for _, line := range strings.SplitAfter(repeat(1, c.last, "Epoch {e} - loss: {v}\n"), "\n") {
			got = append(got, format(p.Write(0, []byte(line), noon))...)
		}
		got = append(got, format(p.Close(noon, true))...)
		if len(got) != 3 || p.Exceeded() != c.isExceeded {
			t.Errorf("%d epochs of 3: got %q, exceeded %t", c.last, got, p.Exceeded())
		}
	}
}

// Epochs that are said to have taken longer than the command has run are those of an earlier training.
func TestParser_LeavesEpochsOfAnEarlierTraining(t *testing.T) {
	for runs, want := range map[time.Duration]int{2 * time.Second: 0, time.Minute: 3} { // before they are printed
		p := newParserFor(t, 3)
		p.SetStart(noon)
		got := p.Write(0, []byte(repeat(1, 3, "Epoch {e}/3 - loss: {v} - time: 12.5s\n")), noon.Add(runs))
		if got = append(got, p.Close(noon.Add(2*runs), true)...); len(got) != want {
			t.Errorf("after %v: %q, want %d epochs", runs, format(got), want)
		}
	}
}

// A bar on the other stream is read as far as it was drawn when the heading of the next epoch comes.
func TestParser_ReadsABarBeforeALineOfTheOtherStream(t *testing.T) {
	p, at := newParserFor(t, 3), noon
	var got []EpochReport
	for step := range 9 {
		if step%3 == 0 {
			got = append(got, p.Write(0, fmt.Appendf(nil, "epoch %d/3\n", step/3+1), at)...)
		}
		at = at.Add(time.Second)
		bar := fmt.Appendf(nil, "\rsteps: %d%%|#  | %d/9 [00:01, loss=0.%d]", 11*step, step+1, 9-step)
		got = append(got, p.Write(1, bar, at)...)
	}
	got = append(got, p.Close(at, true)...)
	if text := strings.Join(format(got), ", "); text != "1 0 0.7 -, 2 0 0.4 -, 3 0 0.1 -" ||
		got[1].At.Sub(got[0].At) != 3*time.Second {
		t.Errorf("got %s, the second until %v", text, got[1].At)
	}
}

// A restarted command prints in the same form, so that its first epoch needs no confirmation.
func TestParser_TrustsTheCounterOfARestartedCommand(t *testing.T) {
	p := newParserFor(t, 9)
	p.Write(0, []byte(repeat(1, 3, "Epoch {e}/9 - loss: {v}\n")), noon)
	p = p.Restart()
	got := p.Write(0, []byte(repeat(4, 4, "Epoch {e}/9 - loss: {v}\n")), noon.Add(time.Minute))
	if diff := format(got); len(diff) != 1 || diff[0] != "4 0 1 -" {
		t.Errorf("got %q, want epoch 4 at once", diff)
	}
}

// Other counters do not hide the one of the epochs.
func TestParser_FindsEpochAmongManyCounters(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		text.WriteString(strings.Replace("iteration x{e} 1: loss 0.1\n", "{e}", strings.Repeat("y", i%40), 1))
	}
	text.WriteString(repeat(1, 3, "Epoch {e}/3 - loss: {v}\n"))
	if got := read(3, text.String(), true); len(got) != 3 {
		t.Errorf("got %q, want 3 epochs", got)
	}
}

// The end of an epoch is the arrival of its last line, also if another one shows later that it had ended. Each
// letter is a line, a second after the previous one; "." is no line.
func TestParser_TimesEpochs(t *testing.T) {
	for _, c := range []struct {
		name, order string
		lines       map[rune]string
		ends        []float64 // of epochs 1 to 3
		seconds     float64   // of epoch 1
	}{
		{"bars", ".a.b.c", map[rune]string{
			'a': "\rEpochs:  33%|███▎      | 1/3 [00:02<00:04, loss=0.3]",
			'b': "\rEpochs:  67%|██████▋   | 2/3 [00:04<00:02, loss=0.2]",
			'c': "\rEpochs: 100%|██████████| 3/3 [00:06<00:00, loss=0.1]",
		}, []float64{2, 4, 6}, 0},
		{"times of parts", "aa.bb.cc", map[rune]string{
			'a': "Ep. 1 : loss 3.1 : Time 0.9s\n", 'b': "Ep. 2 : loss 2.1 : Time 0.9s\n",
			'c': "Ep. 3 : loss 1.1 : Time 0.9s\n",
		}, []float64{2, 5, 8}, 0},
		{"bars before the number", "xa.xb.xc", map[rune]string{
			'x': "100%|██████████| 9/9 [00:01<00:00]\n", 'a': "Epoch: 1, loss: 0.3\n",
			'b': "Epoch: 2, loss: 0.2\n", 'c': "Epoch: 3, loss: 0.1\n",
		}, []float64{2, 5, 8}, 0},
		{"results of the run", "a.b.c.rr", map[rune]string{
			'a': "Epoch 1 loss 0.3\n", 'b': "Epoch 2 loss 0.2\n", 'c': "Epoch 3 loss 0.1\n",
			'r': "mAP: 0.5\n",
		}, []float64{1, 3, 5}, 0},
		{"the number again at the end", ".alx.bly.clz", map[rune]string{
			'a': "Train Epoch: 1 [13%]\n", 'b': "Train Epoch: 2 [26%]\n", 'c': "Train Epoch: 3 [39%]\n",
			'l': "loss_gen=3.1, loss_kl=5.0\n",
			'x': "====> Epoch: 1\n", 'y': "====> Epoch: 2\n", 'z': "====> Epoch: 3\n",
		}, []float64{4, 8, 12}, 0},
		{"a line of the next epoch", "a.tb.tc", map[rune]string{
			'a': "Epoch 1 loss 0.3\n", 'b': "Epoch 2 loss 0.2\n", 'c': "Epoch 3 loss 0.1\n",
			't': "sampling time: 0.5s\n",
		}, []float64{1, 4, 7}, 0},
	} {
		p := newParserFor(t, 3)
		at := noon
		var got []EpochReport
		for _, r := range c.order {
			at = at.Add(time.Second)
			got = append(got, p.Write(0, []byte(c.lines[r]), at)...)
		}
		got = append(got, p.Close(at.Add(time.Minute), true)...)
		if len(got) != len(c.ends) || got[0].Seconds != c.seconds {
			t.Fatalf("%s: got %+v, want %d epochs", c.name, got, len(c.ends))
		}
		for i, e := range got {
			if s := e.At.Sub(noon).Seconds(); s != c.ends[i] {
				t.Errorf("%s: epoch %d ended after %g s, want %g s", c.name, e.Epoch, s, c.ends[i])
			}
		}
	}
}

// Numbers up to the epochs that were measured inside the training need no confirmation.
func TestParser_TrustsNumbersOfMeasuredEpochs(t *testing.T) {
	for measured, want := range []int{0, 2} {
		p := newParserFor(t, 5)
		p.SetMeasured(uint32(measured))
		if got := p.Write(0, []byte("[1/5] loss: 0.5\n[2/5] loss: 0.4\n"), noon); len(got) != want {
			t.Errorf("%q with %d measured epochs, want %d", format(got), measured, want)
		}
	}
}

// If only the last state of a bar is drawn, the time until then is that of all epochs.
func TestParser_TakesALoneNumberForAllEpochs(t *testing.T) {
	p := newParserFor(t, 5)
	got := p.Write(0, []byte("Epoch 4/4  ━━━━━━ 34/34 0:00:01 • 0:00:00 24.77it/s train_loss: 0.001\n"), noon)
	got = append(got, p.Close(noon.Add(time.Minute), true)...)
	if len(got) != 1 || got[0].Epoch != 5 || got[0].Epochs != 5 || !got[0].BeganAt.IsZero() {
		t.Errorf("got %+v, want the five epochs together", got)
	}

	p = newParserFor(t, 20) // each fifth epoch is printed
	got = p.Write(0, []byte("Epoch 5/20 loss 3\nEpoch 10/20 loss 2\nEpoch 15/20 loss 1\n"), noon)
	if len(got) != 3 || got[0].Epochs != 5 || got[1].Epochs != 5 {
		t.Errorf("got %+v, want five epochs each", got)
	}
}

// The first epoch begins where the output shows it: at its heading, at its first batch, as a bar was drawn with
// nothing done, or as long before its end as was printed, if the second time agrees with its arrival. Lines arrive
// a second apart.
func TestParser_FindsTheBeginOfTheFirstEpoch(t *testing.T) {
	for _, c := range []struct {
		name, text string
		began, end float64 // of epoch 1; began 0: unknown
	}{
		{"headings", "a\nProcessing epoch 0\n" + "b\nProcessing epoch 1\nProcessing epoch 2\nRMSE: 1.3\n", 2, 4},
		{"headings alone", "a\nProcessing epoch 0\nProcessing epoch 1\nProcessing epoch 2\nRMSE: 1.3\n", 2, 3},
		{"batches before the number", "a\nb\n" + repeat(0, 2, "Iter 4/8 loss {w}\nIter 8/8 loss {w}\n"+
			"Finished epoch {e}: loss {v}\n"), 2, 5},
		{"batches of something else", "trial 1/2 loss 3\ntrial 2/2 loss 2\n" +
			repeat(1, 3, "Epoch {e}: loss {v}\n"), 0, 3},
		{"a bar", "a\n  0%|   | 0/3 [00:00<?]\nb\n" + repeat(1, 3, "  9%|#  | {e}/3 [00:01<00:01, loss={v}]\n"), 2, 4},
		{"times of epochs", "a\nb\n" + repeat(1, 3, "Epoch {e} loss {v} time 0.9s\n"), 2, 3},
		{"times since the start", "a\nb\nEpoch 1 loss 3 time 1.5s\nEpoch 2 loss 2 time 2.5s\n" +
			"Epoch 3 loss 1 time 3.5s\n", 1.5, 3},
		{"where the training starts", "a\nStarting training\n" + repeat(1, 3, "b\nEpoch {e}: loss {v}\n"), 2, 4},
		{"a count of epochs without a better result", "a\nStart training\n" +
			repeat(1, 3, "b\nEpoch {e}: loss {v}, best epoch {e}, no improvement 0/2\n"), 2, 4},
		{"the head of a table", "a\nepoch train_loss accuracy\nb\n" + repeat(0, 2, "{e} {v} {a}\n"), 0, 4},
		{"ranges of batches", "a\n" +
			repeat(1, 3, "Epoch {e}/3 batch [0-5] loss {w}\nEpoch {e}/3 batch [5-10] loss {v}\n"), 1, 3},
		{"an end after the last batch that is shown", "a\n" +
			repeat(0, 2, "[{e}/3][0/4] loss {w}\n[{e}/3][1/4] loss {w}\n[{e}/3][2/4] loss {v}\n"), 2, 5},
		{"an evaluation printed as epoch 0", "Epoch 0 loss 4\n" + repeat(1, 3, "a\nb\nEpoch {e} loss {v}\n"), 1, 4},
		{"an evaluation printed as epoch 0, long after the start", "a\nb\nc\nEpoch 0 loss 4\n" +
			repeat(1, 3, "Epoch {e} loss {v}\n"), 4, 5},
		{"epochs from 0 that become longer", "a\n" + repeat(0, 0, "Epoch {e} loss 4\n") +
			repeat(1, 2, "a\nb\nEpoch {e} loss {v}\n"), 0, 2},
		{"an evaluation of the training printed as epoch 0", "a\nEpoch 0 train loss 4\n" +
			repeat(1, 3, "a\nb\nEpoch {e} train loss {v}\n"), 2, 5},
		{"where the training starts, above lines with results", "a\nTraining started\n" +
			repeat(1, 3, "Epoch {e} loss {w}\nEpoch {e} loss {v}\n"), 2, 4},
		{"means of times", "a\nb\nEpoch 1 loss 3 time 1.1s\nc\nEpoch 2 loss 2 time 1.55s\n" +
			"Epoch 3 loss 1 time 1.3s\n", 1.9, 3},
		{"parts with an evaluation behind them", "a\nb\n" + repeat(0, 2, "{'loss': {w}, 'epoch': {e}.5}\n"+
			"{'loss': {v}, 'epoch': {n}.0}\n{'eval_loss': {v}, 'epoch': {n}.0}\n"), 2, 5},
		{"times of something else", "a\nb\n" + repeat(1, 3, "Epoch {e} loss {v} time 0.2s\n"), 0, 3},
	} {
		p := newParserFor(t, 3)
		p.SetStart(noon)
		at := noon
		var got []EpochReport
		for line := range strings.SplitAfterSeq(c.text, "\n") {
			at = at.Add(time.Second)
			got = append(got, p.Write(0, []byte(line), at)...)
		}
		got = append(got, p.Close(at, true)...)
		if len(got) != 3 {
			t.Errorf("%s: %q, want 3 epochs", c.name, format(got))
			continue
		}
		began := max(0, got[0].BeganAt.Sub(noon).Seconds())
		if end := got[0].At.Sub(noon).Seconds(); math.Abs(began-c.began) > 1e-6 || end != c.end {
			t.Errorf("%s: from %g to %g s, want from %g to %g s", c.name, began, end, c.began, c.end)
		}
	}
}

// Memory does not grow with the input.
func TestParser_HoldsLittle(t *testing.T) {
	r := newParserFor(t, 1000)
	noise := bytes.Repeat([]byte("x=1, y_42: 0.5 z[3/9] name"), 1<<12)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range 200 {
		r.Write(i%2, noise, noon)
		r.Write(i%2, []byte(repeat(i, i, "a{e} b{e}={e} c{e}: {v} | Epoch {e}: loss{e} {v} took {e}s\n")), noon)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 1<<20 {
		t.Errorf("got %d bytes more, want at most 1 MiB", grown)
	}
	runtime.KeepAlive(r)
}

// No bytes crash the recogniser, every event is valid, and the events do not depend on the pieces that arrive.
func FuzzRecognised(f *testing.F) {
	for _, folder := range []string{"framework-output", "field-cases"} {
		files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "data", folder, "*.txt"))
		for _, file := range files {
			if data, err := os.ReadFile(file); err == nil && len(data) < 4096 {
				f.Add(data, 3)
			}
		}
	}
	f.Add([]byte("epoch  loss  ━━━  acc\n1 2 3 4\n2 3 4 5\n"), 3) // was an endless loop
	f.Add([]byte("s/+2"), 3)                                      // was another one
	f.Add([]byte("epoch,loss\n0,1\n1,2\n2,\"\n"), 3)
	f.Add([]byte("epoch 1 val loss 1e999\nepoch 2 val loss 1e999\n"), 2) // was infinite
	f.Add([]byte("epoCh 0 ACC\x80A 0 epoCh 1"), 3)                       // had a pattern that did not compile
	f.Fuzz(func(t *testing.T, data []byte, epochs int) {
		epochs = max(0, min(epochs, 1<<20))
		r := newParserFor(t, epochs)
		half := len(data) / 2
		last := uint32(0)
		check := func(events []EpochReport) {
			for _, e := range events {
				isValid := e.Epoch > last && (epochs == 0 || e.Epoch <= uint32(epochs)) &&
					e.Seconds >= 0 && !math.IsNaN(e.Seconds) && !math.IsInf(e.Metric.Value, 0)
				isValid = isValid && (e.Accuracy == nil || *e.Accuracy >= 0 && *e.Accuracy <= 1)
				isValid = isValid && (e.Loss == nil || !math.IsNaN(*e.Loss) && !math.IsInf(*e.Loss, 0))
				if !isValid {
					t.Fatalf("event %+v after epoch %d of %d", e, last, epochs)
				}
				last = e.Epoch
			}
		}
		check(r.Write(0, data[:half], noon))
		check(r.Write(0, data[half:], noon.Add(time.Second)))
		check(r.Close(noon.Add(2*time.Second), true))

		whole, pieces := newParserFor(t, epochs), newParserFor(t, epochs)
		atOnce, inPieces := whole.Write(0, data, noon), []EpochReport(nil)
		for part := range chunked(data, 1+half%7) {
			inPieces = append(inPieces, pieces.Write(0, part, noon)...)
		}
		atOnce, inPieces = append(atOnce, whole.Close(noon, true)...), append(inPieces, pieces.Close(noon, true)...)
		if diff := cmp.Diff(format(atOnce), format(inPieces)); diff != "" {
			t.Errorf("reports of the whole and of its pieces differ:\n%s", diff)
		}
	})
}

// cpuTime returns the time of the processor that this process has used, which other processes do not
// lengthen.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkRecognised(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"short", "Epoch 3/10 - loss: 0.1234 - val_acc: 0.91\n"},
		{"batch",
			"Epoch: [0]  [20/37]  eta: 0:01:13  lr: 0.000100 " +
				" loss: 16.0000 (18.0000)  loss_ce: 0.8422 (0.8087)  time: 3.9890  data: 0.0297  max mem: 6825\n"},
		{"prose", "Downloading the data set from the mirror, this may take a while\n"},
		{"logger",
			"2024-03-04 10:00:00,123 " +
				"- mmengine - INFO - Iter(train) [ 2000/8000]  lr: 9.9e-03  time: 0.3210\n"},
		{"noise", strings.Repeat("x", 4000) + "\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newParserFor(b, 10)
			line := []byte(c.line)
			b.ReportAllocs()
			begin := cpuTime()
			for b.Loop() {
				r.Write(0, line, noon)
			}
			b.ReportMetric(float64((cpuTime()-begin).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
