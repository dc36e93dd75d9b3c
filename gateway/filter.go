package gateway

import (
	"net/http"
	"slices"
	"strings"

	"courier/schemas"
)

// eventFilter selects the live events of a client.
type eventFilter struct {
	kinds map[string]bool // nil: all

	// If jobs or nodes is set, only events of these jobs and samples of these nodes match.
	jobs, nodes map[string]bool
}

// readFilter parses the parameters type, job and node.
func readFilter(r *http.Request) (*eventFilter, error) {
	query, err := readQuery(r, "type", "job", "node")
	if err != nil {
		return nil, err
	}
	f := &eventFilter{}
	if f.kinds, err = readNames(query, "type"); err != nil {
		return nil, err
	}
	known := kinds()
	for kind := range f.kinds {
		if !slices.Contains(known, kind) {
			return nil, schemas.Invalid("type", "%q is not one of %s", kind,
				strings.Join(known, ", "))
		}
	}
	if f.jobs, err = readNames(query, "job"); err != nil {
		return nil, err
	}
	f.nodes, err = readNames(query, "node")
	return f, err
}

// wants reports whether an event matches.
func (f *eventFilter) wants(kind, subject string) bool {
	if f.kinds != nil && !f.kinds[kind] {
		return false
	}
	if f.jobs == nil && f.nodes == nil {
		return true
	}
	_, rest, _ := strings.Cut(subject, ".")
	name, _, _ := strings.Cut(rest, ".")
	return f.namesOf(kind)[name]
}

// namesOf returns the names by which events of a kind are filtered.
func (f *eventFilter) namesOf(kind string) map[string]bool {
	switch kind {
	case kindJob, kindAdvice:
		return f.jobs
	case kindSample:
		return f.nodes
	}
	return nil
}

// wantsAny reports whether events of a feed can match.
func (f *eventFilter) wantsAny(d *feed) bool {
	allNames := f.jobs == nil && f.nodes == nil
	for _, kind := range d.kinds {
		kindMatches := f.kinds == nil || f.kinds[kind]
		if kindMatches && (allNames || len(f.namesOf(kind)) > 0) {
			return true
		}
	}
	return false
}

// subjects returns a filter with which NATS delivers only a part of a feed, or nil.
func (f *eventFilter) subjects(d *feed) []string {
	names := f.namesOf(d.kinds[0])
	if len(names) != 1 {
		return nil
	}
	for name := range names {
		if d.kinds[0] == kindSample {
			return []string{schemas.NodeSubject(name, "*")}
		}
		return []string{schemas.JobSubject(name, "*")}
	}
	return nil
}
