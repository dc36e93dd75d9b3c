package advisor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"courier/schemas"
)

// personSubmit is submit for a person, who becomes the owner of the job.
func (a *Advisor) personSubmit(ctx context.Context, person string, q *schemas.JobRequest) (any, error) {
	q.User = cmp.Or(q.User, person)
	if q.User != person {
		return nil, a.forbid(person, "user", "%s cannot submit a job for %q", person, q.User)
	}
	if len(q.CPUs) > 0 {
		a.mu.RLock()
		processes := schemas.Processes(slices.Max(q.WorkerCounts()), uint32(slices.Max(q.CPUs)))
		err := a.checkCores(q.Nodes, int(processes))
		a.mu.RUnlock()
		if err != nil {
			return nil, err
		}
	}
	return a.submit(ctx, q)
}

// personCancel is cancelJob for a person, who must own the job.
func (a *Advisor) personCancel(ctx context.Context, person string, q *schemas.JobCancelRequest) (any, error) {
	owner, known, err := a.ownerOf(ctx, q.JobID)
	if err != nil {
		return nil, err
	}
	if known && owner != person {
		return nil, a.forbid(person, "id", "job %s %s", q.JobID, ownership(owner))
	}
	return a.cancelJob(ctx, q)
}

// personEvent records an event from a person about their own job. A job that was started without a
// submission belongs to the person who started it.
func (a *Advisor) personEvent(ctx context.Context, person string, e schemas.Event) (any, error) {
	id := jobOf(e)
	if !strings.HasPrefix(e.ID(), id+"/") {
		// The event would suppress an event of another job as a duplicate.
		return nil, schemas.Invalid("event_id", "%.80q is not an event ID of job %s", e.ID(), id)
	}
	owner, known, err := a.ownerOf(ctx, id)
	if err != nil {
		return nil, err
	}
	started, starts := e.(*schemas.Started)
	switch {
	case known && owner != person:
		return nil, a.forbid(person, "job_id", "job %s %s", id, ownership(owner))
	case !known && !starts:
		return nil, a.forbid(person, "job_id", "job %s was neither submitted nor started", id)
	case starts && started.User != "" && started.User != person:
		return nil, a.forbid(person, "user", "%s cannot start a job for %q", person, started.User)
	case starts:
		started.User = person
	}
	if err := a.checkGranted(id, settingOf(e)); err != nil {
		return nil, err
	}
	var sequence uint64
	if starts {
		sequence, err = a.bus.Claim(ctx, started)
	} else {
		sequence, err = a.bus.Publish(ctx, e)
	}
	if err != nil {
		return nil, err
	}
	if starts && !known {
		a.waitFor(ctx, sequence) // the first start event in the log names the owner
	}
	return &schemas.Receipt{Sequence: sequence}, nil
}

// settingOf returns the configuration that a person reports, or nil.
func settingOf(e schemas.Event) *schemas.Setting {
	switch e := e.(type) {
	case *schemas.Started:
		return &e.Setting
	case *schemas.Epoch:
		return &e.Setting
	}
	return nil
}

// checkGranted returns an error if a person reports CPUs or nodes that their job was not granted: they
// would count as used. A job without a request may use the processors of its nodes.
func (a *Advisor) checkGranted(id string, s *schemas.Setting) error {
	if s == nil {
		return nil
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	j := a.cluster.Job(id)
	if j == nil || j.Request == nil {
		return a.checkCores(s.Nodes, int(s.Processes()))
	}
	q := j.Request
	for _, node := range s.Nodes {
		if len(q.Nodes) > 0 && !slices.Contains(q.Nodes, node) {
			return schemas.Invalid("nodes", "job %s was submitted for %s, not for %s", id,
				strings.Join(q.Nodes, ", "), node)
		}
	}
	if !slices.Contains(q.CPUs, int(s.CPUs)) {
		return schemas.Invalid("cpus", "job %s was submitted with %v CPUs, not with %d", id, q.CPUs, s.CPUs)
	}
	isGranted := func(workers uint32) bool { return schemas.IsSameWorkers(workers, s.Workers) }
	if !slices.ContainsFunc(q.WorkerCounts(), isGranted) {
		granted := q.Workers
		if len(granted) == 0 {
			granted = schemas.Workers{1}
		}
		return schemas.Invalid("workers", "job %s was submitted with %v workers, not with %d",
			id, granted, max(s.Workers, 1))
	}
	return nil
}

// checkCores returns an error if some nodes have fewer processors. Nodes without a collector have any
// number. The caller holds the lock.
func (a *Advisor) checkCores(nodes []string, cpus int) error {
	cores := 0
	for _, node := range nodes {
		n := a.cluster.Cores(node)
		if n == 0 {
			return nil
		}
		cores += n
	}
	if len(nodes) > 0 && cpus > cores {
		return schemas.Invalid("cpus", "%d are more than the %s of %s", cpus,
			schemas.FormatCount(uint64(cores), "processor"), strings.Join(nodes, ", "))
	}
	return nil
}

// ownerOf returns the owner of a job, "" if it has none. known is false for a job that is neither
// in memory nor in the event log. The log is read if memory has dropped the job or its request.
func (a *Advisor) ownerOf(ctx context.Context, id string) (user string, known bool, err error) {
	a.waitUntilKnown(ctx, id)
	a.mu.RLock()
	j := a.cluster.Job(id)
	if known = j != nil; known {
		user = j.Owner()
	}
	// The user of a request takes precedence over the user who started the job.
	hasRequest := known && (j.Request != nil || j.IsPending())
	a.mu.RUnlock()
	if hasRequest {
		return user, true, nil
	}
	if j, err := a.recorded(ctx, id); err != nil || j != nil {
		if j != nil {
			user = j.Owner()
		}
		return user, j != nil, err
	}
	return user, known, nil
}

// forbid counts and logs an action that a person may not take, and returns the error.
func (a *Advisor) forbid(person, field, format string, args ...any) error {
	e := &schemas.Error{
		Code:    schemas.CodeForbidden,
		Field:   field,
		Message: fmt.Sprintf(format, args...),
	}
	a.metrics.forbidden.Inc()
	a.log.Warn("request forbidden", "person", person, "reason", e.Message)
	return e
}

// ownership describes the owner of a job in an error.
func ownership(owner string) string {
	if owner == "" {
		return "has no owner; only an operator may change it"
	}
	return "belongs to " + owner
}

// jobOf returns the job ID in the subject of an event.
func jobOf(e schemas.Event) string {
	_, rest, _ := strings.Cut(e.Subject(), ".")
	id, _, _ := strings.Cut(rest, ".")
	return id
}
