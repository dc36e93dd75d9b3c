package output

import (
	"bytes"
	"regexp"
	"unicode/utf8"
)

// word reads a word at i. Parts that are joined by a sign, or that begin with a capital, are looked
// up one by one if the whole is unknown.
func (s *scanner) word(i int) int {
	end := s.wordEnd(i)
	if end+1 < len(s.text) && s.text[end] == '.' && isDigit(s.text[end-1]) && isDigit(s.text[end+1]) {
		t := bytes.TrimRight(s.text[i:end], "0123456789")
		if w := vocabulary[hashOf(t)]; w != nil && w.kind != kindNone {
			end = i + len(t) // loss0.5
		}
	}
	if s.hasColon {
		if end+1 < len(s.text) && s.text[end] == '(' && isDigit(s.text[end+1]) {
			return end + 1 // loss: tensor(0.5)
		}
		s.breakName()
	}
	s.isLocation = false
	if s.name.isEmpty() {
		s.name.start = i
	}
	s.name.end = end
	s.words++
	switch {
	case end-i > maxWordSize:
		s.name.unknown++
		s.name.hash = combine(s.name.hash, 1)
	case !s.lookUp(s.text[i:end], false):
		s.parts(i, end)
	}
	if s.isLevel {
		s.isLevel = false
		if after := end + len(logger.Find(s.text[end:])); after < len(s.text) && s.text[after] == ':' {
			return after
		}
	}
	return end
}

// logger matches the name of a logger behind its level, as in "INFO:train:Epoch 1".
var logger = regexp.MustCompile(`^:[^: ]+`)

// wordEnd returns the end of the word at i. A sign belongs to a word if a letter follows it, and "@"
// and "-" also before a digit, as in mAP@0.5 and mAP50-95.
func (s *scanner) wordEnd(i int) int {
	t := s.text
	hasAt, hasPoint := false, false
	for i < len(t) {
		c := t[i]
		switch {
		case isDigit(c) && t[i-1] >= utf8.RuneSelf: // 第1轮 has no blanks
			return i
		case isLetter(c) || isDigit(c) || c == '_':
			i++
			continue
		case c >= utf8.RuneSelf:
			if size, ok := decodeLetter(t[i:]); ok {
				i += size
				continue
			}
			return i
		case i+1 >= len(t):
			return i
		case c == '@' && t[i+1] != '[':
			hasAt = true
		case hasAt && (c == '.' || c == ':' && hasPoint) && (isDigit(t[i+1]) || t[i+1] == '.'):
			hasPoint = true
		case (c == '-' || c == '/' || c == '.' || c == '\'') && isLetter(t[i+1]):
		case c == '-' && isDigit(t[i+1]) && isDigit(t[i-1]), isTop(t, i):
		default:
			return i
		}
		i++
	}
	return i
}

// isTop reports whether the sign at i is that of top-1 or top-5.
func isTop(t []byte, i int) bool {
	return t[i] == '-' && i+1 < len(t) && isDigit(t[i+1]) && bytes.HasSuffix(t[:i], []byte("top"))
}

// parts looks up the parts of text[i:end].
func (s *scanner) parts(i, end int) {
	s.isPart = true
	defer func() { s.isPart = false }()
	begin := i
	for j := i; j < end; j++ {
		c := s.text[j]
		isSeparator := c == '_' || c == '-' && !isTop(s.text, j) || c == '/' || c == '.' || c == '\'' || c == ':'
		isHump := j > begin && c >= 'A' && c <= 'Z' && (s.text[j-1] < 'A' || s.text[j-1] > 'Z') // SmoothL1Loss
		if isSeparator || isHump {
			s.part(begin, j, end)
			begin = j + boolInt(isSeparator)
		}
	}
	s.part(begin, end, end)
}

// part looks up a part of a word that ends at wordEnd.
func (s *scanner) part(begin, end, wordEnd int) {
	t := s.text[begin:end]
	s.isExtension = end == wordEnd && s.text[max(0, begin-1)] == '.'
	digits := len(t)
	for digits > 0 && isDigit(t[digits-1]) {
		digits--
	}
	switch {
	case len(t) == 0:
	case digits == 0:
		s.digits(t, end == wordEnd)
	case s.lookUp(t, digits == len(t)):
	case digits < len(t):
		s.lookUp(t[:digits], true)
		s.digits(t[digits:], end == wordEnd)
	case t[0] >= utf8.RuneSelf:
		s.unspaced(t)
	}
}

