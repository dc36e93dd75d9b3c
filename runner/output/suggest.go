package output

import (
	"regexp"
	"strings"
)

// candidates collects the lines of an output in which no epoch is recognized, by their shape.
type candidates struct{ byShape map[string]*candidate }

// candidate is a line that was printed several times with other numbers.
type candidate struct {
	line   string    // first one
	order  int       // of its first occurrence
	count  int       // occurrences
	values []float64 // of the last occurrence
	steps  []int     // by number: how often it increased by 1
}

// maxCandidates bounds the shapes that are compared.
const maxCandidates = 64

func (c *candidates) add(line string) {
	line, _ = withoutPrefix(line)
	tokens := scan(line)
	if len(tokens) == 0 {
		return
	}
	shape := shapeOf(line)
	found := c.byShape[shape]
	if found == nil {
		if len(c.byShape) >= maxCandidates {
			return
		}
		if c.byShape == nil {
			c.byShape = map[string]*candidate{}
		}
		found = &candidate{line: line, order: len(c.byShape), steps: make([]int, len(tokens))}
		c.byShape[shape] = found
	}
	found.count++
	values := make([]float64, len(tokens))
	for i, t := range tokens {
		values[i] = t.value
		if i < len(found.values) && i < len(found.steps) && t.isWhole && t.value == found.values[i]+1 {
			found.steps[i]++
		}
	}
	found.values = values
}

// best returns the candidate with a number that increases by 1 in most of its lines, the index of
// that number, and false if there is none.
func (c *candidates) best() (best *candidate, epoch int, ok bool) {
	for _, found := range c.byShape {
		for i, steps := range found.steps {
			if 2*steps < found.count-1 || steps == 0 {
				continue
			}
			isBetter := best == nil || steps > best.steps[epoch] ||
				steps == best.steps[epoch] && (found.order < best.order || found == best && i < epoch)
			if isBetter {
				best, epoch, ok = found, i, true
			}
		}
	}
	return best, epoch, ok
}

// Suggest returns the line of the output that most resembles an epoch, and a pattern for
// FormatPattern that reads it. The pattern is empty if no number counts lines.
func (p *Parser) Suggest() (line, pattern string) {
	best, epoch, ok := p.candidates.best()
	if !ok {
		return p.lastLine, ""
	}
	return best.line, patternOf(best.line, epoch)
}

// patternOf returns a pattern that reads a line by the text before its numbers.
func patternOf(line string, epoch int) string {
	tokens := scan(line)
	var b strings.Builder
	used := map[string]bool{}
	for i, t := range tokens {
		name := groupOf(kindOf(t.words))
		if i == epoch {
			name = "epoch"
		}
		if name == "" || used[name] || i < epoch {
			continue
		}
		used[name] = true
		switch {
		case b.Len() > 0:
			b.WriteString(".*?")
		case t.gap == "":
			b.WriteString(`(?:^|\s)`) // a prefix may precede it
		}
		b.WriteString(gapPattern(t.gap))
		number := `[-+\d.eE]+`
		if i == epoch {
			number = `\d+`
		}
		b.WriteString("(?P<" + name + ">" + number + ")")
		if t.gap == "" && i+1 < len(tokens) && groupOf(kindOf(tokens[i+1].words)) == "" {
			b.WriteString(gapPattern(tokens[i+1].gap)) // a bare number is too little
		}
	}
	return b.String()
}

// groupOf returns the group of a pattern for a metric, or an empty name.
func groupOf(kind metricKind) string {
	switch kind {
	case metricAccuracy, metricF1, metricAUC, metricPrecision, metricOverlap, metricR2:
		return "accuracy"
	case metricLoss:
		return "loss"
	case metricDuration:
		return "seconds"
	}
	return ""
}

var blank = regexp.MustCompile(`\s+`)

// maxGapBytes is the length of the text before a number that a pattern contains.
const maxGapBytes = 24

// gapPattern returns a pattern for the end of the text before a number.
func gapPattern(gap string) string {
	if len(gap) > maxGapBytes {
		gap = gap[len(gap)-maxGapBytes:]
		gap = gap[max(strings.IndexFunc(gap, isStart), 0):]
	}
	parts := blank.Split(gap, -1)
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return strings.Join(parts, `\s+`)
}

// isStart reports whether a rune may begin a cut text: not the inner bytes of a character.
func isStart(r rune) bool { return r < 0x80 }
