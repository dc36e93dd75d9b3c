package gateway

import (
	"net/http"
	"slices"
	"strings"

	"courier/schemas"
)

// onlyRisks selects the events job.<id>.risk among those of kindJob.
const onlyRisks = schemas.EventRisk

type eventFilter struct {
	kinds map[string]bool // kinds, or onlyRisks; nil: all

	// If jobs or nodes is set, only events of these jobs and samples of these nodes match.
	jobs, nodes map[string]bool
}

func readFilter(r *http.Request) (*eventFilter, error) {
	query, err := readQuery(r, "type", "job", "node")
	if err != nil {
		return nil, err
	}
	f := &eventFilter{}
	if f.kinds, err = readNames(query, "type"); err != nil {
		return nil, err
	}
	for kind := range f.kinds {
		if kind != onlyRisks && !slices.ContainsFunc(feeds, func(f feed) bool { return f.kind == kind }) {
			return nil, schemas.Invalid("type", "%q is not one of %s, %s, %s, %s, %s", kind,
				kindAdvice, kindJob, kindRegressor, onlyRisks, kindSample)
		}
	}
	if f.jobs, err = readNames(query, "job"); err != nil {
		return nil, err
	}
	f.nodes, err = readNames(query, "node")
	return f, err
}

func (f *eventFilter) wants(kind, subject string) bool {
	isRisk := f.kinds[onlyRisks] && kind == kindJob && strings.HasSuffix(subject, "."+schemas.EventRisk)
	if f.kinds != nil && !f.kinds[kind] && !isRisk {
		return false
	}
	if f.jobs == nil && f.nodes == nil {
		return true
	}
	_, rest, _ := strings.Cut(subject, ".")
	name, _, _ := strings.Cut(rest, ".")
	switch kind {
	case kindJob, kindAdvice:
		return f.jobs[name]
	case kindSample:
		return f.nodes[name]
	}
	return false
}
