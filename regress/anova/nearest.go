package anova

import "strings"

// Nearest returns the name that is most similar to another one: equal up to case and separators,
// contained in it, or at most a third of its letters away. It is empty if there is none.
func Nearest(name string, names []string) string {
	best, distance := "", 0
	plainName := letters(name)
	if plainName == "" {
		return ""
	}
	for _, candidate := range names {
		plain := letters(candidate)
		d := editDistance(plainName, plain)
		switch {
		case plain == plainName:
			return candidate
		case plain == "" || d > max(len(plain), len(plainName))/3 &&
			!strings.Contains(plain, plainName) && !strings.Contains(plainName, plain):
			continue
		}
		if best == "" || d < distance {
			best, distance = candidate, d
		}
	}
	return best
}

// maxLetters bounds the letters of a name that are compared.
const maxLetters = 64

// letters returns a name in lower case without separators.
func letters(name string) string {
	plain := strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(name))
	return plain[:min(len(plain), maxLetters)]
}

// editDistance returns the number of bytes to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	previous := make([]int, len(b)+1)
	for k := range previous {
		previous[k] = k
	}
	for i := range len(a) {
		current := make([]int, len(b)+1)
		current[0] = i + 1
		for k := range len(b) {
			change := previous[k]
			if a[i] != b[k] {
				change++
			}
			current[k+1] = min(change, previous[k+1]+1, current[k]+1)
		}
		previous = current
	}
	return previous[len(b)]
}
