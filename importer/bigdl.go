package importer

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// bigdl reads the log of a BigDL driver, which is one run. The batch size is taken from the first
// iteration. If lines begin with a timestamp, the time before the training is the start-up.
func (r *Reader) bigdl(name string, in io.Reader) error {
	l := &driverLog{
		zone:  cmp.Or(r.o.Zone, time.UTC),
		draft: newDraft(Place{File: name}),
	}
	if err := eachLine(in, l.line); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if why := l.end(); why != nil {
		r.reject(l.draft.Place, why)
		return nil
	}
	r.addRun(l.draft)
	return nil
}

var (
	bigdlHeader = regexp.MustCompile(
		`\[Epoch (\d{1,9}) (\d{1,15})/(\d{1,15})\]\[Iteration (\d{1,15})\]` +
			`\[Wall Clock (\d+(?:\.\d+)?(?:E-?\d{1,2})?)\s?s\] ?`)
	bigdlTrained = regexp.MustCompile(
		`^Train(?:ed)? (\d+)(?:\.\d+)? (?:records )?in (?:.*Loss is (-?\d+(?:\.\d+)?(?:E-?\d+)?|NaN))?`)
	bigdlAccuracy = regexp.MustCompile(
		`\bTop1Accuracy is Accuracy\(correct: \d+, count: \d+, accuracy: ([0-9.]+(?:E-?\d+)?)\)`)
	lineTime = regexp.MustCompile(
		`^\[?(\d{4}-\d\d-\d\d|\d\d-\d\d-\d\d|\d\d/\d\d/\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d+)?)`)
)

// driverLog is the state of reading the log of BigDL's optimizers. After the prefix of the logger, its
// lines contain a header with the epoch, the iteration and the wall clock of the training:
//
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.1s] Trained 132 … Loss is 0.15. …
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.1s] Epoch finished. …
//	[Epoch 3 60060/60000][Iteration 1365][Wall Clock 91.1s] Top1Accuracy is Accuracy(…)
//
// The duration of an epoch is the difference of two wall clocks, which count from the start of the
// training. The time of a validation is part of the next epoch, as in the paper (Courier, ICPE 2021).
// The loss is the mean over the iterations of the epoch.
type driverLog struct {
	zone   *time.Location
	draft  *runDraft
	broken *Refusal

	first time.Time // first timestamp
	began time.Time // start of the training according to its iterations

	last      bigdlPosition // of the last message
	hasBegun  bool          // there was a message
	lastEpoch uint32        // last finished epoch; initially the epoch before the first one
	lastClock float64       // wall clock at its end
	isOpen    bool          // the accuracy of the last finished epoch may follow

	losses, lossSum float64 // of the iterations of the current epoch
}

// bigdlPosition is the content of the header of a message.
type bigdlPosition struct {
	epoch       uint32
	done, total float64 // processed samples of the epoch, and all its samples
	iteration   float64
	clock       float64 // seconds since the start of the training
}

// line takes a line. If two jobs write to the same log, a line may contain several messages, each with
// its own header.
func (l *driverLog) line(number int, line []byte) {
	if l.broken != nil {
		return
	}
	at := l.time(line)
	headers := bigdlHeader.FindAllSubmatchIndex(line, -1)
	if len(headers) == 0 {
		l.addAccuracy(bigdlAccuracy.FindSubmatch(line))
	}
	for i, header := range headers {
		end := len(line)
		if i+1 < len(headers) {
			end = headers[i+1][0]
		}
		value := func(group int) float64 {
			v, _ := strconv.ParseFloat(string(line[header[2*group]:header[2*group+1]]), 64) // digits
			return v
		}
		p := bigdlPosition{uint32(value(1)), value(2), value(3), value(4), value(5)}
		if p.clock < l.last.clock || p.iteration < l.last.iteration {
			l.draft.Line, l.broken = number, refuse(ReasonMixed, FieldEpoch,
				"iteration %g at %g s follows iteration %g at %g s: use a separate log for each job",
				p.iteration, p.clock, l.last.iteration, l.last.clock)
			return
		}
		l.message(p, at, line[header[1]:end])
	}
}

