package output

import "regexp"

// suggestion is a line with a number that may count epochs, and the course of the numbers with its name.
type suggestion struct {
	text, pattern string
	name          uint64
	rank          int
	rises         bool // the pattern has read a higher number in another line
	last, most    float64
}

// note keeps the line with the strongest hint of an epoch, and follows its number.
func (s *suggestion) note(l *line, metrics int) {
	for i := range l.fields {
		f := &l.fields[i]
		rank := int(f.name.counter)*2 + boolInt(f.total > 0) + boolInt(metrics > 0)
		isNamed := f.name.end > f.name.start && f.name.end <= len(l.text)
		switch {
		case f.name.counter < countsInner || !f.isWhole || !isNamed || len(l.text) > maxExcerptBytes:
		case rank > s.rank:
			*s = suggestion{string(l.text), patternOf(l, i), f.name.hash, rank, false, f.value, f.value}
		case f.name.hash == s.name:
			if f.value > s.last && !s.rises {
				pattern, err := regexp.Compile(s.pattern) // names may be no valid UTF-8
				if s.rises = err == nil && reads(pattern, l.text, f.value); !s.rises {
					s.name = 0 // a pattern that does not read this line is not shown
				}
			}
			s.last, s.most = f.value, max(f.value, s.most)
		}
	}
}

// reads reports whether a pattern reads the number of an epoch from a line.
func reads(pattern *regexp.Regexp, line []byte, number float64) bool {
	found := pattern.FindSubmatch(line)
	return found != nil && parseNumber(found[1]) == number
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
