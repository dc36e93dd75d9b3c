package regress

// ranks hold some items, fewer than 256, sorted by each feature. When their node
// is divided each side stays sorted in a part of its own, so that a whole subtree
// is searched with the items sorted once (Shafer, Agrawal, Mehta 1996, SPRINT).
type ranks struct {
	keys  [][2 * 256]uint16 // by feature: bin, then number of the item; half of it is room
	spare [256]uint16
	right [256]uint8 // by number of the item: 1 where it goes right
}

// fewSorted is how many items are sorted faster one by one than by digits.
const fewSorted = 20

func newRanks(features int) ranks { return ranks{keys: make([][2 * 256]uint16, features)} }

// of are the keys of n items, from a place on, by a feature.
func (r *ranks) of(feature, from, n int) []uint16 {
	return (*[256]uint16)(r.keys[feature][from:])[:n]
}

// sort sorts items by a feature, and those in one bin by number.
func (r *ranks) sort(feature int, bins *binned, items []int32) {
	codes, keys := bins.codes[feature], r.keys[feature][:len(items)]
	for i, row := range items {
		keys[i] = uint16(codes[row])<<8 | uint16(i)
	}
	if len(keys) > fewSorted {
		r.byDigit(keys, 8)
		r.byDigit(keys, 12)
		return
	}
	for i, key := range keys {
		at := i
		for ; at > 0 && keys[at-1] > key; at-- {
			keys[at] = keys[at-1]
		}
		keys[at] = key
	}
}

// byDigit sorts keys by four of their bits and leaves equal ones in order.
func (r *ranks) byDigit(keys []uint16, shift uint) {
	var place [16]uint8
	for _, key := range keys {
		place[key>>shift&15]++
	}
	next := uint8(0)
	for digit, count := range place {
		place[digit] = next
		next += count
	}
	for _, key := range keys {
		at := &place[key>>shift&15]
		r.spare[*at] = key
		*at++
	}
	copy(keys, r.spare[:])
}

// divide brings the first left items by one feature, of n from a place on, to the
// front of all features. Each key is written to both sides and counted on one, because
// a branch would be guessed wrong half of the time.
func (r *ranks) divide(by, from, left, n int, features []int) {
	for i, key := range r.of(by, from, n) {
		r.right[uint8(key)] = 0
		if i >= left {
			r.right[uint8(key)] = 1
		}
	}
	for _, f := range features {
		if f == by {
			continue
		}
		keys := (*[256]uint16)(r.keys[f][from:])
		left, right := uint8(0), uint8(0)
		for _, key := range keys[:n] {
			goes := r.right[uint8(key)]
			keys[left], r.spare[right] = key, key
			left += 1 - goes
			right += goes
		}
		copy(keys[left:n], r.spare[:right])
	}
}
