package output

import "time"

// recogniser finds the epochs in the output of a training program. It is not safe for concurrent use.
type recogniser struct {
	requested int
	measured  int // epochs that have ended, see SetMeasured
	scanner   scanner
	table     table
	tracks    map[uint64]*track
	class     counter // that is followed; nothing before the first number
	followed  *track  // that opened the current block
	ranks     float64 // N of a column of ranks i/N; -1: ranks as in "0:"; 0: none
	source    uint64  // the rank or process that is followed; 0: any
	isSourced bool    // the line has one
	section   scope   // of a heading

	current       *block          // of the epoch that runs; nil before the first number
	next          *block          // lines that belong to the next number
	held          []*block        // ended, and not yet confirmed
	closed        *block          // the last that ended
	first         int             // number of the first block
	known         map[uint64]bool // names of readings in the epochs that were reported
	familiar      map[uint64]int  // templates of their lines
	early         map[uint64]int  // templates with results that came before their number
	doubtful      map[uint64]int  // those of held-out results before the first number, of that epoch or of none
	isFooter      bool            // the number comes after the results
	barName       uint64          // of a bar that was drawn with nothing done
	barAt         time.Time       // when it was
	isBar         bool            // the counter is a bar, which moves when an epoch has ended
	isLagging     bool            // it moves before it shows the values of the epoch
	rises         int             // of the counter that is followed
	isConfirmed   bool
	stepsPerEpoch uint32    // of an output that counts steps alone
	beganAt       time.Time // when the command was started; zero: unknown
	startedAt     time.Time // when a heading said that the training starts; zero: none did
	headedAt      time.Time // when the last heading of an epoch came
	gap           float64   // from the last batch of an epoch to the heading of the next one, to its time before
	isAtEnd       bool      // the output has ended
	isTested      bool      // a heading said before the first number that models are tested, and no results followed
	aside         uint64    // template of the line in which the first number came again; 0: another one came since
	isOver        bool      // the count began again: another training, or checkpoints are evaluated
	file          uint64    // template of the last line about a file that came before the first number
	isExceeded    bool      // an epoch above the requested ones ended
	isShifted     bool      // the numbers were lowered by one when epoch 0 was found to be none
	closing       uint64    // template of the line that ends an epoch; 0: unknown
	lastClosing   uint64
	numberLine    uint64 // template of the last line with a number

	chooser
	lastNumber int // of the last epoch that was reported or waits
	events     []EpochReport
	at         time.Time // of the call
	readAt     time.Time // when the last line arrived
	suggests   suggestion
}

// maxHeld bounds the epochs that wait for confirmation. Rounds without a total are confirmed only at the end
// of the output.
const maxHeld = 1024

// newRecogniser returns a recogniser for a number of epochs; 0: unknown.
func newRecogniser(requested int) *recogniser {
	return &recogniser{
		requested: requested,
		tracks:    map[uint64]*track{},
		next:      newBlock(),
		known:     map[uint64]bool{},
		familiar:  map[uint64]int{},
	}
}

// restart returns a recogniser for a command that was restarted. It trusts the counter and the line
// that ends an epoch, as they were learnt.
func (r *recogniser) restart() *recogniser {
	next := newRecogniser(r.requested)
	next.chooser = r.chooser
	next.unnamed, next.falls = nil, 0
	if !r.isConfirmed {
		return next
	}
	next.isConfirmed, next.class, next.closing = true, r.class, r.closing
	next.tracks, next.isFooter, next.early, next.isBar = r.tracks, r.isFooter, r.early, r.isBar
	next.isLagging = r.isLagging
	next.source, next.ranks = r.source, r.ranks
	for _, t := range next.tracks {
		t.last = -1
	}
	return next
}

// line takes a line, and returns the epochs that it shows to have ended. They are valid until the
// next call.
func (r *recogniser) line(text []byte, at time.Time) []EpochReport {
	r.at, r.readAt, r.events = at, at, r.events[:0]
	if !r.isOver {
		r.read(text)
		r.publish()
	}
	return r.events
}

func (r *recogniser) read(text []byte) {
	l := r.scanner.scan(text)
	isRead := l.flags&flagFile != 0 && l.flags&flagSave == 0
	if isRead && !l.has(isTrainingLoss) {
		r.noteFile(l)
	}
	isTable := r.table.read(&r.scanner)
	if isTable && len(l.fields) == 0 {
		return
	}
	metrics := metricsOf(l)
	if l.flags&flagForeign != 0 && !l.has(isMain) || !r.isOurs(l) {
		return
	}
	for i := range l.fields {
		r.notePercent(&l.fields[i])
	}
	r.noteErrors(l)
	if !isTable {
		r.suggests.note(l, metrics)
	}
	s, hasNumber := r.find(l)
	if hasNumber && l.flags&flagForeign != 0 && !r.isAsked(s.field) {
		return // resumed at epoch 3
	}
	if hasNumber && metrics > 0 && (isRead || l.flags&flagFile != 0 && !l.has(mayTrain)) {
		return // a checkpoint is evaluated
	}
	if hasNumber && !r.advance(l, s, metrics) || r.aside != 0 {
		return
	}
	isStart := l.flags&flagStart != 0 || l.words == 1 && len(l.fields) == 0 && r.current == nil
	if isStart && l.flags&flagTests != 0 && l.scope == scopeTest && l.words <= maxHeading { // whose trainings are none
		r.drop()
		r.isOver = true
		return
	}
	if isStart && !hasNumber && metrics == 0 && l.scope != scopeNone {
		r.isTested = l.scope >= scopeTest && r.current == nil && len(l.fields) == 0
		if l.scope == scopeTrain {
			r.start()
		}
	}
	isHeading := metrics == 0 || l.fields[0].name.scope == l.scope && r.progressOf(l, nil) != noProgress
	if isHeading {
		r.noteSection(l)
	}
	r.take(l, s, hasNumber, metrics)
}

// noteFile takes a line about a file that is not written. If one came before the first number and comes again before
// the second one, without a training between, then checkpoints are evaluated.
func (r *recogniser) noteFile(l *line) {
	switch c := r.current; {
	case c == nil:
		r.file = l.template
	case r.file == l.template && !r.isConfirmed && !c.hasTraining:
		r.drop()
		r.isOver = true
	}
}

// isOurs reports whether a line belongs to the rank that is followed: the first one with an epoch, or rank 0 if it
// prints results of an evaluation.
func (r *recogniser) isOurs(l *line) bool {
	source, isFirst := r.sourceOf(l)
	r.isSourced = source != 0
	if source == 0 || source == r.source {
		return true
	}
	_, ok := r.find(l)
	isOnly := isFirst && !ok && !r.isConfirmed && l.has(isHeldOut) // rank 0 may evaluate alone
	if r.source == 0 && ok || isOnly {
		r.source = source
	}
	return r.source == 0 || r.source == source
}