// message takes the text behind a header.
func (l *driverLog) message(p bigdlPosition, at time.Time, text []byte) {
	if !l.hasBegun {
		l.hasBegun, l.lastEpoch = true, p.epoch-min(p.epoch, 1)
		l.draft.set(FieldTrainingSamples, p.total)
	}
	l.last = p
	if p.epoch > l.lastEpoch {
		l.isOpen = false
	}

	if match := bigdlTrained.FindSubmatch(text); match != nil {
		if l.draft.values[FieldBatchSize] == "" {
			l.draft.values[FieldBatchSize] = string(match[1])
		}
		if v, err := strconv.ParseFloat(string(match[2]), 64); err == nil {
			l.losses, l.lossSum = l.losses+1, l.lossSum+v
		}
		// Timestamps are truncated to seconds, so the latest start is closest to the true one.
		// Messages of a validation are excluded: they are logged long after their clock value.
		if began := at.Add(-duration(p.clock)); !at.IsZero() && began.After(l.began) {
			l.began = began
		}
		return
	}
	if bytes.HasPrefix(text, []byte("Epoch finished.")) {
		l.finish(p)
		return
	}
	// A validation before the end of the epoch does not finish it.
	if match := bigdlAccuracy.FindSubmatch(text); match != nil && p.done >= p.total {
		l.finish(p)
		if p.epoch == l.lastEpoch {
			l.addAccuracy(match)
		}
	}
}

// finish adds an epoch, unless it is known.
func (l *driverLog) finish(p bigdlPosition) {
	if p.epoch <= l.lastEpoch {
		return
	}
	e := PastEpoch{Number: p.epoch, Source: schemas.DurationReported}
	// If epochs are missing in the log, the difference covers them too. The duration is the mean.
	epochs := float64(p.epoch - l.lastEpoch)
	if v := (p.clock - l.lastClock) / epochs; v > 0 && v <= schemas.MaxSLO.Seconds() {
		e.Seconds = v
	}
	if v := l.lossSum / l.losses; !math.IsNaN(v) && !math.IsInf(v, 0) {
		e.Loss = &v
	}
	l.draft.epochs = append(l.draft.epochs, e)
	l.lastEpoch, l.lastClock, l.isOpen = p.epoch, p.clock, true
	l.losses, l.lossSum = 0, 0
}

// addAccuracy completes the last finished epoch with a match of bigdlAccuracy, which may be nil.
func (l *driverLog) addAccuracy(match [][]byte) {
	if match == nil || !l.isOpen {
		return
	}
	l.isOpen = false
	if v, err := strconv.ParseFloat(string(match[1]), 64); err == nil && v >= 0 && v <= 1 {
		l.draft.epochs[len(l.draft.epochs)-1].Accuracy = &v
	}
}

// time returns the timestamp of a line, or zero.
func (l *driverLog) time(line []byte) time.Time {
	m := lineTime.FindSubmatch(line)
	if m == nil {
		return time.Time{}
	}
	day := strings.ReplaceAll(string(m[1]), "/", "-")
	text := day[len(day)-len("06-01-02"):] + " " + strings.ReplaceAll(string(m[2]), ",", ".")
	at, err := time.ParseInLocation("06-01-02 15:04:05", text, l.zone)
	if err != nil {
		return time.Time{}
	}
	if l.first.IsZero() {
		l.first = at
	}
	return at
}

// end completes the draft at the end of the log.
func (l *driverLog) end() *Refusal {
	d := l.draft
	switch {
	case l.broken != nil:
		return l.broken
	case len(d.epochs) == 0:
		return refuse(ReasonNothing, FieldEpoch,
			"the log has no completed epoch: want lines of BigDL such as [Epoch 1"+
				" 60032/60000][Iteration 469][Wall Clock 27.8s] Epoch finished.")
	case l.last.epoch > l.lastEpoch:
		return refuse(ReasonUnfinished, FieldEpoch, "the log ends within epoch %d", l.last.epoch)
	case l.began.IsZero():
		return nil
	}
	started := l.began
	if l.first.Before(started) {
		d.set(FieldStartup, started.Sub(l.first).Seconds())
		started = l.first
	}
	d.values[FieldStartedAt] = started.Format(time.RFC3339Nano)
	return nil
}
