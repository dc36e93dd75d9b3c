package cluster

import (
	"cmp"
	"slices"

	"courier/schemas"
)

// sorted is a list in an order in which no two elements are equal.
type sorted[T any] struct {
	all     []T
	compare func(a, b T) int
}

func (s *sorted[T]) index(v T) (at int, found bool) {
	return slices.BinarySearchFunc(s.all, v, s.compare)
}

// add adds an element, unless it is in the list. Adding one at the end takes amortized constant time.
func (s *sorted[T]) add(v T) {
	if at, found := s.index(v); !found {
		s.all = slices.Insert(s.all, at, v)
	}
}

// remove removes an element. The shorter part of the list is moved, because most ended jobs are dropped
// from its beginning.
func (s *sorted[T]) remove(v T) {
	at, found := s.index(v)
	switch {
	case !found:
	case at < len(s.all)/2:
		copy(s.all[1:], s.all[:at])
		clear(s.all[:1])
		s.all = s.all[1:]
	default:
		s.all = slices.Delete(s.all, at, at+1)
	}
}

// replace replaces an element by an equal one.
func (s *sorted[T]) replace(v T) {
	if at, found := s.index(v); found {
		s.all[at] = v
	}
}

// jobKey are the fields of a job that index it.
type jobKey struct {
	ID       string        `json:"id,omitempty"`
	State    schemas.State `json:"state,omitempty"`
	First    uint64        `json:"first,omitempty"`     // sequence of its first event
	ListedAt uint64        `json:"listed_at,omitempty"` // its time, in Unix milliseconds: the order of job.list
	EndOrder uint64        `json:"end_order,omitempty"` // position among the jobs that may be dropped; 0 if it may not
}

func (k *jobKey) key() *jobKey { return k }

// listed is a Job or a packedJob.
type listed interface {
	key() *jobKey
	unpacked() *Job
}

// compareListed orders jobs by the time of their first event.
func compareListed(a, b listed) int {
	x, y := a.key(), b.key()
	return cmp.Or(cmp.Compare(x.ListedAt, y.ListedAt), cmp.Compare(x.First, y.First), cmp.Compare(x.ID, y.ID))
}

func compareEnds(a, b listed) int { return cmp.Compare(a.key().EndOrder, b.key().EndOrder) }

func compareIDs(a, b *Job) int { return cmp.Compare(a.ID, b.ID) }
