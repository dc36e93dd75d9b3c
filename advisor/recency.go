package advisor

import "container/list"

// recency keeps names in the order of their last use, so that the least recently used
// can be forgotten. The order follows from the events alone: no clock counts.
type recency struct {
	order *list.List // of names, the least recently used first
	at    map[string]*list.Element
}

func newRecency() recency { return recency{list.New(), map[string]*list.Element{}} }

// use notes that a name is used now.
func (r *recency) use(name string) {
	if e := r.at[name]; e != nil {
		r.order.MoveToBack(e)
		return
	}
	r.at[name] = r.order.PushBack(name)
}

// remove forgets a name.
func (r *recency) remove(name string) {
	if e := r.at[name]; e != nil {
		r.order.Remove(e)
		delete(r.at, name)
	}
}

// oldest returns the least recently used name; ok is false without any.
func (r *recency) oldest() (name string, ok bool) {
	e := r.order.Front()
	if e == nil {
		return "", false
	}
	return e.Value.(string), true
}

// names returns all names, the least recently used first.
func (r *recency) names() []string {
	all := make([]string, 0, r.order.Len())
	for e := r.order.Front(); e != nil; e = e.Next() {
		all = append(all, e.Value.(string))
	}
	return all
}
