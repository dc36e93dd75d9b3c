package importer

import (
	"bytes"
	"math"
	"regexp"
	"strconv"

	"courier/schemas"
)

// bigdlEpochs parses the log of BigDL's optimizers. After the prefix of the logger, its lines contain
// a header with the epoch, the iteration and the wall clock of the training:
//
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.1s] Trained 132 … Loss is 0.15. …
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.1s] Epoch finished. …
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.1s] Top1Accuracy is Accuracy(…)
//
// An epoch is reported when its accuracy arrives, or when the next epoch begins or the output
// ends. Its duration is the difference of two wall clocks, which count from the start of the
// training. The time of a validation is part of the next epoch, as in the paper (Courier, ICPE
// 2021). The loss is the mean over the iterations of the epoch.
//
// The zero value is ready for use. It is not safe for concurrent use.
type bigdlEpochs struct {
	seen bool

	lastEpoch    uint32     // last reported epoch; initially the epoch before the first one seen
	lastClock    float64    // wall clock at the end of lastEpoch
	pending      *PastEpoch // a finished epoch whose accuracy may follow
	pendingClock float64    // wall clock of pending

	losses, lossSum float64 // of the iterations of the current epoch
}

var (
	bigdlHeader = regexp.MustCompile(
		`\[Epoch (\d+) (\d+)/(\d+)\]\[Iteration \d+\]\[Wall Clock ([0-9.]+(?:E-?\d+)?)\s?s\] ?`)
	bigdlTrained = regexp.MustCompile(
		`^Train(?:ed)? [0-9.]+ (?:records )?in .*Loss is (-?\d+(?:\.\d+)?(?:E-?\d+)?|NaN)`)
	bigdlAccuracy = regexp.MustCompile(
		`\bTop1Accuracy is Accuracy\(correct: \d+, count: \d+, accuracy: ([0-9.]+(?:E-?\d+)?)\)`)
)

const bigdlFinished = "Epoch finished."

// bigdlPosition is the content of the header of a message.
type bigdlPosition struct {
	epoch       uint32
	done, total uint64  // processed samples of the epoch, and all its samples
	clock       float64 // seconds since the start of the training
}

// Line takes the next line without its line break, and returns the epoch that it completes, if
// any. If two jobs write to the same log, a line may contain
// several messages, each with its own header.
func (b *bigdlEpochs) Line(line []byte) []PastEpoch {
	if !bytes.Contains(line, []byte("[Epoch ")) {
		return b.lineWithoutHeader(line)
	}
	var reports []PastEpoch
	headers := bigdlHeader.FindAllSubmatchIndex(line, -1)
	for i, header := range headers {
		end := len(line)
		if i+1 < len(headers) {
			end = headers[i+1][0]
		}
		position, ok := parsePosition(line, header)
		if !ok {
			continue
		}
		reports = append(reports, b.message(position, line[header[1]:end])...)
	}
	return reports
}

// parsePosition reads a header; match is a match of bigdlHeader.
func parsePosition(line []byte, match []int) (p bigdlPosition, ok bool) {
	group := func(i int) string { return string(line[match[2*i]:match[2*i+1]]) }
	epoch, err := strconv.ParseUint(group(1), 10, 32)
	if err != nil {
		return p, false
	}
	p.epoch = uint32(epoch)
	if p.done, err = strconv.ParseUint(group(2), 10, 64); err != nil {
		return p, false
	}
	if p.total, err = strconv.ParseUint(group(3), 10, 64); err != nil {
		return p, false
	}
	p.clock, err = strconv.ParseFloat(group(4), 64)
	return p, err == nil
}

// message takes one message with its header.
func (b *bigdlEpochs) message(position bigdlPosition, text []byte) []PastEpoch {
	if !b.seen {
		b.seen, b.lastEpoch = true, position.epoch-min(position.epoch, 1)
	}
	var reports []PastEpoch
	if b.pending != nil && position.epoch > b.pending.Number {
		reports = append(reports, b.release()...)
	}

	if match := bigdlTrained.FindSubmatch(text); match != nil {
		b.addLoss(match[1])
		return reports
	}
	if bytes.HasPrefix(text, []byte(bigdlFinished)) {
		b.finish(position)
		return reports
	}
	// A validation before the end of the epoch does not finish it.
	match := bigdlAccuracy.FindSubmatch(text)
	if match != nil && position.done >= position.total {
		b.finish(position)
		if b.pending != nil && b.pending.Number == position.epoch {
			reports = append(reports, b.addAccuracy(match)...)
		}
	}
	return reports
}

// lineWithoutHeader takes a line that may contain the accuracy of the pending epoch.
func (b *bigdlEpochs) lineWithoutHeader(line []byte) []PastEpoch {
	if b.pending == nil {
		return nil
	}
	if match := bigdlAccuracy.FindSubmatch(line); match != nil {
		return b.addAccuracy(match)
	}
	return nil
}

func (b *bigdlEpochs) addLoss(loss []byte) {
	if v, err := strconv.ParseFloat(string(loss), 64); err == nil {
		b.losses, b.lossSum = b.losses+1, b.lossSum+v
	}
}

// finish makes an epoch the pending one.
func (b *bigdlEpochs) finish(position bigdlPosition) {
	if b.pending != nil || position.epoch <= b.lastEpoch {
		return
	}
	r := &PastEpoch{Number: position.epoch, Source: schemas.DurationReported}
	// If epochs are missing in the log, the difference covers them too. The duration is the mean.
	epochs := float64(position.epoch - b.lastEpoch)
	if v := (position.clock - b.lastClock) / epochs; v > 0 && v <= schemas.MaxSLO.Seconds() {
		r.Seconds = v
	}
	if v := b.lossSum / b.losses; !math.IsNaN(v) && !math.IsInf(v, 0) {
		r.Loss = &v
	}
	b.pending, b.pendingClock = r, position.clock
	b.losses, b.lossSum = 0, 0
}

// addAccuracy completes the pending epoch with a match of bigdlAccuracy.
func (b *bigdlEpochs) addAccuracy(match [][]byte) []PastEpoch {
	if b.pending == nil {
		return nil
	}
	if v, err := strconv.ParseFloat(string(match[1]), 64); err == nil && v >= 0 && v <= 1 {
		b.pending.Accuracy = &v
	}
	return b.release()
}

// release returns the pending epoch.
func (b *bigdlEpochs) release() []PastEpoch {
	r := *b.pending
	b.lastEpoch, b.lastClock, b.pending = r.Number, b.pendingClock, nil
	return []PastEpoch{r}
}

// End returns the epoch that the end of the log completes, if any.
func (b *bigdlEpochs) End() []PastEpoch {
	if b.pending == nil {
		return nil
	}
	return b.release()
}
