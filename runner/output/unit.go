package output

import (
	"bytes"
	"unicode/utf8"
)

// readUnit sets the unit of a field that ends at end, and returns the end of the unit.
func (s *scanner) readUnit(f *field, end int) int {
	t := s.text
	at := end
	for at < len(t) && t[at] == ' ' && at < end+2 {
		at++
	}
	if at < len(t) && t[at] == '%' {
		f.unit = unitPercent
		return at + 1
	}
	after := at
	for after < len(t) {
		size, ok := decodeLetter(t[after:])
		if !ok && !isLetter(t[after]) && !(t[after] == '/' && after > at) {
			break
		}
		after += size
	}
	if after == at || after-at > 16 {
		return end
	}
	return s.setUnit(f, end, at, after)
}

// setUnit sets the unit text[at:after].
func (s *scanner) setUnit(f *field, end, at, after int) int {
	t := s.text
	hash := hashOf(t[at:after])
	w := vocabulary[hash]
	for end := after; w == nil && t[at] >= utf8.RuneSelf && end > at; { // 第1轮训练 has no blanks
		_, size := utf8.DecodeLastRune(t[at:end])
		if end -= size; vocabulary[hashOf(t[at:end])] != nil {
			hash, after = hashOf(t[at:end]), end
			w = vocabulary[hash]
		}
	}
	isFollowed := after < len(t) && (t[after] == '_' || t[after] == '(' || t[after] == '=')
	isSymbol := at > end && after == at+1 && (isFollowed || t[at] == 'd' || t[at] < 'a') // G(z): 0.5 D(x): 0.4
	if w != nil && w.seconds > 0 && !isSymbol {
		f.value, f.unit, f.isWhole = f.value*w.seconds, unitTime, false
		if rest := skipBlanks(t, after); rest+1 < len(t) && t[rest] == '/' {
			f.unit = unitPer // 3.6 s / it
		}
		return after
	}
	if w != nil && w.counter == countsInner && f.total > 0 && s.name.counter == countsNothing &&
		t[after-1]|0x20 == 's' {
		s.name.counter = countsInner // 3/4 files
	}
	isCount := w != nil && w.counter == countsEpochs && w.flags == 0 && s.name.kind == kindNone
	switch {
	case isCount && (at == end || t[at] >= utf8.RuneSelf): // 1epoch, 第 1 轮
		s.name.counter, s.name.hash = countsEpochs, hash
		s.template = combine(s.template, hash)
		return after
	case at > end && w != nil && w.flags&flagBytes != 0:
		f.unit = unitOther
	case at > end:
		return end
	case bytes.IndexByte(t[at:after], '/') >= 0:
		f.unit = unitPer
	default:
		f.unit = unitOther
	}
	s.template = combine(s.template, hash)
	return after
}
