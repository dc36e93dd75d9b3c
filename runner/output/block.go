package output

import (
	"math"
	"slices"
	"time"
)

// Bounds of what is kept of an epoch.
const (
	maxReadings  = 96
	maxTemplates = 48
	maxLabelSize = 64
)

// block holds the lines between two ends of epochs.
type block struct {
	number      int
	printed     float64
	begin, end  time.Time
	readings    []reading
	templates   map[uint64]int // lines with the same words
	lines       int
	lastLine    uint64 // template of the last line with content
	lastValue   float64
	familiarEnd time.Time // arrival of its last line like those of earlier epochs
	hasContent  bool      // metrics, batches or a duration
	hasBatches  bool
	pass        pass
	hasResults  bool
	hasScore    bool // other results than those that an encoder prints, too
	isHeldOut   bool // all results are of held-out data
	hasOther    bool // numbers of unknown meaning that are no counts
	hasTraining bool // results of batches, or of the training
	isPublished bool
	hasEnd      bool // a line says that something ended
	isLate      bool // the first line with the number does, or has results or a part of the epoch
	isHeaded    bool // the first line with the number has neither results nor a part, and does not say that it ended
	parts       course
	isEnded     bool // a line reports the end, see isEnd
	isPast      bool // a lower number was read since
	isRow       bool // the line of the number has values of the epoch, so that the epoch had ended
	isBare      bool // the number has no name, and results beside it
	isTold      bool // a line has nothing but i/N with N as requested
	isPlain     bool // the name of the number has no unknown words
	hasTotal    bool // the number was printed as i/N with N as requested, or one less
}

// pass is the first pass over batches in a block.
type pass struct {
	name          uint64 // of their counter
	batches, last float64
	section       scope
	line          uint64 // template of its last line
	course        course
	isSet         bool
	isBar         bool // the batches are counted behind a bar
	isOver        bool // after its last batch, a batch of a second pass with the same name was seen
}

// note takes a line about a batch in a section. It reports whether the batch is of a second pass, which is over
// held-out data.
func (p *pass) note(batch *field, section scope, line uint64, at time.Time) bool {
	switch {
	case !p.isSet || p.batches == 0 && batch.total > 0 && batch.name.scope < scopeTest:
		*p = pass{name: batch.name.hash, batches: batch.total, section: section, isSet: true, isBar: batch.isBar}
	case p.name != batch.name.hash:
		return false
	}
	isSame := batch.total == p.batches && batch.value >= p.last
	p.isOver = p.isOver || !isSame && batch.total > 0 && p.last >= p.batches-1
	if isSame && !p.isOver {
		p.last, p.line = batch.value, line
		p.course.note(p.last, at)
	}
	return p.isOver
}

// course is how far an epoch was at two instants, in batches or in parts of it.
type course struct {
	first, last     float64
	firstAt, lastAt time.Time // firstAt is zero before the first instant
}

func (c *course) note(done float64, at time.Time) {
	if c.firstAt.IsZero() {
		c.first, c.firstAt = done, at
	}
	if c.lastAt.IsZero() || done > c.last { // not an evaluation behind the last one
		c.last, c.lastAt = done, at
	}
}

// seen returns the time between the two instants.
func (c *course) seen() time.Duration { return c.lastAt.Sub(c.firstAt) }

// at returns when that much was done, if it went on as fast as between the two instants.
func (c *course) at(done float64) time.Time {
	share := (done - c.first) / (c.last - c.first)
	return c.firstAt.Add(time.Duration(float64(c.seen()) * share))
}

// begin returns when the epoch began; zero if too little was seen.
func (c *course) begin() time.Time {
	seen := c.last - c.first
	if c.firstAt.IsZero() || seen <= 0 || c.first > seen {
		return time.Time{}
	}
	return c.at(0)
}

// goesOn reports whether a batch goes on with the first pass, which is not over held-out data by a heading.
func (p *pass) goesOn(batch *field) bool {
	return p.isSet && p.section < scopeTest && !p.isOver && p.name == batch.name.hash && p.batches == batch.total &&
		batch.value > p.last
}

