package cluster

import (
	"cmp"
	"slices"
)

// sorted is a list in an order in which no two elements are equal.
type sorted[T any] struct {
	all     []T
	compare func(a, b T) int
}

func (s *sorted[T]) index(v T) (at int, found bool) {
	return slices.BinarySearchFunc(s.all, v, s.compare)
}

// put adds an element, or replaces an equal one. Adding one at the end takes amortized constant time.
func (s *sorted[T]) put(v T) {
	at, found := s.index(v)
	if found {
		s.all[at] = v
		return
	}
	s.all = slices.Insert(s.all, at, v)
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

// compareListed orders jobs by the time of their first event.
func compareListed(a, b *Job) int {
	return cmp.Or(cmp.Compare(a.ListedAt, b.ListedAt), cmp.Compare(a.First, b.First), cmp.Compare(a.ID, b.ID))
}

func compareEnds(a, b *Job) int { return cmp.Compare(a.EndOrder, b.EndOrder) }

func compareIDs(a, b *Job) int { return cmp.Compare(a.ID, b.ID) }
