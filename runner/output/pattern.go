package output

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// PatternExample is an example of a regular expression for --epoch-pattern, for messages to users.
const PatternExample = `(?P<epoch>\d+).*acc=(?P<accuracy>[\d.e+-]+)`

// maxPatternBytes is the maximum length of a regular expression.
const maxPatternBytes = 4 << 10

// groupNames are the named groups that a pattern may have. Only epoch is required.
var groupNames = []string{"epoch", "seconds", "loss", "accuracy", "batch_size", "cpus"}

// pattern reads lines by the user's own regular expression.
type pattern struct {
	expression *regexp.Regexp
	drawn      []EpochReport // of the last drawing of a progress bar, which may be drawn again
}

// newPattern compiles the user's expression. Errors name the flag and show what is valid.
func newPattern(text string) (*pattern, error) {
	if len(text) > maxPatternBytes {
		return nil, fmt.Errorf("invalid --epoch-pattern: %d bytes are more than %d", len(text), maxPatternBytes)
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("invalid --epoch-pattern %q: %w", text, err)
	}

	if expression.SubexpIndex("epoch") < 0 {
		return nil, fmt.Errorf("invalid --epoch-pattern %q: missing group (?P<epoch>…), for example '%s'",
			text, PatternExample)
	}
	for _, name := range expression.SubexpNames() {
		if name != "" && !slices.Contains(groupNames, name) {
			return nil, fmt.Errorf("invalid --epoch-pattern %q: unknown group %q, want %s",
				text, name, strings.Join(groupNames, ", "))
		}
	}
	return &pattern{expression: expression}, nil
}

// line returns the epochs that a line completes. A drawing of a line waits for the next one, which may be of
// the same epoch.
func (p *pattern) line(line []byte, isFinal bool, at time.Time) (complete []EpochReport) {
	found := p.match(line, at)
	if len(found) > 0 && len(p.drawn) > 0 && p.drawn[0].Epoch == found[0].Epoch {
		p.drawn = nil
	}
	p.drawn = append(p.drawn, found...)
	if ready := len(p.drawn) - boolInt(!isFinal); ready > 0 {
		complete, p.drawn = p.drawn[:ready], p.drawn[ready:]
	}
	return complete
}

// match returns the epoch of a line, if there is one.
func (p *pattern) match(line []byte, at time.Time) []EpochReport {
	match := p.expression.FindSubmatchIndex(line)
	if match == nil {
		return nil
	}
	values := map[string]float64{}
	for i, name := range p.expression.SubexpNames() {
		if name == "" || match[2*i] < 0 {
			continue
		}
		text := strings.TrimRight(string(line[match[2*i]:match[2*i+1]]), ".") // [\d.]+ matches the end of a sentence
		if v, err := strconv.ParseFloat(text, 64); err == nil && v-v == 0 {
			values[name] = v
		}
	}

	epoch, isTold := values["epoch"]
	if !isTold || epoch < 0 || epoch > schemas.MaxEpochs || epoch != math.Trunc(epoch) {
		return nil
	}
	r := EpochReport{
		Epoch:     uint32(epoch),
		At:        at,
		Seconds:   validSeconds(values["seconds"]),
		BatchSize: validCount(values["batch_size"], schemas.MaxBatchSize),
		CPUs:      validCount(values["cpus"], schemas.MaxCPUs),
	}
	if v, ok := values["loss"]; ok {
		r.Loss = &v
	}
	if v, ok := values["accuracy"]; ok {
		r.Metric = metricOf("accuracy", v)
		rest := line[match[2*p.expression.SubexpIndex("accuracy")+1]:]
		if v > 1 || bytes.HasPrefix(bytes.TrimLeft(rest, " "), []byte("%")) {
			v = FromPercent(v)
		}
		r.Accuracy = validAccuracy(v)
	}
	return []EpochReport{r}
}
