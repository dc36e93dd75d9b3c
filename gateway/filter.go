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

	changes bool // instead of the events, only that there were some
}

func readFilter(r *http.Request) (*eventFilter, error) {
	query := readQuery(r, "type", "job", "node", "changes")
	f := &eventFilter{
		kinds: query.names("type"), jobs: query.names("job"), nodes: query.names("node"),
		changes: query.bool("changes"),
	}
	for kind := range f.kinds {
		if kind != onlyRisks && !slices.ContainsFunc(feeds, func(f feed) bool { return f.kind == kind }) {
			query.fail("type", "%q is not one of %s, %s, %s, %s, %s", kind,
				kindAdvice, kindJob, kindRegressor, onlyRisks, kindSample)
		}
	}
	return f, query.err
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
