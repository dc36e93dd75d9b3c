package collector

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// PatternExample is a regular expression that messages show to a user.
const PatternExample = `(?P<epoch>\d+).*acc=(?P<accuracy>[\d.]+)`

// maxPattern is the longest regular expression, in bytes.
const maxPattern = 4 << 10

// pattern reads lines by the user's own regular expression with the named
// groups epoch, and optionally seconds, loss, accuracy and batch_size.
type pattern struct {
	expression                              *regexp.Regexp
	epoch, seconds, loss, accuracyAt, batch int // index of the group; -1: none
	seen                                    bool
}

// newPattern compiles the user's expression. The error names the flag and says
// what would be right.
func newPattern(text string) (*pattern, error) {
	if text == "" {
		return nil, fmt.Errorf("--format %s needs --epoch-pattern, such as '%s'", FormatPattern, PatternExample)
	}
	if len(text) > maxPattern {
		return nil, fmt.Errorf("--epoch-pattern: %d bytes are more than %d", len(text), maxPattern)
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("--epoch-pattern %q: %w", text, err)
	}
	p := &pattern{expression: expression, epoch: expression.SubexpIndex("epoch"), seconds: expression.SubexpIndex("seconds"),
		loss: expression.SubexpIndex("loss"), accuracyAt: expression.SubexpIndex("accuracy"), batch: expression.SubexpIndex("batch_size")}
	if p.epoch < 0 {
		return nil, fmt.Errorf("--epoch-pattern %q has no group (?P<epoch>…); want such as '%s'", text, PatternExample)
	}
	for _, name := range expression.SubexpNames() {
		if name != "" && !strings.Contains(" epoch seconds loss accuracy batch_size ", " "+name+" ") {
			return nil, fmt.Errorf("--epoch-pattern %q: group %q is not epoch, seconds, loss, accuracy or batch_size", text, name)
		}
	}
	return p, nil
}

// line implements parser.
func (p *pattern) line(line []byte, at time.Time) []report {
	m := p.expression.FindSubmatchIndex(line)
	if m == nil {
		return nil
	}
	group := func(i int) string {
		if i < 0 || m[2*i] < 0 {
			return ""
		}
		return strings.TrimRight(string(line[m[2*i]:m[2*i+1]]), ".") // [\d.]+ takes the end of a sentence with it
	}
	epoch, err := strconv.ParseUint(group(p.epoch), 10, 32)
	if err != nil || epoch > schemas.MaxEpochs {
		return nil
	}
	p.seen = true
	r := report{epoch: uint32(epoch), at: at}
	if v, err := strconv.ParseFloat(group(p.seconds), 64); err == nil {
		r.seconds = reportedSeconds(v)
	}
	if v, err := strconv.ParseFloat(group(p.loss), 64); err == nil {
		r.loss = lossOf(v)
	}
	if v, err := strconv.ParseFloat(group(p.accuracyAt), 64); err == nil {
		after := line[m[2*p.accuracyAt+1]:]
		r.accuracy = accuracyOf(percent(v, line, after))
	}
	if v, err := strconv.ParseFloat(group(p.batch), 64); err == nil {
		r.batch = batchOf(v)
	}
	return []report{r}
}

// percent turns a percentage into a share: a number with a % behind it, or one
// above 1 in a line that has a % anywhere. Others are what they are.
func percent(v float64, line, after []byte) float64 {
	if bytes.HasPrefix(bytes.TrimLeft(after, " "), []byte("%")) || v > 1 && bytes.IndexByte(line, '%') >= 0 {
		return v / 100
	}
	return v
}

// end implements parser: each line is complete in itself.
func (p *pattern) end() []report { return nil }

// again implements parser.
func (p *pattern) again() parser {
	next := *p
	next.seen = false
	return &next
}

// familiar implements parser.
func (p *pattern) familiar() bool { return p.seen }
