package schemas

import (
	"reflect"
	"strings"
)

// nearField returns the JSON name of the field of a struct that was probably meant by an unknown
// name, such as "id" for "job_id", or "" if no name is similar.
func nearField(unknown string, t reflect.Type) string {
	best, fewest := "", 3 // edits, from which two names are not similar
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		edits := editDistance(unknown, name)
		if strings.HasSuffix(unknown, "_"+name) || strings.HasSuffix(name, "_"+unknown) ||
			strings.HasPrefix(name, unknown+"_") {
			edits = min(edits, 1)
		}
		if edits < fewest {
			best, fewest = name, edits
		}
	}
	return best
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
