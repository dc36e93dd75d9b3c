package output

import (
	"maps"
	"math"
)

// maxTracks bounds the counters that are watched.
const maxTracks = 32

// track is a counter that was seen: numbers with the same name and form.
type track struct {
	class        counter
	total        float64 // N of i/N; 0: none
	last         float64
	base         float64 // number of the first epoch, 0 or 1
	seen         int
	isFractional bool    // epoch 0.25
	begin        float64 // of the first epoch, if the number is fractional: 0, or 1
	isDead       bool    // it does not count epochs
}

// sighting is the number of an epoch in a line.
type sighting struct {
	track   *track
	field   *field
	number  int // from 1
	printed float64
}

// classOf returns what a field counts, given the number of epochs that was asked for.
func classOf(f *field, requested int) counter {
	n := &f.name
	if n.kind != kindNone || n.flags&(flagExcluded|flagSetting|flagPart) != 0 || f.value < 0 || f.isClock ||
		f.unit != unitNone {
		return countsNothing
	}
	isAsked := requested > 1 && f.isWhole && (f.total == float64(requested) ||
		f.total == float64(requested-1) && f.value < f.total+1)
	isConfig := n.flags&flagConfig != 0
	switch {
	case isStep(f, requested):
		return countsSteps
	case n.counter == countsEpochs && f.total > 0 && !isAsked && requested > 1:
		return countsPart
	case n.counter == countsEpochs && (!isConfig || f.total > 0 || !f.isWhole):
		return countsEpochs
	case n.counter == countsSource || n.counter == countsInner:
		return n.counter
	case isConfig || !f.isWhole:
		return countsNothing
	case n.counter == countsRounds && (f.total == 0 || isAsked):
		return countsRounds
	case n.counter == countsRounds || f.total > 0 && !isAsked:
		return countsInner
	case isAsked && f.total == float64(requested) && n.unknown == 0 && n.scope < scopeTest:
		return countsShare
	case f.lead != 0:
		return countsLead
	}
	return countsNothing
}

// isStep reports whether a field counts the steps of a training whose total is a multiple of the
// requested epochs. A bar may be of any part.
func isStep(f *field, requested int) bool {
	n := &f.name
	isNamed := n.counter == countsInner || n.counter == countsRounds
	return isNamed && !f.isBar && n.unknown == 0 && n.scope < scopeTest && n.flags == 0 && f.isWhole && requested > 1 &&
		f.total > float64(requested) && math.Mod(f.total, float64(requested)) == 0
}

// iterations is the hash of a name that counts batches behind the number of an epoch.
var iterations = hashOf([]byte("iterations"))

// find returns the best sighting of a line at or above a class.
func (r *recogniser) find(l *line) (sighting, bool) {
	var best sighting
	class := countsInner
	for i := range l.fields {
		f := &l.fields[i]
		c := classOf(f, r.requested)
		if len(l.fields) == 1 && f.name.hash == iterations && c == countsInner && f.total == 0 {
			c = countsRounds // in a block with a value per line
		}
		if c <= class || c < r.class {
			continue
		}
		if s, ok := r.sight(f, c); ok {
			best, class = s, c
		}
	}
	return best, best.track != nil
}

