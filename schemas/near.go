package schemas

import (
	"reflect"
	"strings"
)

// nearField adds the field that was probably meant to an error about an unknown field of a request,
// such as "id" for "job_id".
func nearField(e *Error, r Request) *Error {
	if e.Field == "" || !strings.HasPrefix(e.Message, "not a field") {
		return e
	}
	best, fewest := "", 3 // edits, from which two names are not similar
	t := reflect.TypeOf(r).Elem()
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		edits := editDistance(e.Field, name)
		if strings.HasSuffix(e.Field, "_"+name) || strings.HasSuffix(name, "_"+e.Field) ||
			strings.HasPrefix(name, e.Field+"_") {
			edits = min(edits, 1)
		}
		if edits < fewest {
			best, fewest = name, edits
		}
	}
	if best != "" {
		e.Message += "; did you mean " + best + "?"
	}
	return e
}

// editDistance returns the number of inserted, deleted and replaced bytes between two names
// (Levenshtein 1966). The time is bounded, because names of fields are clipped.
func editDistance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := append(make([]int, 0, len(b)+1), i+1)
		for j := range len(b) {
			replaced := previous[j]
			if a[i] != b[j] {
				replaced++
			}
			current = append(current, min(replaced, previous[j+1]+1, current[j]+1))
		}
		previous = current
	}
	return previous[len(b)]
}
