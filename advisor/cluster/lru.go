package cluster

import "container/list"

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

// removeOldest removes the least recently used of at least one name, and returns it.
func (r *lruNames) removeOldest() string {
	name := r.order.Front().Value.(string)
	r.remove(name)
	return name
}

// names returns all names, the least recently used first.
func (r *lruNames) names() []string {
	all := make([]string, 0, r.order.Len())
	for e := r.order.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(string))
	}
	return all
}