// reading is the last value of a metric in a block.
type reading struct {
	name  name
	scope scope
	label string
	value float64
	unit  unit
	level level
	seen  int    // how often the block has it
	line  uint64 // words and whole numbers of its first line

	isOfNumber bool // it stands beside the number of the epoch, so that other lines have no better value
	isAlike    bool // all its lines have the same words and whole numbers
	isPast     bool // one of a part of the epoch came later, so that it may be of the epoch before
}

// key returns a hash of the name and the data.
func (x *reading) key() uint64 { return x.name.hash + uint64(x.scope) }

// level is the part of an epoch that a value is about.
type level uint8

const (
	ofEpoch     level = iota
	ofLastBatch       // on the line of the last batch, so that it may be a mean or not
	ofBatch
)

// levelOf returns the level of a field in a line that shows a progress. A mean over the batches so
// far is one over the epoch at the last batch.
func levelOf(f *field, p progress) level {
	switch {
	case f.name.counter == countsEpochs: // train_loss_epoch
		return ofEpoch
	case p == partial, f.name.counter == countsInner:
		return ofBatch
	case p == complete && !f.hasMean && f.name.flags&flagMean == 0:
		return ofLastBatch
	}
	return ofEpoch
}

func newBlock() *block { return &block{templates: map[uint64]int{}} }

// isHeading reports whether nothing but counts and settings was printed about the epoch, when it began.
func (b *block) isHeading() bool {
	return len(b.readings) == 0 && b.pass.batches == 0 && !b.hasEnd && !b.isLate
}

// addLine takes a line. Values of a batch do not replace those of an epoch.
func (b *block) addLine(l *line, section scope, p progress, hasNumber bool, at time.Time) {
	if b.begin.IsZero() {
		b.begin = at
	}
	if b.lines++; p != noProgress && !b.hasBatches {
		b.leaveEvaluated()
	}
	if len(b.templates) < maxTemplates || b.templates[l.template] > 0 {
		b.templates[l.template]++
	}
	b.hasEnd = b.hasEnd || l.flags&flagEnd != 0
	hasContent, results := p != noProgress, 0
	for i := range l.fields {
		f := &l.fields[i]
		if !isReading(f) {
			b.hasOther = b.hasOther || f.name.flags == 0 && f.name.counter == countsNothing && !f.isWhole
			continue
		}
		b.hasOther = b.hasOther || f.name.unknown > 0 && (f.name.kind == kindDistance || f.name.kind == kindLoss)
		hasContent = hasContent || f.name.kind != kindNone || f.unit != unitTime
		s := f.name.scope
		if s == scopeNone {
			s = section
		}
		if f.name.kind == kindTime && (s >= scopeTest || p != noProgress) {
			continue // the duration of a validation or of a batch
		}
		if isResult(f) {
			b.isHeldOut = s >= scopeTest && (b.isHeldOut || !b.hasResults)
			isOther := f.name.kind == kindOther && f.name.flags&flagWeak == 0
			isScore := isOther || f.name.kind == kindLoss || f.name.kind == kindDistance || s != scopeNone
			b.hasResults, b.hasScore = true, b.hasScore || isScore
		}
		b.set(f, s, levelOf(f, p), hasNumber, l)
		results += boolInt(isResult(f) && (s == scopeTrain || s == scopeNone && p != noProgress))
	}
	b.hasBatches = b.hasBatches || p != noProgress
	b.hasTraining = b.hasTraining || results > 0
	if !b.hasContent || hasContent && (!b.isRow || p != noProgress || metricsOf(l) > 0) {
		b.end = at
	}
	if hasContent {
		b.lastLine, b.hasContent = l.template, true
	}
}

// leaveEvaluated marks results on held-out data before the first batch as those of the epoch before.
func (b *block) leaveEvaluated() {
	for i := range b.readings {
		x := &b.readings[i]
		x.isPast = x.isPast || x.scope >= scopeTest && x.level == ofEpoch
	}
}

