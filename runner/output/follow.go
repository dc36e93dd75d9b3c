package output

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// This file follows the number of the epoch, and groups the lines between two ends.

// maxHeading is the maximum number of words of a heading, whose scope holds for the lines below.
const maxHeading = 8

// noteSection takes the scope of a heading such as "Test Error:".
func (r *recogniser) noteSection(l *line) {
	if l.flags&flagEnd != 0 && metricsOf(l) == 0 {
		r.section = scopeNone
	} else if l.scope != scopeNone && (l.words <= maxHeading || metricsOf(l) > 0) &&
		l.flags&(flagFile|flagForeign) == 0 {
		r.section = l.scope
	}
}

// advance takes the number of an epoch. It reports whether the line belongs to the current epoch.
func (r *recogniser) advance(l *line, s sighting, metrics int) bool {
	s.track.seen++
	if s.track.class > r.class { // a better counter replaces one that is not confirmed
		if r.isConfirmed {
			return true
		}
		isNext := r.current != nil && s.number == r.current.number+1
		wereBatches := r.class == countsSteps // no steps of the whole training
		if !isNext || r.class != countsPart || s.track.class != countsEpochs {
			r.drop()
		}
		r.class, r.next.hasBatches = s.track.class, r.next.hasBatches || wereBatches
	}
	if r.headsEvaluation(l, s.number, metrics) {
		r.isFooter, r.early = true, maps.Clone(r.current.templates)
		if s.number > r.current.number { // the first one was that where the training starts
			s.number--
			r.beginAtOne()
		}
	}
	switch {
	case r.current == nil:
		if s.track.class == countsLead && metrics == 0 {
			return true
		}
		r.open(l, s)
	case s.number > r.current.number:
		if s.number > r.current.number+1 && !r.canSkip(l, s) {
			return false
		}
		r.rises++
		if batch := r.batchOf(l, s.field); batch == nil || batch.value == 0 {
			r.headedAt = r.at
		}
		r.closeCurrent()
		r.open(l, s)
	case s.number == r.current.number && r.current.isPast:
		return false // the line may belong to another training
	case s.number == r.current.number && r.aside != 0 && !r.goesOn(l, s):
		r.repeats()
		return false
	case s.number == r.current.number:
		r.current.isEnded = r.current.isEnded || isEnd(l, r.current)
	default:
		if !r.isSetting() {
			return r.rewind(l, s)
		}
		r.drop()
		r.open(l, s)
	}
	s.track.last, r.aside = s.printed, 0
	r.numberLine = l.template
	r.current.isPlain = s.field.name.unknown == 0
	r.current.isBare = s.field.name.isEmpty() && l.has(isTrainingLoss)
	r.current.hasTotal = r.current.hasTotal || s.field.total > 0 && r.requested > 0
	isAlone := s.field.name.unknown == 0 && (len(l.fields) == 1 || s.field.isBar)
	r.current.isTold = r.current.isTold || r.isAsked(s.field) && isAlone
	return true
}

// start takes a heading that says that the training starts. Results that were printed as epoch 0 before the
// first such heading came before the first epoch.
func (r *recogniser) start() {
	b := r.current
	if r.startedAt.IsZero() && b != nil && !r.isConfirmed && len(r.held) == 0 && b.printed == 0 && b.hasResults {
		r.countFromOne()
	}
	r.startedAt = r.at
}

// headsEvaluation reports whether a line with a number heads an evaluation in the first epoch, amid a pass that is
// one of the whole training. The number comes after the lines of the training.
func (r *recogniser) headsEvaluation(l *line, number, metrics int) bool {
	b := r.current
	isHeading := metrics == 0 && l.scope >= scopeTest && l.template != r.numberLine
	return b != nil && !r.isConfirmed && len(r.held) == 0 && !r.isFooter && isHeading &&
		b.pass.last < b.pass.batches && (number == b.number || b.printed == 0 && number == 2)
}

// canSkip reports whether epochs that were not printed may be skipped, as in a log of every tenth one:
// all lines with numbers are alike.
func (r *recogniser) canSkip(l *line, s sighting) bool {
	isAlike := l.template == r.numberLine && s.track.last >= 0
	if s.track.class == countsEpochs {
		return r.isAsked(s.field) || isAlike
	}
	if isAlike && metricsOf(l) > 0 && s.track.class != countsSteps {
		return true
	}
	s.track.isDead = true
	return false
}

// rewind takes a number below the current one. It belongs to the past, to another worker, or to a
// second run. A counter of rounds that starts again counts something else.
func (r *recogniser) rewind(l *line, s sighting) bool {
	isAgain := s.number == r.first && r.current.number > r.first+1
	switch {
	case !r.isConfirmed && isAgain:
		s.track.isDead = true
		r.drop()
	case s.number == r.first:
		r.aside = cmp.Or(r.aside, l.template) // until the next number shows what it is
	case r.aside != 0 && s.number == r.first+1:
		r.repeats()
	default:
		r.current.isPast = s.track.class == countsEpochs
	}
	return false
}

