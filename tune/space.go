package tune

import (
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Parameter is a hyperparameter with its possible values: Choices, or a range from Low to High.
type Parameter struct {
	Name      string   `json:"name"`
	Choices   []string `json:"choices,omitempty"` // of a categorical parameter
	Low       float64  `json:"low,omitempty"`
	High      float64  `json:"high,omitempty"`
	IsLog     bool     `json:"log,omitempty"`     // the logarithm is uniform, not the value
	IsInteger bool     `json:"integer,omitempty"` // of a range
}

// Space is the parameters of a tuning.
type Space []Parameter

// Bounds of a space.
const (
	maxParameters = 64
	maxChoices    = 1000
	maxInteger    = 1 << 53 // the largest range of integers that float64 has without gaps
)

var parameterName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// reservedNames are the placeholders that have another meaning in the command of a trial.
var reservedNames = []string{"epoch", "epochs", "trial", "dir", "cpus"}

// parameterForms ends the errors about the values of a parameter.
const parameterForms = "use for example lr=log:1e-4..1e-1, layers=1..8, dropout=0..0.5 or batch=16,32,64"

// ParseSpace parses parameters: NAME=A,B,C for choices and NAME=LOW..HIGH for a range, in which
// the values are uniform, or with log:LOW..HIGH their logarithms. A range is of integers if both of
// its ends are written as such.
func ParseSpace(texts []string) (Space, error) {
	if len(texts) > maxParameters {
		return nil, fmt.Errorf("%d parameters, want at most %d", len(texts), maxParameters)
	}
	var s Space
	for _, text := range texts {
		p, err := parseParameter(text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(s, func(q Parameter) bool { return q.Name == p.Name }) {
			return nil, fmt.Errorf("parameter %s is given twice: give all of its values at once", p.Name)
		}
		s = append(s, p)
	}
	return s, nil
}

func parseParameter(text string) (Parameter, error) {
	name, values, found := strings.Cut(text, "=")
	if !found {
		return Parameter{}, fmt.Errorf("parameter %q has no values: %s", text, parameterForms)
	}
	if !parameterName.MatchString(name) {
		return Parameter{}, fmt.Errorf(
			"parameter %q: the name %q is not one of 1 to 32 characters a-z, 0-9 and _, the first a letter",
			text, name)
	}
	if slices.Contains(reservedNames, name) {
		return Parameter{}, fmt.Errorf("parameter %q: {%s} already means something else in the command, "+
			"choose another name", text, name)
	}
	p := Parameter{Name: name}
	ranged, isLog := strings.CutPrefix(values, "log:")
	low, high, isRange := strings.Cut(ranged, "..")
	var err error
	switch {
	case isRange:
		p.IsLog = isLog
		err = p.parseRange(low, high)
	case isLog:
		err = fmt.Errorf("log: needs a range")
	default:
		err = p.parseChoices(values)
	}
	if err != nil {
		return Parameter{}, fmt.Errorf("parameter %q: %w: %s", text, err, parameterForms)
	}
	return p, nil
}

func (p *Parameter) parseRange(low, high string) error {
	var ends [2]float64
	p.IsInteger = true
	for i, text := range []string{low, high} {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return fmt.Errorf("%q is not a number", text)
		}
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			p.IsInteger = false
		}
		ends[i] = v
	}
	p.Low, p.High = ends[0], ends[1]
	switch {
	case !(p.Low < p.High):
		return fmt.Errorf("the range from %s to %s is empty", low, high)
	case math.IsInf(p.High-p.Low, 0):
		return fmt.Errorf("the range from %s to %s is too wide", low, high)
	case p.IsLog && p.Low <= 0:
		return fmt.Errorf("%s has no logarithm, want a range above 0", low)
	case p.IsInteger && max(-p.Low, p.High) > maxInteger:
		return fmt.Errorf("the integers of the range are above %d", int64(maxInteger))
	}
	return nil
}

func (p *Parameter) parseChoices(values string) error {
	p.Choices = strings.Split(values, ",")
	if len(p.Choices) > maxChoices {
		return fmt.Errorf("%d values, want at most %d", len(p.Choices), maxChoices)
	}
	for i, v := range p.Choices {
		if v == "" {
			return fmt.Errorf("value %d is empty", i+1)
		}
		if strings.ContainsRune(v, 0) {
			return fmt.Errorf("value %d has a NUL byte, which no command line can have", i+1)
		}
		if slices.Contains(p.Choices[:i], v) {
			return fmt.Errorf("%s is given twice", v)
		}
	}
	return nil
}

// Narrow returns a message for each range of two integers, such as dropout=0..1: its values were
// probably meant to be real numbers.
func (s Space) Narrow() (messages []string) {
	for i := range s {
		if p := &s[i]; len(p.Choices) == 0 && p.values() == 2 {
			messages = append(messages, fmt.Sprintf("--param %s=%g..%g has the integers %g and %g only: "+
				"write %.1f..%g for real numbers", p.Name, p.Low, p.High, p.Low, p.High, p.Low, p.High))
		}
	}
	return messages
}

// values returns the number of different values; infinity for a range of real numbers.
func (p *Parameter) values() float64 {
	switch {
	case len(p.Choices) > 0:
		return float64(len(p.Choices))
	case p.IsInteger:
		return p.High - p.Low + 1
	}
	return math.Inf(1)
}

// combinations returns the number of different trials.
func (s Space) combinations() float64 {
	n := 1.0
	for i := range s {
		n *= s[i].values()
	}
	return n
}

// significantDigits of drawn real numbers.
const significantDigits = 6

// draw returns a random value as text for a command line.
func (p *Parameter) draw(random *rand.Rand) string {
	if len(p.Choices) > 0 {
		return p.Choices[random.IntN(len(p.Choices))]
	}
	low, high := p.Low, p.High
	if p.IsInteger {
		low, high = low-0.5, high+0.5 // so that each integer has an interval of its own
		if p.IsLog {
			low = max(low, 0.5)
		}
	}
	var v float64
	if p.IsLog {
		v = math.Exp(math.Log(low) + random.Float64()*(math.Log(high)-math.Log(low)))
	} else {
		v = low + random.Float64()*(high-low)
	}
	if p.IsInteger {
		return strconv.FormatInt(int64(min(max(math.Round(v), p.Low), p.High)), 10)
	}
	text := strconv.FormatFloat(v, 'g', significantDigits, 64)
	if rounded, _ := strconv.ParseFloat(text, 64); rounded < p.Low || rounded > p.High {
		return strconv.FormatFloat(min(max(v, p.Low), p.High), 'g', -1, 64)
	}
	return text
}

// maxDrawsPerTrial limits the search for a trial that differs from all others.
const maxDrawsPerTrial = 10_000

// Draw returns the values of the parameters of each trial, in the order of the space. They follow
// from the seed and differ from trial to trial where the space is large enough.
func (s Space) Draw(seed uint64, trials int) [][]string {
	random := rand.New(rand.NewPCG(seed, 0))
	seen := map[string]bool{}
	drawn := make([][]string, trials)
	for i := range drawn {
		for range maxDrawsPerTrial {
			drawn[i] = drawn[i][:0]
			for j := range s {
				drawn[i] = append(drawn[i], s[j].draw(random))
			}
			if key := strings.Join(drawn[i], "\x00"); !seen[key] {
				seen[key] = true
				break
			}
		}
	}
	return drawn
}
