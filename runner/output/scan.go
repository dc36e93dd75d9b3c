package output

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Bounds of what is read of a line. More of it cannot be the report of an epoch.
const (
	maxFields   = 64
	maxWordSize = 48
)

// scan reads a line. The result is valid until the next call.
func (s *scanner) scan(text []byte) *line {
	if bytes.Contains(text, []byte("│")) { // a frame
		text = bytes.ReplaceAll(text, []byte("│"), []byte("|"))
	}
	*s = scanner{line: line{fields: s.fields[:0], text: text}}
	for i := 0; i < len(text); {
		i = s.next(i)
	}
	s.breakName()
	return &s.line
}

// next reads the token at i and returns where it ends.
func (s *scanner) next(i int) int {
	c := s.text[i]
	switch {
	case isLetter(c):
		return s.word(i)
	case isDigit(c), (c == '-' || c == '+' || c == '.') && s.isSign(i):
		return s.number(i)
	case c >= utf8.RuneSelf:
		if size, isLetter := decodeLetter(s.text[i:]); !isLetter {
			return i + size
		}
		return s.word(i)
	}
	if c == '?' && i > 0 && s.text[i-1] > ' ' && i+1 < len(s.text) && isLetter(s.text[i+1]) { // a query in an address
		for i < len(s.text) && s.text[i] != ' ' {
			i++
		}
		return i
	}
	s.punctuation(c, i)
	if c == '[' && i > 0 && s.text[i-1] == '@' {
		return s.qualifier(i)
	}
	return i + 1
}

// isSign reports whether a sign or a point at i begins a number.
func (s *scanner) isSign(i int) bool {
	t := s.text
	if i > 0 && (isLetter(t[i-1]) || isDigit(t[i-1])) || i+1 >= len(t) {
		return false
	}
	return isDigit(t[i+1]) || t[i] != '.' && t[i+1] == '.' && i+2 < len(t) && isDigit(t[i+2])
}

func (s *scanner) punctuation(c byte, i int) {
	switch c {
	case ':', '=':
		s.hasColon = !s.name.isEmpty()
	case '|':
		next := skipBlanks(s.text, i+1)
		if next == len(s.text) || !isDigit(s.text[next]) && s.text[next] != '-' {
			s.breakName() // but not in "| loss | 0.5 |"
		}
	case '\t':
		if !s.hasColon { // but not in "loss:\t0.5"
			s.breakName()
		}
	case ',':
		s.list()
		s.breakName()
	case ';', '{', '+': // 0.5*"loss" + 0.4
		s.breakName()
	case '-':
		isDash := i > 0 && (s.text[i-1] == ' ' || s.text[i-1] == '-') && i+1 < len(s.text) && s.text[i+1] == ' '
		isNamed := s.name.counter >= countsRounds || s.name.kind != kindNone
		if isDash && !(isNamed && i+2 < len(s.text) && isDigit(s.text[i+2])) {
			s.breakName() // but not in "EPOCH - 1"
		}
	case '.':
		s.dropFile(i)
	case '<': // mpirun --tag-output writes [job,rank]<stdout>
		if len(s.fields) == 2 && bytes.HasPrefix(s.text[i:], []byte("<std")) {
			s.fields[0].lead, s.fields[1].name.counter = 0, countsSource
		}
	case '[', '(':
		if i > 0 && isLetter(s.text[i-1]) && isNameList(s.text[i+1:]) {
			s.breakName()
		}
		s.isBracketed = s.name.isEmpty()
	case ']', ')':
		if s.isBracketed { // [train] loss=0.1 has a scope for all that follows
			s.list()
			s.isTraining = s.isTraining || s.name.isScope() && s.name.scope == scopeTrain
			s.breakName()
		}
		s.isBracketed = false
	}
}

// list notes a name without a number in a list of names.
func (s *scanner) list() {
	n := &s.name
	s.isListed = s.isListed || !s.hasColon && (n.kind != kindNone || n.counter >= countsRounds)
}

// dropFile removes the fields of a file's name, such as epoch=3-val_loss=0.5.ckpt, whose last point is at i.
func (s *scanner) dropFile(i int) {
	end := i + 1
	for end < len(s.text) && (isLetter(s.text[end]) || isDigit(s.text[end])) {
		end++
	}
	if w := vocabulary[hashOf(s.text[i+1:end])]; w == nil || w.flags&flagExtension == 0 {
		return
	}
	begin := bytes.LastIndexByte(s.text[:i], ' ')
	s.fields = slices.DeleteFunc(s.fields, func(f field) bool { return f.begin > begin })
}

// isNameList reports whether names with values stand behind a bracket, as in "Accuracy(count: 3)".
func isNameList(t []byte) bool {
	end := bytes.IndexAny(t[:min(len(t), maxWordSize)], ":=)]")
	return end >= 0 && (t[end] == ':' || t[end] == '=')
}

// qualifier skips "@[ IoU=0.50 | area=all ]", which is part of a name.
func (s *scanner) qualifier(i int) int {
	end := len(s.text)
	if n := bytes.IndexByte(s.text[i:], ']'); n >= 0 {
		end = i + n + 1
	}
	s.name.hash = combine(s.name.hash, hashOf(s.text[i:end]))
	return end
}