// digits takes the number at the end of a word, which counts in epoch_3 and rank0, but not in
// test_epoch_3.
func (s *scanner) digits(t []byte, isLast bool) {
	s.name.hash = combine(s.name.hash, hashOf(t))
	if c := s.name.counter; isLast && len(t) < 9 && s.name.scope == scopeNone && (c == countsEpochs ||
		c == countsSource) {
		s.emit(field{value: parseNumber(t), isWhole: true})
	}
}

// unspaced finds known words in a text of a language that is written without spaces.
func (s *scanner) unspaced(t []byte) {
	for i := 0; i < len(t); {
		_, size := utf8.DecodeRune(t[i:])
		length := size
		for j, runes := i, 0; j < len(t) && runes < 4; runes++ {
			_, n := utf8.DecodeRune(t[j:])
			j += n
			if vocabulary[hashOf(t[i:j])] != nil {
				length = j - i
			}
		}
		s.lookUp(t[i:i+length], false)
		i += length
	}
}

// lookUp adds a word to the name. It reports whether the vocabulary has it; an unknown word is added
// only if isFinal.
func (s *scanner) lookUp(t []byte, isFinal bool) bool {
	hash := hashOf(t)
	w := vocabulary[hash]
	if w != nil && (*w == (word{seconds: w.seconds}) || w.flags == flagBytes && s.name.kind == kindNone) {
		w = nil // only a unit: the D of "D loss" is no day, and that of model B no byte
	}
	if w == nil && !isFinal {
		return false
	}
	s.name.hash = combine(s.name.hash, hash)
	s.template = combine(s.template, hash)
	if w == nil {
		if k := s.name.kind; s.isPart && k != kindNone && k != kindTime && len(t) > 1 && secondsOf(string(t)) > 0 {
			s.name.flags |= flagPart // accuracy_ms
		}
		s.name.unknown++
		return false
	}
	s.name.add(w)
	if s.isPart && s.name.kind == kindLoss && w.flags&flagPart != 0 { // loss/policy is one of several
		s.name.unknown++
	}
	s.name.endsApart = w.scope != scopeNone && !s.isPart
	s.name.isApart = s.name.isApart || s.name.endsApart
	isWord := w.flags == flagFile|flagExtension && !(s.isPart && s.isExtension) // keras, not a.keras
	if w.flags&flagFile == 0 || !isWord && !s.line.has(isMain) {                // but not in "loss: 0.5, saved a.ckpt"
		s.flags |= w.flags
	}
	s.known += boolInt(w.kind != kindNone && w.kind != kindTime || w.counter >= countsRounds)
	if w.flags&flagLevel != 0 && !s.isPart { // validation/main/loss has a level in its name
		if s.name = (name{}); w.flags == flagLevel {
			s.line.scope, s.isLevel = scopeNone, true // a logger may be called train
		}
	}
	if w.flags&flagLocation != 0 { // train.py:800 has neither a scope nor a number
		s.name, s.isLocation = name{}, true
	}
	return true
}

// add adds the meaning of a word to a name.
func (n *name) add(w *word) {
	if w.kind != kindNone {
		n.flags &^= flagSetting // words took
	}
	switch {
	case w.kind == kindNone, n.kind == kindTime && w.flags&flagWeak != 0: // clock error
	case n.kind == kindLoss && w.kind != kindTime && w.kind != kindLoss: // loss_iou is a loss
		n.unknown++
	case n.kind == kindDistance && w.kind == kindRate, n.kind == kindRate && w.kind == kindAccuracy: // err-top1
	case w.kind == kindLoss && n.kind != kindNone && n.kind != kindLoss:
		n.unknown++
		n.kind = kindLoss
	default:
		n.kind = w.kind
	}
	if w.scope != scopeNone && (n.scope == scopeNone || n.scope >= scopeTest && w.scope >= scopeTest) {
		n.scope = w.scope // the first one of train/val loss 0.5/0.6
	}
	if w.counter != countsNothing {
		n.counter = w.counter
		n.flags &^= flagSetting // learning iteration
	}
	if n.counter == countsEpochs && w.flags&flagEnd != 0 {
		n.flags &^= flagConfig // epochs done
	}
	if n.kind == kindNone || n.kind == kindTime || w.counter != countsNothing {
		n.flags |= w.flags
	} else {
		n.flags |= w.flags &^ flagPart // loss per sample
	}
}
