package output

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// MetricKinds maps names of metrics, as the job prints them, to "accuracy" (higher is better, 0 to 1
// or a percentage), "error" (1 - accuracy) or "loss" (lower is better, any number).
type MetricKinds map[string]string

// metricWords are the kinds, each a word that kindOf knows.
var metricWords = []string{"accuracy", "error", "loss"}

// Validate returns an error that names a wrong kind.
func (k MetricKinds) Validate() error {
	for _, name := range slices.Sorted(maps.Keys(k)) {
		if len(nameWords(name)) == 0 || !slices.Contains(metricWords, k[name]) {
			return fmt.Errorf("--metric %s=%s: want a name and %s", name, k[name],
				strings.Join(metricWords, ", "))
		}
	}
	return nil
}

// extend returns the words of a name, followed by its kind if the name ends with a known metric.
func (k MetricKinds) extend(words []string) []string {
	for name, kind := range k {
		if own := nameWords(name); len(words) >= len(own) &&
			slices.Equal(words[len(words)-len(own):], own) {
			return append(slices.Clone(words), kind)
		}
	}
	return words
}

// mark sets the kinds of tokens whose names the user gave.
func (k MetricKinds) mark(tokens []token) {
	if len(k) == 0 {
		return
	}
	for i := range tokens {
		if words := k.extend(tokens[i].words); len(words) > len(tokens[i].words) {
			tokens[i].given = words[len(words)-1:]
		}
	}
}

// kind returns what the number of a token measures.
func (t *token) kind() metricKind {
	if t.given != nil {
		return kindOf(t.given)
	}
	return kindOf(t.words)
}

// SetMetrics sets the kinds of metrics whose names are not known. It must be called before Write.
func (p *Parser) SetMetrics(k MetricKinds) error {
	if err := k.Validate(); err != nil {
		return err
	}
	for _, f := range p.formats {
		switch f := f.(type) {
		case *text:
			f.kinds = k
		case *jsonLines:
			f.kinds = k
		case *csvLog:
			f.kinds = k
		}
	}
	return nil
}
