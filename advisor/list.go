package advisor

import (
	"cmp"
	"container/list"
	"slices"

	"courier/schemas"
)

// jobList is a list of jobs, sorted by a key. Appending and removing take amortized constant time,
// and a search is binary. Jobs with the same key stay in the order in which they were added.
type jobList struct {
	entries []listEntry
	count   int // entries that are not removed
}

// listEntry is an entry of a list: a job, a packed job, or neither if it has been removed.
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

// unpacked returns the job of an entry that has not been removed.
func (e *listEntry) unpacked() *Job {
	if e.job != nil {
		return e.job
	}
	return e.past.unpack()
}

// add inserts an entry after all entries with the same key.
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

// index returns the index of a job or a packed job, or -1.
func (l *jobList) index(of listEntry) int {
	for i := l.lowerBound(of.key); i < len(l.entries) && l.entries[i].key == of.key; i++ {
		if e := &l.entries[i]; e.job == of.job && e.past == of.past && !e.removed() {
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
	l.entries[i].job, l.entries[i].past = nil, nil
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

// lruNames keeps names in the order of their last use. The order depends on events only, not on a
// clock.
type lruNames struct {
	order *list.List // of names, the least recently used first
	at    map[string]*list.Element
}

func newLRUNames() lruNames { return lruNames{list.New(), map[string]*list.Element{}} }

// use marks a name as most recently used.
func (r *lruNames) use(name string) {
	if e := r.at[name]; e != nil {
		r.order.MoveToBack(e)
		return
	}
	r.at[name] = r.order.PushBack(name)
}

// remove removes a name.
func (r *lruNames) remove(name string) {
	if e := r.at[name]; e != nil {
		r.order.Remove(e)
		delete(r.at, name)
	}
}

// oldest returns the least recently used name; ok is false if there is none.
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
