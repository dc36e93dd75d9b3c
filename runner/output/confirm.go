package output

import (
	"math"
	"slices"
	"time"
)

// This file decides when epochs are reported.

// Numbers of epochs after which a counter is trusted.
const (
	trustedRounds = 2 // ended ones, of a counter that is not called epochs
	fewEpochs     = 5 // with fewer, unnamed rounds are trusted at the end only
)

// Bounds of the ratio of a printed duration of an epoch to the time between the arrivals of two ends. A validation
// may not be in it.
const (
	leastDuration = 0.6
	mostDuration  = 1.05
	exactDuration = 0.02 // most difference to 1 of a mean
)

// minFirstEpoch is the least time of a first epoch whose begin the output shows. With less, the lines of its begin
// and of its end were printed together.
const minFirstEpoch = 20 * time.Millisecond

// isRetold reports whether the epochs that are held are of an earlier training: the single line of the first one
// says that it took longer than the command has run, or they are said to be tests.
func (r *recogniser) isRetold() bool {
	if r.isTested && !slices.ContainsFunc(r.held, r.isTraining) {
		return true
	}
	limit := (r.readAt.Sub(r.beganAt) + time.Second).Seconds() // times may be rounded
	isLonger := func(x reading) bool {
		return x.name.kind == kindTime && x.name.flags&flagTotal == 0 && validSeconds(x.value) > limit
	}
	return !r.beganAt.IsZero() && r.held[0].lines == 1 && slices.ContainsFunc(r.held[0].readings, isLonger)
}

// isResumed reports whether the epochs are those behind a checkpoint, and it is unknown whether they were counted from
// 0 or 1. Epoch 3 may be the fourth one, until the last number shows it.
func (r *recogniser) isResumed() bool {
	last := r.held[len(r.held)-1].number
	isNext := last-r.first == len(r.held)-1 // not each tenth one
	return r.first > 1 && r.followed.total == 0 && isNext && !r.followed.isFractional && last < r.requested
}

// isTraining reports whether a block has a result of a training, or a loss of an epoch that is not of held-out data.
func (r *recogniser) isTraining(b *block) bool {
	loss, _ := chooseLoss(b)
	return b.hasTraining || r.class == countsEpochs && loss != nil && loss.scope < scopeTest
}

// confirms reports whether the epochs that are held are trusted.
func (r *recogniser) confirms() bool {
	if r.isRetold() {
		return false
	}
	if last := r.held[len(r.held)-1]; last.hasResults && last.number <= r.measured {
		return true
	}
	if r.class == countsEpochs {
		return r.rises > 0 && !r.isResumed() && r.isEvident() && !r.mayBeInitial()
	}
	b := r.held[0]
	if len(r.held) < trustedRounds {
		return false
	}
	switch r.class {
	case countsPart:
		return false
	case countsSteps:
		return r.first == 1 && !slices.ContainsFunc(r.held, func(b *block) bool { return !b.isEvaluated() })
	case countsShare: // it may count batches, which start again only after the last one
		return b.hasBatches && b.hasTraining
	case countsRounds:
		return b.hasTotal && b.hasScore && r.first == 1
	}
	return b.hasBatches || r.requested == 0 || r.requested >= fewEpochs
}

// isEvident reports whether the epochs that are held are of a training: they have results, batches or
// requested totals, or print durations that agree with the arrival of their lines. Services count epochs, too.
// Progress in the last of several epochs alone is of something else, and the epochs of a leader need results or i/N.
func (r *recogniser) isEvident() bool {
	for i, b := range r.held {
		isOfEpoch := func(x reading) bool {
			if x.name.kind == kindTime {
				interval := x.value / max(1e-9, b.end.Sub(r.held[max(i-1, 0)].end).Seconds())
				return interval >= leastDuration && interval <= mostDuration
			}
			isRate := x.name.unknown == 0 && x.unit != unitPercent && x.value != math.Trunc(x.value) && !b.hasOther
			return x.name.kind != kindRate || !isBareError(&x.name) || isRate // a server counts errors
		}
		hasBatches := b.hasBatches && (i == 0 || i < len(r.held)-1)
		isShown := hasBatches || b.isTold || slices.ContainsFunc(b.readings, isOfEpoch)
		if isShown && (b.isPlain || b.hasResults || b.pass.batches > 0) {
			return true
		}
	}
	return false
}

