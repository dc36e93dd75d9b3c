package advisor

import (
	"cmp"
	"container/list"
	"slices"

	"courier/schemas"
)

// jobList is a list of jobs in the order of a key. Adding at the end and removing
// anywhere take constant time, averaged over many calls, and a search is binary. Jobs may
// share a key: they stay in the order in which they were added.
type jobList struct {
	entries []listEntry
	count   int // entries that are not removed
}

// entry is a place in a list: a job, a packed job, or neither, which is a removed entry.
type listEntry struct {
	key  uint64
	job  *Job
	past *pastJob
}

func (e *listEntry) removed() bool { return e.job == nil && e.past == nil }

func (e *listEntry) state() schemas.State {
	if e.job != nil {
		return e.job.State
	}
	return e.past.state
}

// unpacked returns the job of an entry that is not removed.
func (e *listEntry) unpacked() *Job {
	if e.job != nil {
		return e.job
	}
	return e.past.unpack()
}

// add inserts an entry behind those of the same key.
func (l *jobList) add(e listEntry) {
	l.count++
	if n := len(l.entries); n == 0 || l.entries[n-1].key <= e.key {
		l.entries = append(l.entries, e)
		return
	}
	l.entries = slices.Insert(l.entries, l.lowerBound(e.key+1), e)
}

func (l *jobList) lowerBound(key uint64) int {
	at, _ := slices.BinarySearchFunc(l.entries, key, func(e listEntry, key uint64) int {
		return cmp.Compare(e.key, key)
	})
	return at
}

// index returns where a job or a packed job is, -1 if it is not in the list.
func (l *jobList) index(of listEntry) int {
	for i := l.lowerBound(of.key); i < len(l.entries) && l.entries[i].key == of.key; i++ {
		if e := &l.entries[i]; e.job == of.job && e.past == of.past && !e.removed() {
			return i
		}
	}
	return -1
}

// remove takes an entry out and reports whether it was there.
func (l *jobList) remove(e listEntry) bool {
	i := l.index(e)
	if i < 0 {
		return false
	}
	l.entries[i].job, l.entries[i].past = nil, nil
	l.count--
	l.tidy()
	return true
}

// replace puts another entry with the same key in the place of one.
func (l *jobList) replace(old, with listEntry) {
	if i := l.index(old); i >= 0 {
		l.entries[i] = with
	}
}

// tidy drops removed entries: those at the ends at once, others when most are removed.
func (l *jobList) tidy() {
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

// first returns the first entry; ok is false for an empty list.
func (l *jobList) first() (e listEntry, ok bool) {
	if len(l.entries) == 0 { // tidy keeps a removed entry from being the first
		return listEntry{}, false
	}
	return l.entries[0], true
}

// recency keeps names in the order of their last use, so that the least recently used
// can be forgotten. The order follows from the events alone: no clock counts.
type lruNames struct {
	order *list.List // of names, the least recently used first
	at    map[string]*list.Element
}

func newLRUNames() lruNames { return lruNames{list.New(), map[string]*list.Element{}} }

// use notes that a name is used now.
func (r *lruNames) use(name string) {
	if e := r.at[name]; e != nil {
		r.order.MoveToBack(e)
		return
	}
	r.at[name] = r.order.PushBack(name)
}

// remove forgets a name.
func (r *lruNames) remove(name string) {
	if e := r.at[name]; e != nil {
		r.order.Remove(e)
		delete(r.at, name)
	}
}

// oldest returns the least recently used name; ok is false without any.
func (r *lruNames) oldest() (name string, ok bool) {
	e := r.order.Front()
	if e == nil {
		return "", false
	}
	return e.Value.(string), true
}

// names returns all names, the least recently used first.
func (r *lruNames) names() []string {
	all := make([]string, 0, r.order.Len())
	for e := r.order.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(string))
	}
	return all
}
