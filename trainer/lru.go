package trainer

import "container/list"

// lru is a map of bounded size: a new key replaces the least recently used one. Create it with
// newLRU.
type lru[K comparable, V any] struct {
	limit int
	by    map[K]*list.Element
	order *list.List // of *lruEntry, the least recently used first
}

type lruEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](limit int) *lru[K, V] {
	return &lru[K, V]{limit: limit, by: map[K]*list.Element{}, order: list.New()}
}

// get returns the value of a key and marks it as used.
func (l *lru[K, V]) get(k K) (v V, found bool) {
	at, found := l.by[k]
	if !found {
		return v, false
	}
	l.order.MoveToBack(at)
	return at.Value.(*lruEntry[K, V]).value, true
}

// put sets the value of a key and marks it as used.
func (l *lru[K, V]) put(k K, v V) {
	if at := l.by[k]; at != nil {
		at.Value.(*lruEntry[K, V]).value = v
		l.order.MoveToBack(at)
		return
	}
	if len(l.by) >= l.limit {
		oldest := l.order.Remove(l.order.Front()).(*lruEntry[K, V])
		delete(l.by, oldest.key)
	}
	l.by[k] = l.order.PushBack(&lruEntry[K, V]{k, v})
}

// each calls a function for every key, the least recently used first.
func (l *lru[K, V]) each(do func(K, V)) {
	for at := l.order.Front(); at != nil; at = at.Next() {
		e := at.Value.(*lruEntry[K, V])
		do(e.key, e.value)
	}
}
