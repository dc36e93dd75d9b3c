package cluster

import (
	"cmp"
	"slices"
	"time"
)

// arrivals are the jobs that a policy has admitted and that are about to start. Their number is
// bounded by the admissions within schemas.Reservation.
type arrivals struct {
	order  sorted[*Job]      // by the time of their promise, then by ID
	onNode map[string][]*Job // by ID
}

func newArrivals() arrivals {
	return arrivals{
		order: sorted[*Job]{compare: func(a, b *Job) int {
			return cmp.Or(a.Promise.At.Compare(b.Promise.At), compareIDs(a, b))
		}},
		onNode: map[string][]*Job{},
	}
}

// add adds an admitted job, unless it has already been added.
func (a *arrivals) add(j *Job) {
	a.remove(j)
	a.order.put(j)
	for _, name := range slices.Compact(slices.Sorted(slices.Values(j.Promise.Nodes))) {
		a.onNode[name] = append(a.onNode[name], j)
		slices.SortFunc(a.onNode[name], compareIDs)
	}
}

// remove removes a job that has started, has ended, or exceeded schemas.Reservation.
func (a *arrivals) remove(j *Job) {
	a.order.remove(j)
	for _, name := range j.Promise.Nodes {
		others := slices.DeleteFunc(a.onNode[name], func(o *Job) bool { return o.ID == j.ID })
		if a.onNode[name] = others; len(others) == 0 {
			delete(a.onNode, name)
		}
	}
}

// on returns the jobs that are about to start on a node.
func (a *arrivals) on(node string, now time.Time) (jobs []*Job) {
	for _, j := range a.onNode[node] {
		if j.IsExpected(now) {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// cpus returns the number of CPUs that are about to be used on a node.
func (a *arrivals) cpus(node string, now time.Time) (sum float64) {
	for _, j := range a.on(node, now) {
		sum += j.promisedCPUs()
	}
	return sum
}
