package doctor

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// services checks which services answer, and whether they have the version of this program.
func (e *Examination) services(ctx context.Context, b *bus.Bus, version string) {
	all, err := b.Services(ctx)
	if err != nil {
		e.unread("services", err)
		return
	}
	for _, name := range []string{"courier-advisor", "courier-trainer"} {
		e.add(serviceCheck(name, version, all))
	}
}

func serviceCheck(name, version string, all []bus.ServiceInfo) Check {
	var versions []string
	instances := 0
	for _, s := range all {
		if s.Name == name {
			instances++
			versions = append(versions, s.Version)
		}
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	short := strings.TrimPrefix(name, "courier-")
	switch {
	case instances == 0 && short == "advisor":
		return Check{short, Fail, "none answers", "start courier advisor"}
	case instances == 0:
		return Check{short, Warn, "none answers", "start courier " + short + ", or nothing new is learned"}
	case !slices.Equal(versions, []string{version}):
		return Check{
			short, Warn, fmt.Sprintf("version %s, this program is %s", strings.Join(versions, " and "), version),
			"run the same version everywhere",
		}
	}
	count := schemas.FormatCount(uint64(instances), "instance")
	return Check{short, OK, fmt.Sprintf("%s, version %s", count, version), ""}
}

// jobs checks which of the last ended jobs are not learned from, and the nodes of the running jobs.
func (e *Examination) jobs(ctx context.Context, b *bus.Bus) {
	q := schemas.JobListRequest{State: schemas.SelectEnded}
	var ended schemas.JobList
	if err := b.Request(ctx, q.Subject(), &q, &ended); err != nil {
		e.unread("jobs", err)
		return
	}
	e.add(learnedCheck(ended.Jobs))

	q.State = schemas.StateSelection(schemas.StateRunning)
	var running schemas.JobList
	if err := b.Request(ctx, q.Subject(), &q, &running); err != nil {
		e.unread("jobs", err)
		return
	}
	var nodes []string
	for i := range running.Jobs {
		nodes = append(nodes, running.Jobs[i].Nodes...)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(nodes) > 0 {
		e.add(nodesCheck(nodes, b.LastSamples(ctx, nodes...), time.Now()))
	}
}

// learnedCheck counts, by reason, the jobs that are not learned from; the most frequent reason is first.
func learnedCheck(ended []schemas.JobStatus) Check {
	byReason := map[string][]string{}
	for i := range ended {
		if reason := ended[i].NotLearned; reason != "" {
			byReason[reason] = append(byReason[reason], ended[i].JobID)
		}
	}
	count := schemas.FormatCount(uint64(len(ended)), "ended job")
	c := Check{"learning", OK, "from the last " + count, ""}
	if len(byReason) == 0 {
		return c
	}
	reasons := slices.SortedFunc(maps.Keys(byReason), func(a, b string) int {
		return cmp.Or(len(byReason[b])-len(byReason[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, reason := range reasons {
		jobs := byReason[reason]
		parts = append(parts, fmt.Sprintf("%d because %s (%s)", len(jobs), reason, jobs[0]))
	}
	c.Result = Warn
	c.Found = fmt.Sprintf("not from all of the last %s: %s", count, strings.Join(parts, "; "))
	c.Do = "courier status JOB has the details"
	return c
}

// silentNode is the age of the last sample of a node whose collector has stopped.
const silentNode = 30 * time.Second

// nodesCheck names the nodes of running jobs that have no current sample, or whose clock differs.
func nodesCheck(nodes []string, samples map[string]bus.Record, now time.Time) Check {
	var silent, apart []string
	for _, name := range nodes {
		r, ok := samples[name]
		if !ok || now.Sub(r.StoredAt) > silentNode {
			silent = append(silent, name)
		} else if s, ok := r.Event.(*schemas.Sample); ok && r.StoredAt.Sub(s.At).Abs() > warnClock {
			apart = append(apart, name)
		}
	}
	c := Check{"nodes", OK, schemas.FormatCount(uint64(len(nodes)), "node") + " with running jobs", ""}
	if len(apart) > 0 {
		c.Result, c.Do = Warn, "synchronize them with NTP"
		c.Found += "; the clock differs on " + strings.Join(apart, ", ")
	}
	if len(silent) > 0 {
		c.Result, c.Do = Warn, "start courier collector there"
		c.Found += "; no samples of " + strings.Join(silent, ", ")
	}
	return c
}

// regressors checks that each target has a champion.
func (e *Examination) regressors(ctx context.Context, b *bus.Bus) {
	var list schemas.RegressorList
	q := schemas.RegressorListRequest{}
	if err := b.Request(ctx, q.Subject(), &q, &list); err != nil {
		e.unread("regressors", err)
		return
	}
	var missing []string
	for _, target := range schemas.Targets() {
		isChampion := func(v schemas.RegressorVersion) bool {
			return v.Target == target && v.State == schemas.RegressorChampion
		}
		if !slices.ContainsFunc(list.Regressors, isChampion) {
			missing = append(missing, target)
		}
	}
	c := Check{"regressors", OK, "a champion for each target", ""}
	if len(missing) > 0 {
		c = Check{
			"regressors", Warn, "none yet for " + strings.Join(missing, ", "),
			"run jobs, or courier import; courier regressor train says what is missing",
		}
	}
	e.add(c)
}