// isReading reports whether a field is a result or a duration of the epoch.
func isReading(f *field) bool {
	n := &f.name
	const no = flagExcluded | flagConfig | flagPart
	switch {
	case n.flags&no != 0,
		n.flags&flagCost != 0 && n.kind == kindLoss && (n.counter > 0 || n.unknown > 0 || n.scope > 0), // a time
		n.flags&flagEdits != 0 && f.value == 0,
		n.flags&flagSetting != 0 && n.kind != kindLoss, f.total > 0, f.unit == unitPer,
		math.IsInf(f.value, 0), math.IsInf(f.mean, 0):
		return false
	}
	if n.kind == kindNone {
		isNumber := !f.isWhole && (f.unit == unitNone || f.unit == unitPercent)
		return f.unit == unitTime || n.isScope() && n.end > 0 && isNumber
	}
	if n.kind == kindTime {
		return f.unit == unitTime || f.unit == unitNone
	}
	return f.unit == unitNone || f.unit == unitPercent && n.kind != kindLoss
}

// isResult reports whether a field is a result of the epoch.
func isResult(f *field) bool {
	return isReading(f) && f.name.kind != kindTime && f.unit != unitTime && !isBareError(&f.name)
}

// isBareError reports whether a name is that of an error, which may be any number without the name of its data,
// or of a cost.
func isBareError(n *name) bool {
	isBare := n.scope == scopeNone || n.unknown > 0
	return n.flags&flagCost != 0 || n.kind == kindRate && n.flags&flagWeak != 0 && isBare
}

// set keeps the value of a field of a line.
func (b *block) set(f *field, s scope, at level, hasNumber bool, l *line) {
	value := f.value
	if f.hasMean {
		value = f.mean
	}
	kind := f.name.kind
	if kind == kindNone {
		kind = kindUnnamed
		if f.unit == unitTime {
			kind = kindTime
		}
	}
	for i := range b.readings {
		r := &b.readings[i]
		if r.name.hash == f.name.hash && r.scope == s && r.name.kind == kind {
			r.seen++
			r.isAlike = r.isAlike && r.line == l.template+l.counts
			if r.isOfNumber && r.level == ofEpoch && !hasNumber {
				return
			}
			if r.isPast = at > r.level; !r.isPast {
				r.value, r.unit, r.level = value, f.unit, at
			}
			return
		}
	}
	if len(b.readings) >= maxReadings {
		return
	}
	n := f.name
	n.kind = kind
	label := ""
	if n.end > n.start && n.end <= len(l.text) {
		label = string(l.text[n.start:min(n.end, n.start+maxLabelSize)])
	}
	b.readings = append(b.readings, reading{name: n, scope: s, label: label, value: value, unit: f.unit, level: at,
		seen: 1, line: l.template + l.counts, isOfNumber: hasNumber, isAlike: true})
}

// isEvaluated reports whether a block has results of a training and of held-out data.
func (b *block) isEvaluated() bool {
	isHeldOut := func(r reading) bool { return r.scope >= scopeTest && r.name.kind != kindTime }
	return slices.ContainsFunc(b.readings, isHeldOut) && b.hasResults && !b.isHeldOut &&
		b.lastValue == float64(b.number)
}

// merge adds the block that was read before the line with the number of the epoch.
func (b *block) merge(before *block) {
	b.begin = before.begin
	b.readings, b.templates = before.readings, before.templates
	b.lines, b.hasContent, b.hasBatches, b.pass = before.lines, before.hasContent, before.hasBatches, before.pass
	b.hasResults, b.hasScore, b.hasTraining = before.hasResults, before.hasScore, before.hasTraining
}

// metricsOf counts the metrics of a line.
func metricsOf(l *line) int {
	n := 0
	for i := range l.fields {
		n += boolInt(isResult(&l.fields[i]))
	}
	return n
}

// has reports whether a line has a result whose name passes a test.
func (l *line) has(test func(*name) bool) bool {
	return slices.ContainsFunc(l.fields, func(f field) bool { return isResult(&f) && test(&f.name) })
}

// Tests of names: results of a training, as far as the name tells, of held-out data, and losses and accuracies.
func mayTrain(n *name) bool       { return n.scope < scopeTest }
func isHeldOut(n *name) bool      { return n.scope >= scopeTest }
func isTrainingLoss(n *name) bool { return n.scope < scopeTest && n.kind == kindLoss }
func isMain(n *name) bool         { return n.kind.isShare() || n.kind == kindLoss }