// sight returns the number of the epoch in a field, if it can be one.
func (r *recogniser) sight(f *field, class counter) (sighting, bool) {
	t := r.trackOf(f, class)
	if t == nil || t.isDead {
		return sighting{}, false
	}
	if b := r.current; class == countsEpochs && r.class == countsRounds && b != nil && !r.isAsked(f) &&
		(b.hasTotal && b.number < r.requested || b.number == 1 && (r.isSourced || r.followed.seen > 1)) {
		t.isDead = true // the epochs of each round
		return sighting{}, false
	}
	value := f.value
	if class == countsSteps {
		value = f.value * float64(r.requested) / f.total
		t.isFractional = true
		r.stepsPerEpoch = uint32(f.total) / uint32(r.requested)
	}
	if !f.isWhole {
		if t.seen == 1 && t.last == 1 && value > 1 && value < 1.3 {
			t.begin = 1 // 1.00, 1.05, ...
		}
		t.isFractional = true
		value -= t.begin
	}
	if r.requested > 0 && value > float64(r.requested)+1 || value > math.MaxInt32 {
		t.isDead = class != countsEpochs
		if class == r.class && t.isDead && !r.isConfirmed {
			r.drop()
		}
		return sighting{}, false
	}
	if f.isBar && f.value == 0 && r.current == nil && (r.barAt.IsZero() || r.barName != f.name.hash) {
		r.barName, r.barAt = f.name.hash, r.at
	}
	if f.isBar && (f.value == 0 || r.current != nil && !r.isBar) {
		return sighting{}, false
	}
	if value == 0 && f.isWhole && r.current != nil && r.isSetting() {
		t.base = 0
	}
	n := value - t.base + 1
	if t.isFractional {
		n = max(math.Ceil(value-1e-6), 1)
	}
	if n < 1 {
		return sighting{}, false
	}
	return sighting{t, f, int(n), value}, true
}

// trackOf returns the track of a field. A new one counts from 0 or 1, whichever agrees with the
// current epoch.
func (r *recogniser) trackOf(f *field, class counter) *track {
	key := f.name.hash*31 + uint64(boolInt(f.isBar))<<40 + uint64(class)*2 + uint64(f.lead)<<32
	if f.total > 0 {
		key += 1 + uint64(f.total)<<48
	}
	if t := r.tracks[key]; t != nil {
		return t
	}
	b := r.current
	isBefore := b != nil && !r.isConfirmed && !b.hasTraining && b.printed == 0 && b.hasTotal
	if isBefore && class == countsEpochs && r.isAsked(f) && f.value == 1 {
		r.countFromOne() // what was printed as 0/N came before the first epoch
	}
	if len(r.tracks) >= maxTracks {
		maps.DeleteFunc(r.tracks, func(_ uint64, t *track) bool { return t.seen < 2 && t != r.followed })
	}
	if len(r.tracks) >= maxTracks {
		return nil
	}
	t := &track{class: class, total: f.total, last: -1, base: 1}
	t.isDead = f.total > 0 && f.total == float64(r.requested-1) && f.value == 1 // no 0/2 of 3 before
	isBelow := f.total > 0 && f.total == float64(r.requested-1) && f.value > 1  // 3/3 of 4
	if (f.value == 0 && f.isWhole || isBelow) && !f.isBar {
		t.base = 0
	}
	r.tracks[key] = t
	return t
}

// progress is how far batches have come in the current epoch.
type progress uint8

const (
	noProgress progress = iota
	partial
	complete
)

// progressOf returns the progress that a line shows, apart from the number of the epoch.
func (r *recogniser) progressOf(l *line, number *field) progress {
	p, running := noProgress, 1
	if r.current != nil {
		running = r.current.number + 1
	}
	for i := range l.fields {
		f := &l.fields[i]
		isAgain := r.isAsked(f) && (number != nil && f.value == number.value || // 1/3 * Epoch 1
			number == nil && f.value == float64(running)) || // Subject 1/3
			r.current != nil && f.value == r.current.printed && f.total == float64(r.requested-1) // 0/2 of 3
		isOther := f.name.flags&(flagPart|flagExcluded) != 0 || f.name.kind != kindNone ||
			f.name.counter == countsEpochs
		if f == number || isAgain || isOther || r.isOfRank(f) {
			continue
		}
		// Counts of samples are excluded, which the report of an epoch has too.
		isBatch := f.name.flags&(flagConfig|flagTotal) == 0 && f.unit == unitNone &&
			(f.name.counter == countsRounds && f.isWhole || f.name.counter == countsInner && f.name.unknown == 0) &&
			!(l.has(isHeldOut) && l.has(mayTrain)) // the report of an epoch counts its batches
		switch {
		case f.isDone && f.value < 100:
			p = partial
		case f.total > 0 && f.isWhole && (f.value >= f.total || f.total >= 10 && f.value >= f.total-1):
			return complete
		case f.total > 0 && f.isWhole || isBatch:
			p = partial
		}
	}
	return p
}

