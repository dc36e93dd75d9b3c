// Package shorten shortens names for tables and axes.
package shorten

// Name returns the first letters of a name, or its last letters.
func Name(name string, letters int, last bool) string {
	all := []rune(name)
	switch {
	case len(all) <= letters:
		return name
	case last:
		return "…" + string(all[len(all)-letters+1:])
	}
	return string(all[:letters-1]) + "…"
}

// SamePrefix reports whether several names begin with the same three bytes.
func SamePrefix(names []string) bool {
	for _, name := range names {
		if len(name) < 3 || name[:3] != names[0][:3] {
			return false
		}
	}
	return len(names) > 1
}
