package trainer

// names holds one copy of each name that runs refer to, and forgets a name with its last
// reference.
type names map[string]*name

type name struct {
	alone [1]string // the name, as the list of a job on one node
	refs  int
}

// take returns the kept copy of a name and counts the reference.
func (n names) take(text string) string {
	kept := n[text]
	if kept == nil {
		kept = &name{alone: [1]string{text}}
		n[text] = kept
	}
	kept.refs++
	return kept.alone[0]
}

// takeAll takes several names. Lists of one name share one copy.
func (n names) takeAll(texts []string) []string {
	if len(texts) == 1 {
		n.take(texts[0])
		return n[texts[0]].alone[:]
	}
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = n.take(text)
	}
	return all
}

// release undoes a take and reports whether the name is forgotten.
func (n names) release(text string) (forgotten bool) {
	kept := n[text]
	if kept == nil {
		return false
	}
	if kept.refs--; kept.refs > 0 {
		return false
	}
	delete(n, text)
	return true
}