// Bounds of the ratio of the time until epoch 0 was printed to the shortest time until the next number. Below the
// least one it came before the training, and above the most one it was the first epoch. Between them it came before
// the training if several later epochs are longer.
const (
	leastEarly = 0.5
	mostEarly  = 0.85
	fewLater   = 3
	shortRun   = 20 * time.Second // of a shorter run, the epochs may wait for the last number
)

// mayBeInitial reports whether the first block may be an evaluation before the first epoch or a heading, printed as
// epoch 0, and no other block shows that yet. It is if the next one has a training or batches and it has none, if it
// took less time than an epoch takes, or if the numbers end above the requested one. Then it is dropped.
func (r *recogniser) mayBeInitial() bool {
	b, last := r.held[0], r.held[len(r.held)-1]
	isFromZero := r.requested > 0 && r.followed.total == float64(r.requested-1) // 0/2 of 3
	isReached := r.isAtEnd && last.number == r.requested
	if b.printed != 0 || b.number != 1 || b.hasBatches || isFromZero || isReached {
		return false
	}
	early, length := r.earliness()
	isOver := r.requested > 0 && last.number > r.requested
	mayWait := b.hasResults && r.startedAt.IsZero() && r.requested > 0 && !r.isAtEnd
	isShort := mayWait && length*time.Duration(r.requested) < shortRun
	if len(r.held) == 1 {
		return !b.hasTraining || early < mostEarly || isShort
	}
	next := r.held[1]
	isTrained := next.hasTraining && !b.hasTraining || next.hasBatches && !b.hasBatches
	isLong := early >= mostEarly || len(r.held) <= fewLater && !r.isAtEnd
	if !isOver && !isTrained && early >= leastEarly && isLong {
		return early < mostEarly || isShort
	}
	r.startedAt = b.end
	r.held = r.held[1:]
	for _, x := range r.held {
		x.number--
	}
	r.beginAtOne()
	r.isShifted = true
	return false
}

// earliness returns the ratio of the time until the first block that is held ended, since the training or the command
// began, to the shortest of the blocks behind it, and the length of that one. The ratio is 1 if it is unknown.
func (r *recogniser) earliness() (ratio float64, length time.Duration) {
	began, b := r.beganAt, r.held[0]
	if !r.startedAt.IsZero() {
		began = r.startedAt
	}
	length = r.at.Sub(b.end)
	for i, x := range r.held[1:] {
		length = min(length, x.end.Sub(r.held[i].end))
	}
	if began.IsZero() || length <= 0 {
		return 1, length
	}
	return b.end.Sub(began).Seconds() / length.Seconds(), length
}

// publish reports the epochs that are held, if they are trusted.
func (r *recogniser) publish() {
	if !r.isConfirmed {
		return
	}
	for _, b := range r.held {
		if r.requested == 0 || b.number <= r.requested {
			r.events = append(r.events, r.event(b))
		} else {
			r.isExceeded = true
		}
	}
	r.held = nil
}

// event returns the report of a block.
func (r *recogniser) event(b *block) EpochReport {
	e := EpochReport{Epoch: uint32(b.number), Epochs: 1, At: b.end}
	isLone := r.isAtEnd && r.rises == 0 // of a bar on a pipe only the last state may be drawn
	if r.lastNumber > 0 || isLone {
		e.Epochs = uint32(max(b.number-r.lastNumber, 1))
	} else if step := r.following().number - b.number; step > 1 && step == b.number { // every tenth one
		e.Epochs = uint32(step)
	} else if e.BeganAt = r.beginOf(b); e.BeganAt.Before(r.beganAt) || e.At.Sub(e.BeganAt) < minFirstEpoch {
		e.BeganAt = time.Time{}
	}
	r.lastNumber = b.number
	c := r.choose(b)
	c.set(&e)
	e.Metric.Name = labelWords(e.Metric.Name)
	return e
}

// mostUneven is how much longer or shorter than the next one the first epoch may be, if it began where the output
// says that the training starts.
const mostUneven = 2

