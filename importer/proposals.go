package importer

import (
	"regexp"
	"strings"
)

// proposals maps the columns that are not used to the field that each resembles and whose values it
// may have, or to "".
func proposals(n names, columns map[string]string) map[string]string {
	unused := map[string]string{}
	for _, name := range n.have {
		isUsed := false
		for _, column := range columns {
			isUsed = isUsed || column == name
		}
		if !isUsed && name != "" { // pandas writes its index without a name
			unused[name] = n.resembled(name, columns)
		}
	}
	return unused
}

// otherThings are words of names whose values look like those of a field, but are of something else.
var otherThings = regexp.MustCompile(`(?:^|_)(?:best|val|valid|validation|test|eval|queue|wait|waiting|limit|` +
	`idx|index|batches|remaining|eta|since|compile|(?:data|batch|step|iter|gpu|cpu|submit|fail)_time)(?:_|$)`)

// resembled returns the field without a column that has a known name which begins with the name, or is
// contained in it, and whose values fit.
func (n *names) resembled(column string, columns map[string]string) string {
	const least = 4 // characters; shorter names are contained in too many others
	name := compact(column)
	if name == "epochsdone" { // courier explore: the epochs of a run that were completed
		return ""
	}
	if otherThings.MatchString(normalize(column)) || n.values != nil && len(n.values(column)) == 0 {
		return ""
	}
	_, perEpoch := columns[FieldEpoch]
	for _, f := range fieldNames {
		switch f.field {
		case FieldAccuracy, FieldError, FieldLoss, FieldRunID: // found by their meaning, or not needed
			continue
		case FieldStartedAt, FieldEndedAt, FieldStartup:
			if perEpoch {
				continue
			}
		case FieldModel, FieldDataset, FieldNodes: // not a size or a number of them
			if n.values != nil && n.fit(FieldSeconds, column) {
				continue
			}
		case FieldSeconds: // not an instant, as in traces that count from their beginning
			if strings.HasPrefix(name, "start") || strings.HasPrefix(name, "end") {
				continue
			}
		case FieldEpoch:
			if n.values != nil && !n.countsEpochs(column) {
				continue
			}
		}
		if _, found := columns[f.field]; found || !n.fit(f.field, column) {
			continue
		}
		for known := range strings.FieldsSeq(f.known) {
			k := compact(known)
			if len(name) >= least && 2*len(name) >= len(k) && strings.HasPrefix(k, name) ||
				len(k) >= least && 2*len(k) >= len(name) && strings.Contains(name, k) {
				return f.field
			}
		}
	}
	return ""
}