// repeats ends the reading, because another training has begun to count, such as that of the next fold or trial.
func (r *recogniser) repeats() {
	if r.isOver = true; r.isWhole(r.current) {
		r.closeLast()
	}
}

// goesOn reports whether the number of the current epoch comes again behind the first one, because an evaluation
// counted an epoch of its own. Otherwise a second training has come to this number.
func (r *recogniser) goesOn(l *line, s sighting) bool {
	batch := r.batchOf(l, s.field)
	isNew := r.current.templates[l.template] == 0 && l.template != r.aside
	return s.number > r.first+1 || isNew || batch != nil && r.current.pass.goesOn(batch)
}

// open begins the block of an epoch with the line that has its number.
func (r *recogniser) open(l *line, s sighting) {
	isFirst := r.current == nil && len(r.held) == 0 && !r.isConfirmed
	r.class, r.followed = s.track.class, s.track
	b := newBlock()
	if isFirst {
		r.first = s.number
		r.isTested = r.isTested && !r.next.hasResults
		r.isBar = s.field.isBar
		r.isFooter = r.isBar || r.comesAfter(l, s.field)
	}
	if r.isFooter || r.current != nil && r.current.isEnded {
		b.merge(r.next)
		b.isEnded = isEnd(l, b)
		if isFirst {
			r.early = maps.Clone(r.next.templates)
		}
	} else if isFirst && r.next.isHeldOut && metricsOf(l) > 0 && r.progressOf(l, s.field) == noProgress {
		r.doubtful = maps.Clone(r.next.templates)
	}
	r.next = newBlock()
	b.number, b.printed = s.number, s.printed
	isValue := func(f field) bool { return f.unit == unitPercent || isReading(&f) }
	hasValue, isOver := slices.ContainsFunc(l.fields, isValue), l.flags&flagEnd != 0
	b.isLate, b.isHeaded = isOver || hasValue && r.progressOf(l, s.field) == noProgress, !isOver && !hasValue
	if r.isShifted {
		b.number, r.isShifted = s.number-1, false // the number was read before the shift
	}
	b.end = r.at
	r.current, r.section = b, scopeNone
}

// isEnd reports whether a line with the number of an epoch says that it ended, after its results. Lines like
// those before then belong to the next epoch.
func isEnd(l *line, b *block) bool { return l.flags&flagEnd != 0 && b.hasResults }

// comesAfter reports whether the first number comes after the lines of its epoch: results of the training
// stand before it, or batches and its line has results or says that the epoch ended.
func (r *recogniser) comesAfter(l *line, number *field) bool {
	isOver := l.flags&flagEnd != 0 || l.has(isMain) || l.scope >= scopeTest
	hasLines := r.next.hasTraining || r.next.hasBatches && isOver
	isValue := func(f field) bool { return !f.isWhole }
	isHeading := l.scope == scopeTrain && l.flags&flagEnd == 0 && !slices.ContainsFunc(l.fields, isValue)
	return hasLines && !isHeading && r.progressOf(l, number) == noProgress
}

// take adds a line to the block that it belongs to.
func (r *recogniser) take(l *line, s sighting, hasNumber bool, metrics int) {
	if hasNumber && r.current != nil {
		r.current.lastValue, r.hasParts = s.printed, r.hasParts || !s.field.isWhole
		if s.track.isFractional {
			r.current.parts.note(s.printed-float64(r.current.number-1), r.at)
		}
	}
	// Where steps are divided into units, evaluations are at their ends.
	isApart := func(c *block) bool { return c.lastValue != float64(c.number) && l.has(isHeldOut) }
	if r.class == countsSteps && r.current != nil && !r.isConfirmed && isApart(r.current) {
		r.followed.isDead = true
		r.drop()
		return
	}
	if l.flags&flagSummary != 0 || l.flags&flagFile != 0 && !(hasNumber && metrics > 0) {
		return
	}
	p := r.progressOf(l, s.field)
	if hasNumber && s.field.name.unknown > 0 {
		l.addPart(s.field.name.hash) // D epoch 1, loss 0.5
	}
	section := r.section
	b := r.next
	isOfNext := r.isFooter && r.early[l.template] > 0
	if c := r.current; c != nil && (hasNumber || !r.isBar && !isOfNext && !(c.isEnded && c.templates[l.template] > 0)) {
		b = c
	}
	isAgain := r.isBar && hasNumber && b.lines > 0
	r.isLagging = r.isLagging || isAgain && !r.isConfirmed && !b.hasResults && metrics > 0
	if b.isPublished && !(isAgain && r.isLagging) || metrics > 0 && !hasNumber && r.doubtful[l.template] > 0 {
		return
	}
	end := b.end
	if isAgain { // a bar that moves on first and then shows its values had those of the epoch before
		b.readings = nil
	}
	if f := r.batchOf(l, s.field); f != nil {
		if hasNumber && section >= scopeTest && b.pass.goesOn(f) {
			r.section, section = scopeNone, scopeNone // the training goes on behind a validation
		}
		if b.pass.note(f, section, l.template, r.at) && section == scopeNone {
			section = scopeValidation
		}
	}
	if hasNumber {
		isValue := func(f field) bool { return isReading(&f) }
		b.isRow = p != partial && slices.ContainsFunc(l.fields, isValue)
		b.end = r.at
	}
	b.addLine(l, section, p, hasNumber, r.at)
	if isAgain {
		b.end = end
	} else if hasNumber && b.lines > 1 {
		b.lastLine = l.template
	}
	if l.words > 0 && r.familiar[l.template] > 0 && b.end.Equal(r.at) {
		b.familiarEnd = r.at
	}
	if b == r.current && (r.isBar && !r.isLagging || r.endsHere(l, p)) {
		r.closeCurrent()
	}
}

