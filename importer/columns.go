package importer

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/runner/output"
	"courier/schemas"
)

// names are the names of the fields or columns of a source, with some of their values.
type names struct {
	have      []string
	values    func(name string) []string // some values, without empty ones
	requested map[string]string          // field to the name that the user gave
	columns   map[string]string          // field to name; nil: not decided
}

// isRequested reports whether the user named the source of a field.
func (n *names) isRequested(field string) bool {
	_, ok := n.requested[field]
	return ok
}

// decide maps fields to names in a source: those that the user requested, or known names whose values fit.
func (n *names) decide() {
	n.columns = map[string]string{}
	for _, f := range fieldNames {
		name := n.requested[f.field]
		if !n.isRequested(f.field) {
			name = n.known(f.field, f.known)
		}
		if name != "" && slices.Contains(n.have, name) {
			n.columns[f.field] = name
		}
	}
	n.metrics()
}

// namesOf returns the names of one value each.
func namesOf(cells map[string]string) names {
	return names{
		have: slices.Sorted(maps.Keys(cells)),
		values: func(name string) []string {
			return slices.DeleteFunc([]string{cells[name]}, func(v string) bool { return v == "" })
		},
	}
}

// known returns the name whose meaning comes first in known, a text like that in fieldNames, and whose values
// fit the field. Of several names with this meaning it is the one with the smallest unit of time.
func (n *names) known(field, known string) string {
	meanings := strings.Fields(strings.ReplaceAll(known, "_", ""))
	best, bestAt, bestUnit := "", len(meanings), 0.0
	for _, name := range n.have {
		possible := meaningsOf(field, name)
		at := slices.IndexFunc(meanings, func(m string) bool { return slices.Contains(possible, m) })
		_, unit := output.CutUnit(name)
		unit = max(unit, 1) // seconds are more exact than minutes
		if at < 0 || at > bestAt || at == bestAt && unit >= bestUnit || len(n.values(name)) == 0 {
			continue
		}
		// The own name of a field is always used, so that its wrong values are refused. An unknown word of an
		// outcome may be a failure.
		isOwn := at == 0 && compact(name) == meanings[0]
		isOutcome := field == FieldOutcome && !exitCode.MatchString(name)
		if isOwn || isOutcome || n.fit(field, name) {
			best, bestAt, bestUnit = name, at, unit
		}
	}
	return best
}

// fit reports whether most of the values of a column may be those of a field.
func (n *names) fit(field, name string) bool {
	has := func(names ...string) bool {
		return slices.ContainsFunc(n.have, func(name string) bool { return slices.Contains(names, compact(name)) })
	}
	is := func(test func(v string) bool) bool {
		return !slices.ContainsFunc(n.values(name), func(v string) bool { return !test(v) })
	}
	isTime := field == FieldSeconds && compact(name) == "time"
	const mostOdd = 8 // a larger odd number is not a number of CPUs
	isCPUs := func(v string) bool { return numberOf(v) <= mostOdd || math.Mod(numberOf(v), 2) == 0 }
	switch {
	case isTime && has("datatime"), // of steps, of which loading takes a part
		isTime && has("date", "day") && is(clockForm.MatchString),                      // of day
		field == FieldError && is(func(v string) bool { return v == "0" || v == "1" }), // marks
		field == FieldCPUs && compact(name) == "cpu" && !is(isCPUs):                    // a percentage
		return false
	}
	good, values := 0, n.values(name)
	for _, v := range values {
		if mayBe(field, inWords(field, name, v)) {
			good++
		}
	}
	return len(values) > 0 && 2*good >= len(values)
}

var clockForm = regexp.MustCompile(`^\d{1,2}:\d\d:\d\d(?:\.\d+)?$`)

// mayBe reports whether a text may be a value of a field.
func mayBe(field, text string) bool {
	var why *Refusal
	switch field {
	case FieldBatchSize, FieldCPUs, FieldEpochs, FieldNodeCores, FieldTrainingSamples, FieldConcurrentJobs:
		_, why = count(field, text, 1<<53)
	case FieldEpoch, FieldEpochsDone:
		v, err := strconv.ParseFloat(text, 64)
		return err == nil && v >= 0 && v <= schemas.MaxEpochs
	case FieldSeconds, FieldEpochSeconds, FieldStartup:
		v, known := parseSeconds(text)
		return known && v <= schemas.MaxSLO.Seconds()
	case FieldStartedAt, FieldEndedAt:
		_, err := Instant(text, time.UTC)
		return err == nil || dayOrMonthFirst.MatchString(text) // it is refused with its reason
	case FieldAccuracy, FieldError:
		_, why = ratio(field, text)
	case FieldOutcome:
		_, known := outcomeOf(text)
		return known
	case FieldModel:
		_, err := strconv.ParseFloat(text, 64)
		return err != nil
	case FieldCommand:
		return len(commandFlags(text)) > 0
	}
	return why == nil
}

// metrics finds the columns of accuracy, error and loss by their meaning: held-out data first. An
// accuracy on training data is none.
func (n *names) metrics() {
	rank := map[string]int{}
	choose := func(field, name string, r int) {
		isOther := slices.Contains(otherMeanings, normalize(name))
		if isOther || n.isRequested(field) || !n.fit(field, name) {
			return
		}
		if best, known := rank[field]; !known || r < best {
			n.columns[field], rank[field] = name, r
		}
	}
	columns := make([]output.Column, len(n.have))
	plainLoss, heldOutLoss := false, false
	for i, name := range n.have {
		columns[i] = output.ColumnOf(prefixes.ReplaceAllString(name, ""))
		if c := columns[i]; c.Quantity == output.QuantityLoss {
			plainLoss, heldOutLoss = plainLoss || !c.IsHeldOut && !c.IsTraining, heldOutLoss || c.IsHeldOut
		}
	}
	for i, name := range n.have {
		c := columns[i]
		c.IsTraining = c.IsTraining || !c.IsHeldOut && plainLoss && heldOutLoss // as the loss without a scope
		switch {
		case c.Quantity == output.QuantityLoss && !c.IsHeldOut:
			choose(FieldLoss, name, c.Rank)
		case c.IsTraining:
		case c.Quantity == output.QuantityAccuracy:
			choose(FieldAccuracy, name, c.Rank)
		case c.Quantity == output.QuantityErrorRate:
			choose(FieldError, name, c.Rank)
		}
	}
	accuracy, hasAccuracy := rank[FieldAccuracy]
	wrong, hasError := rank[FieldError]
	if hasAccuracy && hasError && wrong/100 < accuracy/100 {
		delete(n.columns, FieldAccuracy) // the error was measured on better data
	}
}

// numberOf returns the number in a cell; 0 if it is none.
func numberOf(text string) float64 {
	v, _ := strconv.ParseFloat(text, 64)
	return v
}
