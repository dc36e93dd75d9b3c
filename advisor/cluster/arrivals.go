package cluster

import (
	"cmp"
	"slices"
	"time"
)

// arrivals are the jobs that a policy has admitted and that are about to start. Their number is
// bounded by the admissions within startTimeout.
type arrivals struct {
	order  []*Job // by the time of their promise, then by ID
	onNode map[string]*expectation
}

// expectation is the load that is about to start on a node.
type expectation struct {
	jobs []*Job // by ID
	cpus float64
}

func compareArrivals(a, b *Job) int {
	return cmp.Or(a.Promise.At.Compare(b.Promise.At), cmp.Compare(a.ID, b.ID))
}

// add adds an admitted job, unless it has already been added.
func (a *arrivals) add(j *Job) {
	at, found := slices.BinarySearchFunc(a.order, j, compareArrivals)
	if found {
		return
	}
	a.order = slices.Insert(a.order, at, j)
	for _, name := range j.Promise.Nodes {
		e := a.onNode[name]
		if e == nil {
			e = &expectation{}
			a.onNode[name] = e
		}
		if i, found := slices.BinarySearchFunc(e.jobs, j.ID, compareID); !found {
			e.jobs = slices.Insert(e.jobs, i, j)
			e.cpus += j.promisedCPUs()
		}
	}
}

// remove removes a job that has started, has ended, or exceeded startTimeout.
func (a *arrivals) remove(j *Job) {
	at, found := slices.BinarySearchFunc(a.order, j, compareArrivals)
	if !found {
		return
	}
	a.order = slices.Delete(a.order, at, at+1)
	for _, name := range j.Promise.Nodes {
		e := a.onNode[name]
		if e == nil {
			continue
		}
		if i, found := slices.BinarySearchFunc(e.jobs, j.ID, compareID); found {
			e.jobs = slices.Delete(e.jobs, i, i+1)
			e.cpus -= j.promisedCPUs()
		}
		if len(e.jobs) == 0 {
			delete(a.onNode, name)
		}
	}
}

// expire removes the jobs that exceeded startTimeout. It only frees memory, because readers check
// the timeout themselves.
func (a *arrivals) expire(now time.Time) {
	for len(a.order) > 0 && now.Sub(a.order[0].Promise.At) >= startTimeout {
		a.remove(a.order[0])
	}
}

// jobsOn returns the jobs that are about to start on a node, by ID. Some may have exceeded
// startTimeout.
func (a *arrivals) jobsOn(node string) []*Job {
	if e := a.onNode[node]; e != nil {
		return e.jobs
	}
	return nil
}

// cpus returns the number of CPUs that are about to be used on a node.
func (a *arrivals) cpus(node string, now time.Time) float64 {
	e := a.onNode[node]
	if e == nil {
		return 0
	}
	if now.Sub(a.order[0].Promise.At) < startTimeout { // none has expired
		return e.cpus
	}
	sum := 0.0
	for _, j := range e.jobs {
		if j.IsExpected(now) {
			sum += j.promisedCPUs()
		}
	}
	return sum
}
