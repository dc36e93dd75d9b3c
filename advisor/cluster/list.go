package cluster

import (
	"cmp"
	"slices"
	"sort"

	"courier/schemas"
)

// jobList is a list of jobs, sorted by a key and then by a tie. Appending and removing take amortized
// constant time, and a search is binary. Jobs with the same key and tie stay in the order in which
// they were added.
type jobList struct {
	entries []listEntry
	count   int // entries that are not removed
}

// listEntry is an entry of a list: a job, a packed job, or neither if it has been removed.
type listEntry struct {
	key    uint64
	tie    uint64 // orders entries with the same key
	job    *Job
	packed *packedJob
}

func (e *listEntry) removed() bool { return e.job == nil && e.packed == nil }

func (e *listEntry) state() schemas.State {
	if e.job != nil {
		return e.job.State
	}
	return e.packed.State
}

// unpacked returns the job of an entry that has not been removed.
func (e *listEntry) unpacked() *Job {
	if e.job != nil {
		return e.job
	}
	return e.packed.unpack()
}

func (e *listEntry) compare(to *listEntry) int {
	return cmp.Or(cmp.Compare(e.key, to.key), cmp.Compare(e.tie, to.tie))
}

// add inserts an entry after all entries with the same key and tie.
func (l *jobList) add(e listEntry) {
	l.count++
	if n := len(l.entries); n == 0 || l.entries[n-1].compare(&e) <= 0 {
		l.entries = append(l.entries, e)
		return
	}
	at := sort.Search(len(l.entries), func(i int) bool { return l.entries[i].compare(&e) > 0 })
	l.entries = slices.Insert(l.entries, at, e)
}

// lowerBound returns the index of the first entry that is not before e.
func (l *jobList) lowerBound(e *listEntry) int {
	return sort.Search(len(l.entries), func(i int) bool { return l.entries[i].compare(e) >= 0 })
}

// index returns the index of a job or a packed job, or -1.
func (l *jobList) index(of listEntry) int {
	for i := l.lowerBound(&of); i < len(l.entries) && l.entries[i].compare(&of) == 0; i++ {
		if e := &l.entries[i]; e.job == of.job && e.packed == of.packed && !e.removed() {
			return i
		}
	}
	return -1
}

// remove removes an entry and reports whether it was in the list.
func (l *jobList) remove(e listEntry) bool {
	i := l.index(e)
	if i < 0 {
		return false
	}
	l.entries[i].job, l.entries[i].packed = nil, nil
	l.count--
	l.dropRemoved()
	return true
}

// replace replaces an entry by another one with the same key.
func (l *jobList) replace(old, with listEntry) {
	if i := l.index(old); i >= 0 {
		l.entries[i] = with
	}
}

// dropRemoved drops removed entries: at the ends immediately, elsewhere when most entries have
// been removed.
func (l *jobList) dropRemoved() {
	for len(l.entries) > 0 && l.entries[0].removed() {
		l.entries = l.entries[1:]
	}
	for n := len(l.entries); n > 0 && l.entries[n-1].removed(); n-- {
		l.entries = l.entries[:n-1]
	}
	const few = 64
	if len(l.entries) > 2*l.count+few {
		kept := make([]listEntry, 0, 2*l.count)
		for i := range l.entries {
			if !l.entries[i].removed() {
				kept = append(kept, l.entries[i])
			}
		}
		l.entries = kept
	}
}

// first returns the first entry; ok is false if the list is empty.
func (l *jobList) first() (e listEntry, ok bool) {
	if len(l.entries) == 0 { // dropRemoved keeps removed entries from being first
		return listEntry{}, false
	}
	return l.entries[0], true
}

// orderEntry returns the entry of the packed job in Cluster.order.
func (p *packedJob) orderEntry() listEntry {
	return listEntry{key: p.ListedAt, tie: p.First, packed: p}
}

// orderEntry returns the entry of the job in Cluster.order.
func (j *Job) orderEntry() listEntry { return listEntry{key: j.ListedAt, tie: j.First, job: j} }

// expiryEntry returns the entry of the job in Cluster.unstarted.
func (j *Job) expiryEntry() listEntry { return listEntry{key: j.Expiry, tie: j.First, job: j} }