// batchOf returns the number of the batch in a line, apart from that of the epoch; nil without one.
func (r *recogniser) batchOf(l *line, number *field) *field {
	for i := range l.fields {
		f := &l.fields[i]
		isBatch := f.name.counter != countsEpochs && f.total > 0 && !r.isOfRank(f) ||
			f.name.counter == countsInner && f.name.unknown == 0 && f.name.flags&flagTotal == 0
		if f != number && f.isWhole && isBatch && f.name.kind == kindNone && f.name.flags&flagExcluded == 0 {
			return f
		}
	}
	return nil
}

// sourceOf returns the rank or process that printed the line, and whether it is number 0; 0 if it is unknown.
func (r *recogniser) sourceOf(l *line) (source uint64, isFirst bool) {
	for i := range l.fields {
		f := &l.fields[i]
		switch {
		case f.name.counter == countsSource && f.name.kind == kindNone && f.total <= maxRanks:
			return f.name.hash ^ uint64(f.value+1)*hashFactor, f.value == 0
		case i == 0 && r.isRank(l, f):
			return uint64(f.value+1) * hashFactor, f.value == 0
		case !f.name.isEmpty():
			return 0, false
		}
	}
	return 0, false
}

// maxRanks is the most ranks of a column i/N without a name. Larger totals are of batches.
const maxRanks = 16

// isRank reports whether the first field of a line is a rank: i/N with i below N, or "0:", before the number
// of the epoch. Once it was seen, lines without such a number have ranks too.
func (r *recogniser) isRank(l *line, f *field) bool {
	form := f.total
	if f.lead == ':' {
		form = -1
	}
	if !f.name.isEmpty() || f.isBar || form >= 0 && f.value >= f.total || f.total > maxRanks {
		return false
	}
	for i := range l.fields {
		x := &l.fields[i]
		isAgain := int(f.total) == r.requested && x.value == f.value // 1/3 * Epoch 1
		if x.name.counter == countsEpochs && x.name.kind == kindNone && !isAgain {
			r.ranks = form
		}
	}
	return r.ranks == form
}

// isOfRank reports whether a field is the rank in a column of ranks.
func (r *recogniser) isOfRank(f *field) bool {
	return r.ranks > 0 && f.total == r.ranks && f.name.isEmpty()
}

// countFromOne drops what was printed as epoch 0.
func (r *recogniser) countFromOne() {
	r.beginAtOne()
	r.drop()
	r.next = newBlock()
}

// drop forgets the epochs that are not confirmed.
func (r *recogniser) drop() {
	if r.current != nil {
		r.next, r.current = r.current, nil
	}
	r.rises = 0
	clear(r.known)
	clear(r.familiar)
	r.held, r.class, r.closing, r.lastClosing = nil, countsNothing, 0, 0
}

// beginAtOne makes 1 the lowest number of the first epoch of all counters.
func (r *recogniser) beginAtOne() {
	for _, t := range r.tracks {
		t.base = max(t.base, 1)
	}
}

// isSetting reports whether the first number that was read may be a setting, such as epoch_num: 2.
// It is one if a lower number follows.
func (r *recogniser) isSetting() bool {
	return !r.isConfirmed && len(r.held) == 0 && !r.current.hasResults
}

// isAsked reports whether a number was printed as i/N with N epochs asked for.
func (r *recogniser) isAsked(f *field) bool {
	return f.total > 0 && f.total == float64(r.requested)
}
