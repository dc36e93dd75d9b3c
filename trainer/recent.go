package trainer

import "maps"

// recent is a map of the last used keys: at most limit, and at least half as many. It has two generations.
type recent[K comparable, V any] struct {
	limit       int
	now, before map[K]V
}

// get returns the value of a key and marks it as used.
func (r *recent[K, V]) get(k K) (v V, found bool) {
	if v, found = r.now[k]; found {
		return v, true
	}
	if v, found = r.before[k]; found {
		r.put(k, v)
	}
	return v, found
}

// put sets the value of a key and marks it as used.
func (r *recent[K, V]) put(k K, v V) {
	if r.now == nil || len(r.now) >= r.limit/2 {
		r.now, r.before = map[K]V{}, r.now
	}
	r.now[k] = v
}

// all returns the keys and values, unordered.
func (r *recent[K, V]) all() map[K]V {
	all := maps.Clone(r.before)
	if all == nil {
		return r.now
	}
	maps.Copy(all, r.now)
	return all
}