// addPart adds a part of the network, by its hash, to the names of all results.
func (l *line) addPart(hash uint64) {
	for i := range l.fields {
		if n := &l.fields[i].name; isResult(&l.fields[i]) {
			n.hash, n.unknown = combine(n.hash, hash), n.unknown+1
		}
	}
}

// endsHere reports whether a line ends the current epoch, as it ended those before.
func (r *recogniser) endsHere(l *line, p progress) bool {
	if !r.isConfirmed || r.closing == 0 || l.template != r.closing || p == partial {
		return false
	}
	isPart := r.followed.isFractional && r.current.lastValue < float64(r.current.number)-1e-6
	return !isPart && r.current.templates[l.template] == 1
}

// closeCurrent ends the current epoch. Nothing is reported before the counter is confirmed.
func (r *recogniser) closeCurrent() {
	b := r.current
	if b.isPublished {
		return
	}
	b.isPublished = true
	p := &b.pass
	isShown := p.batches > 0 && (p.last >= p.batches || // or 100/400 in epoch 1 of 4
		p.last*float64(r.requested) == p.batches*float64(b.number))
	if p.line != 0 && b.lastLine == p.line && !isShown && !r.isBar && !r.followed.isFractional {
		if !r.isAtEnd { // the last epoch has no heading behind it: its gap is that of the epoch before
			r.gap = max(0, r.headedAt.Sub(b.end).Seconds()/max(1e-3, p.course.seen().Seconds()))
		}
		b.end = b.end.Add(min(r.unseen(p, b.end), max(0, r.at.Sub(b.end)))) // the last batches are not shown
	}
	if b.isHeading() && r.class == countsEpochs && !r.isBar {
		b.end = r.at // that of the last one is not shown
		if before := r.closed; r.isAtEnd && before != nil && b.begin.Add(before.end.Sub(before.begin)).Before(r.at) {
			b.end = b.begin.Add(before.end.Sub(before.begin))
		}
	}
	r.learnClosing(b)
	r.closed = b
	if len(r.familiar) < maxKnown {
		maps.Copy(r.familiar, b.templates)
	}
	for i := range b.readings {
		if len(r.known) < maxKnown {
			r.known[b.readings[i].key()] = true
		}
	}
	r.noteUnnamed(b)
	r.held = append(r.held, b)
	r.isConfirmed = r.isConfirmed || r.confirms()
	if !r.isConfirmed && len(r.held) > maxHeld {
		r.drop()
	}
}

// unseen returns how long an epoch went on after the last batch that was shown, at an instant.
func (r *recogniser) unseen(p *pass, last time.Time) time.Duration {
	if r.gap == 0 && p.batches > 0 && p.course.last > p.course.first {
		return p.course.at(p.batches).Sub(last)
	}
	return time.Duration(r.gap * float64(p.course.seen()))
}

// learnClosing keeps the template of the last line of an epoch, if it occurred once and in two
// epochs, or is the only line.
func (r *recogniser) learnClosing(b *block) {
	last := b.lastLine
	if b.templates[last] != 1 {
		last = 0
	}
	if last != 0 && (last == r.lastClosing || len(b.templates) == 1) {
		r.closing = last
	} else if last != r.closing {
		r.closing = 0
	}
	r.lastClosing = last
}

// closeLast ends the last epoch, behind which lines may follow about the whole run.
func (r *recogniser) closeLast() {
	if b := r.current; !b.isPublished && !b.familiarEnd.IsZero() {
		b.end = b.familiarEnd
	}
	r.closeCurrent()
}

// finish returns the epochs that the end of the output shows. A command that failed did not end its
// last epoch, unless the line that ends epochs was read.
func (r *recogniser) finish(at time.Time, succeeded bool) []EpochReport {
	r.at, r.events, r.isAtEnd = at, r.events[:0], true
	b := r.current
	if b == nil {
		return nil
	}
	if !b.isPublished && succeeded && r.isWhole(b) {
		r.forget(b)
		r.closeLast()
	}
	r.isConfirmed = r.isConfirmed || len(r.held) > 0 && r.confirms() || succeeded && r.confirmsAtEnd()
	r.publish()
	return r.events
}
