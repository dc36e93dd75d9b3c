package collector

import (
	"bytes"
	"regexp"
	"strconv"
	"time"
)

// bigdl reads the log of BigDL's optimizers. Its lines say
//
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.114175155s] Trained 132 records in 0.05 seconds. … Loss is 0.15. …
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.114175155s] Epoch finished. Wall clock time is 91485.3 ms
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.114175155s] Top1Accuracy is Accuracy(correct: 9665, count: 10000, accuracy: 0.9665)
//
// after whatever the logger puts before. An epoch is reported with its accuracy
// when that arrives, else when the next epoch begins or the output ends. Its
// duration is the difference of two Wall Clocks, which run from the start of
// training; a validation's time is in the epoch after it, as in the paper
// (Courier, ICPE 2021).
type bigdl struct {
	seen    bool
	base    uint32 // last epoch reported; before the first, the one before the first seen
	clock   float64
	waiting *report // finished, its accuracy may still come
	clocked float64 // Wall Clock of the waiting report

	losses, lossSum float64 // of the iterations of the running epoch
}

var (
	bigdlHeader = regexp.MustCompile(`\[Epoch (\d+) (\d+)/(\d+)\]\[Iteration \d+\]\[Wall Clock ([0-9.]+(?:E-?\d+)?)\s?s\] ?`)
	bigdlTrain  = regexp.MustCompile(`^Train(?:ed)? [0-9.]+ (?:records )?in .*Loss is (-?\d+(?:\.\d+)?(?:E-?\d+)?|NaN)`)
	bigdlTop1   = regexp.MustCompile(`\bTop1Accuracy is Accuracy\(correct: \d+, count: (\d+), accuracy: ([0-9.]+(?:E-?\d+)?)\)`)
)

const bigdlFinished = "Epoch finished."

// header is what stands before a BigDL message.
type header struct {
	epoch       uint32
	seen, total uint64  // samples of this epoch so far, and in all
	clock       float64 // seconds since training began
}

// line implements parser. Where two lines ran together, as when two jobs write
// into one file, each header begins a line of its own.
func (b *bigdl) line(line []byte, at time.Time) []report {
	if !bytes.Contains(line, []byte("[Epoch ")) {
		return b.bare(line)
	}
	var all []report
	places := bigdlHeader.FindAllSubmatchIndex(line, -1)
	for i, p := range places {
		until := len(line)
		if i+1 < len(places) {
			until = places[i+1][0]
		}
		h, ok := parseHeader(line, p)
		if !ok {
			continue
		}
		all = append(all, b.message(h, line[p[1]:until], at)...)
	}
	return all
}

func parseHeader(line []byte, p []int) (h header, ok bool) {
	field := func(i int) string { return string(line[p[2*i]:p[2*i+1]]) }
	epoch, err := strconv.ParseUint(field(1), 10, 32)
	if err != nil {
		return h, false
	}
	h.epoch = uint32(epoch)
	if h.seen, err = strconv.ParseUint(field(2), 10, 64); err != nil {
		return h, false
	}
	if h.total, err = strconv.ParseUint(field(3), 10, 64); err != nil {
		return h, false
	}
	h.clock, err = strconv.ParseFloat(field(4), 64)
	return h, err == nil
}

// message takes one message with its header.
func (b *bigdl) message(h header, text []byte, at time.Time) []report {
	if !b.seen {
		b.seen, b.base = true, h.epoch-min(h.epoch, 1)
	}
	var all []report
	if b.waiting != nil && h.epoch > b.waiting.epoch {
		all = append(all, b.release()...)
	}
	switch {
	case bigdlTrain.Match(text):
		b.iteration(bigdlTrain.FindSubmatch(text)[1])
	case bytes.HasPrefix(text, []byte(bigdlFinished)):
		b.finish(h, at)
	default:
		if m := bigdlTop1.FindSubmatch(text); m != nil && h.seen >= h.total { // a validation within an epoch ends none
			b.finish(h, at)
			if b.waiting != nil && b.waiting.epoch == h.epoch {
				all = append(all, b.judge(m)...)
			}
		}
	}
	return all
}

// bare takes an accuracy without a header, which belongs to the waiting epoch.
func (b *bigdl) bare(line []byte) []report {
	if b.waiting == nil {
		return nil
	}
	if m := bigdlTop1.FindSubmatch(line); m != nil {
		return b.judge(m)
	}
	return nil
}

func (b *bigdl) iteration(loss []byte) {
	if v, err := strconv.ParseFloat(string(loss), 64); err == nil {
		b.losses, b.lossSum = b.losses+1, b.lossSum+v
	}
}

// finish makes the epoch wait for its accuracy.
func (b *bigdl) finish(h header, at time.Time) {
	if b.waiting != nil || h.epoch <= b.base {
		return
	}
	r := &report{epoch: h.epoch, at: at}
	// Where epochs were not seen, the difference is theirs too: take the mean.
	r.seconds = reportedSeconds((h.clock - b.clock) / float64(h.epoch-b.base))
	if b.losses > 0 {
		r.loss = lossOf(b.lossSum / b.losses)
	}
	b.waiting, b.clocked = r, h.clock
	b.losses, b.lossSum = 0, 0
}

// judge completes the waiting epoch by a match of bigdlTop1.
func (b *bigdl) judge(m [][]byte) []report {
	if b.waiting == nil {
		return nil
	}
	if v, err := strconv.ParseFloat(string(m[2]), 64); err == nil {
		b.waiting.accuracy = accuracyOf(v)
	}
	if n, err := strconv.ParseUint(string(m[1]), 10, 63); err == nil {
		b.waiting.samples = n
	}
	return b.release()
}

// release reports the waiting epoch.
func (b *bigdl) release() []report {
	r := *b.waiting
	b.base, b.clock, b.waiting = r.epoch, b.clocked, nil
	return []report{r}
}

// end implements parser.
func (b *bigdl) end() []report {
	if b.waiting == nil {
		return nil
	}
	return b.release()
}

// again implements parser.
func (b *bigdl) again() parser { return &bigdl{} }

// familiar implements parser.
func (b *bigdl) familiar() bool { return b.seen }
