package output

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// PatternExample is an example of a regular expression for FormatPattern, for messages to users.
const PatternExample = `(?P<epoch>\d+).*acc=(?P<accuracy>[\d.e+-]+)`

// maxPatternBytes is the maximum length of a regular expression.
const maxPatternBytes = 4 << 10

// groupNames are the named groups that a pattern may have. Only epoch is required.
var groupNames = []string{"epoch", "seconds", "loss", "accuracy", "batch_size", "cpus"}

// pattern reads lines by the user's own regular expression.
type pattern struct {
	expression *regexp.Regexp
	seen       bool

	// Indexes of the named groups; -1: the expression does not have the group.
	epoch, seconds, loss, accuracy, batchSize, cpus int
}

// newPattern compiles the user's expression. Errors name the flag and show what is valid.
func newPattern(text string) (*pattern, error) {
	if text == "" {
		return nil, fmt.Errorf(
			"--format %s requires --epoch-pattern, for example '%s'", FormatPattern, PatternExample)
	}
	if len(text) > maxPatternBytes {
		return nil, fmt.Errorf(
			"invalid --epoch-pattern: %d bytes are more than %d", len(text), maxPatternBytes)
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("invalid --epoch-pattern %q: %w", text, err)
	}

	p := &pattern{
		expression: expression,
		epoch:      expression.SubexpIndex("epoch"),
		seconds:    expression.SubexpIndex("seconds"),
		loss:       expression.SubexpIndex("loss"),
		accuracy:   expression.SubexpIndex("accuracy"),
		batchSize:  expression.SubexpIndex("batch_size"),
		cpus:       expression.SubexpIndex("cpus"),
	}
	if p.epoch < 0 {
		return nil, fmt.Errorf(
			"invalid --epoch-pattern %q: missing group (?P<epoch>…), for example '%s'",
			text, PatternExample)
	}
	for _, name := range expression.SubexpNames() {
		if name != "" && !slices.Contains(groupNames, name) {
			return nil, fmt.Errorf("invalid --epoch-pattern %q: unknown group %q, want %s",
				text, name, strings.Join(groupNames, ", "))
		}
	}
	return p, nil
}

// Line implements lineFormat.
func (p *pattern) Line(line []byte, at time.Time) []EpochReport {
	match := p.expression.FindSubmatchIndex(line)
	if match == nil {
		return nil
	}
	group := func(i int) string {
		if i < 0 || match[2*i] < 0 {
			return ""
		}
		text := string(line[match[2*i]:match[2*i+1]])
		return strings.TrimRight(text, ".") // [\d.]+ also matches the end of a sentence
	}

	epoch, err := strconv.ParseUint(group(p.epoch), 10, 32)
	if err != nil || epoch > schemas.MaxEpochs {
		return nil
	}
	p.seen = true
	r := EpochReport{Epoch: uint32(epoch), At: at}
	if v, err := strconv.ParseFloat(group(p.seconds), 64); err == nil {
		r.Seconds = validSeconds(v)
	}
	if v, err := strconv.ParseFloat(group(p.loss), 64); err == nil {
		r.Loss = validLoss(v)
	}
	if v, err := strconv.ParseFloat(group(p.accuracy), 64); err == nil {
		rest := line[match[2*p.accuracy+1]:]
		r.Accuracy = validAccuracy(toRatio(v, line, rest))
		r.Metric = metricOf("accuracy", v)
	}
	if v, err := strconv.ParseFloat(group(p.batchSize), 64); err == nil {
		r.BatchSize = validCount(v, schemas.MaxBatchSize)
	}
	if v, err := strconv.ParseFloat(group(p.cpus), 64); err == nil {
		r.CPUs = validCount(v, schemas.MaxCPUs)
	}
	return []EpochReport{r}
}

// toRatio converts a percentage to a ratio. A number is a percentage if a % follows it, or if it
// is above 1 and the line contains a %.
func toRatio(v float64, line, rest []byte) float64 {
	isFollowed := bytes.HasPrefix(bytes.TrimLeft(rest, " "), []byte("%"))
	if isFollowed || v > 1 && bytes.IndexByte(line, '%') >= 0 {
		return v / 100
	}
	return v
}

// End implements lineFormat. Each line is complete, so nothing is left.
func (p *pattern) End() []EpochReport { return nil }

func (p *pattern) restart() lineFormat {
	next := *p
	next.seen = false
	return &next
}

func (p *pattern) recognized() bool { return p.seen }