// beginOf returns when the first epoch began; zero or its end if the output does not show it.
func (r *recogniser) beginOf(b *block) time.Time {
	following := r.following()
	if s := r.startedAt; !s.IsZero() && !r.isFooter && b.lines > 1 && !b.isHeaded && // said just before
		b.begin.Sub(s) < mostUneven*b.end.Sub(b.begin)/time.Duration(b.lines-1) {
		return s
	}
	hasBatches := b.begin.Equal(b.pass.course.firstAt)
	if r.isFooter { // what stands before the first number may be about something else
		hasBatches = following != b && following.templates[b.pass.line] > 0
	}
	begin, part := b.parts.begin(), b.parts.first
	if hasBatches {
		begin, part = b.pass.course.begin(), b.pass.course.first/max(1, b.pass.batches)
	}
	switch {
	case !begin.IsZero():
		return begin
	case r.isBar:
		return r.barAt
	case !r.isFooter && !b.isLate && (b.isHeading() || b.lines > 1 && part < 0.05):
		return b.begin
	}
	if printed := b.printedLength(following); printed > 0 {
		return b.end.Add(-time.Duration(printed * float64(time.Second)))
	}
	next := following.end.Sub(b.end)
	if first := b.end.Sub(r.startedAt); first < mostUneven*next && next < mostUneven*first {
		return r.startedAt
	}
	return time.Time{}
}

// following returns the block behind the first one that is held.
func (r *recogniser) following() *block {
	if len(r.held) > 1 {
		return r.held[1]
	}
	return r.current
}

// printedLength returns the seconds of an epoch by the time that was printed with it, if that of the following
// epoch agrees with the arrivals: as it is, as the time since the start, or exactly as a mean of both. Else it
// returns 0.
func (b *block) printedLength(following *block) float64 {
	interval := max(1e-9, following.end.Sub(b.end).Seconds())
	for i := range b.readings {
		x := &b.readings[i]
		isRounded := x.value < 10 && x.value == math.Trunc(x.value)
		if x.name.kind != kindTime || isRounded || validSeconds(x.value) == 0 {
			continue
		}
		for j := range following.readings {
			next := &following.readings[j]
			if next.name.hash != x.name.hash {
				continue
			}
			if mean := 2*next.value - x.value; math.Abs(mean/interval-1) < exactDuration {
				return x.value
			}
			for _, printed := range []float64{next.value, next.value - x.value} {
				if ratio := printed / interval; ratio >= leastDuration && ratio <= mostDuration {
					return x.value / ratio
				}
			}
		}
	}
	return 0
}

// maxKnown bounds the names of readings, and the templates.
const maxKnown = 256

// forget removes readings of the last epoch that no other had: they are results of the whole run.
func (r *recogniser) forget(b *block) {
	b.readings = slices.DeleteFunc(b.readings, func(x reading) bool {
		return len(r.known) > 0 && !r.known[x.key()]
	})
}

// isWhole reports whether the last block looks like an epoch that ended.
func (r *recogniser) isWhole(b *block) bool {
	if r.followed.isFractional && b.lastValue < float64(b.number)-0.1 {
		return false
	}
	if r.requested > 0 && b.number >= r.requested {
		return b.hasContent || b.lines > 1 || b.isTold || !r.isConfirmed
	}
	if !b.hasContent {
		return false
	}
	return r.lastClosing == 0 && r.closing == 0 || b.templates[r.lastClosing] > 0
}

// confirmsAtEnd trusts a counter that reached exactly the number that was asked for.
func (r *recogniser) confirmsAtEnd() bool {
	if len(r.held) == 0 || r.isRetold() {
		return false
	}
	last := r.held[len(r.held)-1]
	if r.class == countsEpochs {
		if r.isResumed() {
			if last.number+1 < r.requested {
				return false
			}
			for _, b := range r.held { // they were counted from 0
				b.number++
			}
		}
		isReached := last.number == r.requested && (r.rises > 0 || r.requested == 1) // else a summary
		return last.isTold || last.hasContent && (last.hasTotal || isReached && r.isEvident())
	}
	isOther := func(b *block) bool { return !b.hasTraining && !b.isBare } // numbered files, clients and tests
	isShare := r.class == countsShare
	if r.class <= countsSteps || isShare && (slices.ContainsFunc(r.held, isOther) || !r.lossFalls()) {
		return false
	}
	isWhole := last.number == r.requested && len(r.held) > 1
	wasStopped := r.first == 1 && r.rises == last.number-1 && last.number >= fewEpochs && last.isRow // early
	return last.hasContent && last.hasScore && (isWhole || wasStopped)
}

// lossFalls reports whether the loss is lower in the last epoch than in the first. That of other things that are
// numbered, such as the models of a benchmark, may be any.
func (r *recogniser) lossFalls() bool {
	first, _ := chooseLoss(r.held[0])
	last, _ := chooseLoss(r.held[len(r.held)-1])
	return len(r.held) == 1 || first == nil || last == nil || last.value < first.value
}
