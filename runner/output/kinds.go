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

// kindsByWord are the kinds that a user may give.
var kindsByWord = map[string]kind{"accuracy": kindAccuracy, "error": kindRate, "loss": kindLoss}

// Validate returns an error that names a wrong kind.
func (k MetricKinds) Validate() error {
	for _, name := range slices.Sorted(maps.Keys(k)) {
		if labelWords(name) == "" || kindsByWord[k[name]] == kindNone {
			return fmt.Errorf("--metric %s=%s: want a name and %s", name, k[name],
				strings.Join(slices.Sorted(maps.Keys(kindsByWord)), ", "))
		}
	}
	return nil
}

// words returns the entries that the kinds add to the vocabulary. The last word of a name has its
// kind; those before it have no other meaning.
func (k MetricKinds) words() map[uint64]*word {
	if len(k) == 0 {
		return nil
	}
	own := map[uint64]*word{}
	for name, given := range k {
		meaning := &word{kind: kindsByWord[given]}
		own[hashOf([]byte(name))] = meaning
		parts := strings.Fields(labelWords(name))
		for _, part := range parts[:len(parts)-1] {
			own[hashOf([]byte(part))] = &word{flags: flagNeutral}
		}
		own[hashOf([]byte(parts[len(parts)-1]))] = meaning
	}
	return own
}

// SetMetrics sets the kinds of metrics whose names are not known. It must be called before Write.
func (p *Parser) SetMetrics(k MetricKinds) error {
	if err := k.Validate(); err != nil {
		return err
	}
	if p.recogniser != nil {
		p.recogniser.scanner.own = k.words()
	}
	return nil
}
