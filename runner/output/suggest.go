package output

import (
	"regexp"
	"strconv"
)

// suggestion is a line with a number that may count epochs, and the last lines, on which its pattern
// is tried.
type suggestion struct {
	text, pattern string
	rank          int
	recent        [64][]byte
	next          int
}

// note keeps the line with the strongest hint of an epoch.
func (s *suggestion) note(l *line, metrics int) {
	if len(l.text) > maxExcerptBytes || len(l.fields) == 0 {
		return
	}
	s.recent[s.next] = append(s.recent[s.next][:0], l.text...)
	s.next = (s.next + 1) % len(s.recent)
	for i := range l.fields {
		f := &l.fields[i]
		rank := int(f.name.counter)*2 + boolInt(f.total > 0) + boolInt(metrics > 0)
		isNamed := f.name.end > f.name.start && f.name.end <= len(l.text)
		if f.name.counter < countsInner || !f.isWhole || rank <= s.rank || !isNamed {
			continue
		}
		s.rank, s.text = rank, string(l.text)
		s.pattern = patternOf(l, i)
	}
}

// patternOf returns a pattern that reads the epoch from a field, and the first loss and accuracy
// behind it.
func patternOf(l *line, epoch int) string {
	nameAt := func(n *name) string { return regexp.QuoteMeta(string(l.text[n.start:n.end])) }
	text := nameAt(&l.fields[epoch].name) + `\D*(?P<epoch>\d+)`
	used := map[string]bool{}
	for i := epoch + 1; i < len(l.fields); i++ {
		f := &l.fields[i]
		group := ""
		switch {
		case !isReading(f) || f.name.end <= f.name.start || f.name.end > len(l.text):
		case f.name.kind == kindLoss:
			group = "loss"
		case f.name.kind.isShare() && f.name.kind != kindRate:
			group = "accuracy"
		}
		if group != "" && !used[group] {
			used[group] = true
			text += `.*?` + nameAt(&f.name) + `[^-+\d]*(?P<` + group + `>[-+\d.eE]+)`
		}
	}
	return text
}

// tried returns the line and its pattern if the pattern reads rising numbers of epochs in the last
// lines.
func (s *suggestion) tried(requested int) (text, pattern string) {
	expression, err := regexp.Compile(s.pattern)
	if err != nil || s.pattern == "" {
		return "", ""
	}
	rises, last := 0, -1
	for i := range s.recent {
		match := expression.FindSubmatch(s.recent[(s.next+i)%len(s.recent)])
		if match == nil {
			continue
		}
		n, err := strconv.Atoi(string(match[expression.SubexpIndex("epoch")]))
		if err != nil || requested > 0 && n > requested {
			return "", ""
		}
		if n > last {
			rises++
		}
		last = n
	}
	if rises < 2 {
		return "", ""
	}
	return s.text, s.pattern
}
