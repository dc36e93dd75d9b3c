package output

// name is what stands before a number, as far as the vocabulary knows it.
type name struct {
	kind       kind
	scope      scope
	counter    counter
	flags      flag
	hash       uint64
	unknown    int  // words without an entry
	start, end int  // in the line
	isApart    bool // the scope is a word of its own, and holds for the names behind it
	endsApart  bool // it is the last word
}

func (n *name) isEmpty() bool { return n.hash == 0 }

// isScope reports whether the name is only that of a data set.
func (n *name) isScope() bool {
	return n.scope != scopeNone && n.kind == kindNone && n.unknown == 0 && n.counter == countsNothing
}

// field is a number of a line.
type field struct {
	name    name
	value   float64
	total   float64 // N of "i/N"; 0: none
	mean    float64 // running mean in parentheses
	unit    unit
	begin   int  // in the line
	lead    byte // form of a number with which the line begins, see leadOf; 0: it does not
	isWhole bool
	isClock bool
	isBar   bool // it follows a bar, and counts what is done
	isDone  bool // a percentage in brackets: the part of the epoch that is done
	hasMean bool
}

// line is what a line contains.
type line struct {
	fields   []field
	text     []byte
	template uint64 // of the words
	counts   uint64 // of the whole numbers that are no results
	scope    scope  // named before the fields that have none of their own
	flags    flag   // of all words
	words    int
	known    int // words that name a metric or count epochs
}

// scanner reads lines. Its memory is used again for each line.
type scanner struct {
	line
	name        name
	hasColon    bool // a colon or an equals sign follows the name
	isBracketed bool // a bracket was opened without a name before it
	indirect    name // the name in "key": NAME, "value": NUMBER
	isIndirect  bool // the next word belongs to indirect
	context     kind // of a heading in the line: "Loss: train 0.5, val 0.6"
	isTraining  bool // the line is about the training by a word in brackets
	isExcluded  bool // the line is about something else, such as "best:"
	isLocation  bool // the number behind a colon is that of a line in a source file
	isPair      bool // the next number is that of a batch, behind the one of the epoch
	isPart      bool // the word that is looked up is part of a longer one
	isExtension bool // it is the end of it, behind a point
	isLevel     bool // the word was the level of a logger
	isBar       bool // a bar was read, and no number behind it
	isListed    bool // names without numbers stand in a list, whose numbers follow
	pending     kind // of a name whose number was only a count: accuracy on 1000 images: 55%
	durationEnd int  // where a duration that may be continued ended; 0: nowhere
}

// breakName drops a name without a number. Its scope holds for the rest of the line.
func (s *scanner) breakName() {
	if s.name.scope != scopeNone {
		s.line.scope = s.name.scope
	}
	if s.hasColon && s.name.kind != kindNone && s.name.kind != kindTime {
		s.context = s.name.kind
	}
	s.isExcluded = s.isExcluded || s.name.flags&flagExcluded != 0
	if s.isIndirect {
		s.indirect, s.isIndirect = s.name, false
	} else if s.name.flags&flagIndirect != 0 && s.hasColon {
		s.isIndirect = true
	}
	s.name, s.hasColon = name{}, false
}

// count adds a whole number to those that tell lines with the same words apart.
func (s *scanner) count(v float64) { s.counts = combine(s.counts, uint64(v)) }

// emit adds a number with the current name, which it uses up.
func (s *scanner) emit(f field) {
	f.name = s.name
	if f.isWhole && f.name.kind == kindNone {
		s.count(f.value)
	}
	if !s.indirect.isEmpty() && s.name.flags&flagNeutral != 0 && s.name.kind == kindNone {
		f.name, s.indirect = s.indirect, name{}
	}
	if f.name.scope == scopeNone {
		f.name.scope = s.line.scope
	} else if isCount := f.name.counter == countsInner && s.text[f.name.end-1]|0x20 == 's'; // Val steps: 20
	f.total > 0 || f.name.counter == countsEpochs || f.name.isApart && !isCount {
		s.line.scope = f.name.scope // Test: [1/40] loss: 0.1, and train loss 0.1 acc 0.9
	}
	if f.name.flags&flagWeak != 0 && f.name.kind == kindNone && f.name.scope >= scopeTest {
		f.name.kind = kindOther // of any metric
	}
	if f.name.endsApart && f.name.kind != kindTime && f.name.kind != kindNone { // acc train: 0.9  eval: 0.8
		s.context = f.name.kind
	}
	if s.context != kindNone && f.name.isScope() && !f.isWhole {
		f.name.kind = s.context
	}
	switch {
	case f.isWhole && f.value > 100 && f.name.kind.isShare():
		s.pending = f.name.kind
	case s.pending != kindNone && f.unit == unitPercent && f.name.kind == kindNone:
		f.name.kind, f.name.counter, s.pending = s.pending, countsNothing, kindNone
	}
	if s.isExcluded || s.isTraining && f.name.scope >= scopeTest { // [training] EvalError = 0.1
		f.name.flags |= flagExcluded
	}
	isBest := f.name.flags&flagExcluded != 0 && f.name.counter != countsNothing && s.name.scope >= scopeTest
	s.isExcluded = s.isExcluded || isBest || f.isWhole && f.name.flags&flagClass != 0
	if f.name.kind == kindLoss && f.name.flags&flagClass != 0 { // class loss 0.5, box loss 0.4
		f.name.flags, f.name.unknown, f.name.counter = f.name.flags&^flagExcluded, f.name.unknown+1, countsNothing
	}
	if len(s.fields) < maxFields {
		s.fields = append(s.fields, f)
	}
	s.name, s.hasColon, s.isBracketed, s.isListed = name{}, false, false, false
}
