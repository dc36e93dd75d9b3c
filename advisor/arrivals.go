package advisor

import (
	"cmp"
	"slices"
	"time"
)

// startPatience is how long room is kept for a job that was admitted and has not
// started; after that it no longer counts as expected.
const startPatience = time.Minute

// arrivals are the jobs that a policy has admitted and that are about to start. They are
// bounded by how many are admitted in startPatience.
type arrivals struct {
	order  []*Job // by the time of their promise, then by ID
	onNode map[string]*expectation
}

// expectation is what is about to start on a node.
type expectation struct {
	jobs []*Job // by ID
	cpus float64
}

func compareArrivals(a, b *Job) int {
	return cmp.Or(a.Promise.At.Compare(b.Promise.At), cmp.Compare(a.ID, b.ID))
}

// add lets a job be expected; one that is expected already stays so.
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

// remove takes a job out that has started or ended, or that has waited for too long.
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

// expire takes out the jobs that are no longer expected. It changes no answer, because
// readers compare the time themselves.
func (a *arrivals) expire(now time.Time) {
	for len(a.order) > 0 && now.Sub(a.order[0].Promise.At) >= startPatience {
		a.remove(a.order[0])
	}
}

// on returns the jobs that are about to start on a node, by ID; some may have expired.
func (a *arrivals) on(node string) []*Job {
	if e := a.onNode[node]; e != nil {
		return e.jobs
	}
	return nil
}

// cpus is how many CPUs are about to be used on a node.
func (a *arrivals) cpus(node string, now time.Time) float64 {
	e := a.onNode[node]
	if e == nil {
		return 0
	}
	if now.Sub(a.order[0].Promise.At) < startPatience { // none has expired
		return e.cpus
	}
	sum := 0.0
	for _, j := range e.jobs {
		if j.expected(now) {
			sum += j.promisedCPUs()
		}
	}
	return sum
}
