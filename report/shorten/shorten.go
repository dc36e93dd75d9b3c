// Package shorten shortens texts for tables.
package shorten

// Name returns the first letters of a name.
func Name(name string, letters int) string {
	all := []rune(name)
	if len(all) <= letters {
		return name
	}
	return string(all[:letters-1]) + "…"
}
