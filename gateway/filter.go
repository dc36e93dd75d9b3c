package gateway

import (
	"net/http"
	"slices"
	"strings"

	"courier/schemas"
)

// eventFilter says which live events a client wants.
type eventFilter struct {
	kinds map[string]bool // nil: all

	// With jobs or nodes, only events of these jobs and samples of these nodes.
	jobs, nodes map[string]bool
}

// readFilter reads the parameters type, job and node.
func (g *Gateway) readFilter(r *http.Request) (*eventFilter, error) {
	query, err := readQuery(r, "type", "job", "node")
	if err != nil {
		return nil, err
	}
	f := &eventFilter{}
	if f.kinds, err = readNames(query, "type"); err != nil {
		return nil, err
	}
	known := g.kinds()
	for kind := range f.kinds {
		if !slices.Contains(known, kind) {
			return nil, schemas.Invalid("type", "%s is none of %s", kind, strings.Join(known, ", "))
		}
	}
	if f.jobs, err = readNames(query, "job"); err != nil {
		return nil, err
	}
	f.nodes, err = readNames(query, "node")
	return f, err
}

// wants reports whether an event of a kind passes.
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

// namesOf returns the names that events of a kind are filtered by.
func (f *eventFilter) namesOf(kind string) map[string]bool {
	switch kind {
	case "job", "advice":
		return f.jobs
	case "sample":
		return f.nodes
	}
	return nil
}

// wantsAny reports whether events of a feed can pass.
func (f *eventFilter) wantsAny(d *feed) bool {
	for _, kind := range d.kinds {
		if (f.kinds == nil || f.kinds[kind]) && (f.jobs == nil && f.nodes == nil || len(f.namesOf(kind)) > 0) {
			return true
		}
	}
	return false
}

// subjects returns a filter by which NATS delivers less of a feed; nil if there is none.
func (f *eventFilter) subjects(d *feed) []string {
	names := f.namesOf(d.kinds[0])
	if len(names) != 1 {
		return nil
	}
	for name := range names {
		if d.kinds[0] == "sample" {
			return []string{schemas.NodeSubject(name, "*")}
		}
		return []string{schemas.JobSubject(name, "*")}
	}
	return nil
}
