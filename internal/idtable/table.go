// Package idtable finds open calls by their IDs.
package idtable

// Table holds values by their call ids. Ids only grow, so most are found at once in a ring, at
// their low bits; an id whose slot is taken by an older open one goes to a map. The zero value is
// empty. Not safe for concurrent use.
type Table[T interface {
	comparable
	CallID() uint64 // the id under which the value is entered
}] struct {
	ring []T // length is a power of two
	over map[uint64]T
	n    int
}

const (
	firstRing = 16
	maxRing   = 1 << 21
)

// Len returns how many values there are.
func (t *Table[T]) Len() int { return t.n }

// Put stores v under id.
func (t *Table[T]) Put(id uint64, v T) {
	if len(t.ring) == 0 {
		t.ring = make([]T, firstRing)
	}
	t.n++
	for {
		slot := &t.ring[id&uint64(len(t.ring)-1)]
		var none T
		switch {
		case *slot == none:
			*slot = v
		case t.n > len(t.ring)/2 && len(t.ring) < maxRing:
			t.grow()
			continue
		default:
			if t.over == nil {
				t.over = make(map[uint64]T)
			}
			t.over[id] = v
		}
		return
	}
}

func (t *Table[T]) grow() {
	old := t.ring
	t.ring = make([]T, 2*len(old))
	var none T
	for _, v := range old {
		if v != none {
			t.ring[v.CallID()&uint64(len(t.ring)-1)] = v
		}
	}
}

// Get returns the value stored under id, or the zero value.
func (t *Table[T]) Get(id uint64) T {
	if len(t.ring) > 0 {
		if v := t.ring[id&uint64(len(t.ring)-1)]; v != *new(T) && v.CallID() == id {
			return v
		}
	}
	return t.over[id]
}

// Take removes and returns the value stored under id, or the zero value.
func (t *Table[T]) Take(id uint64) T {
	var none T
	if len(t.ring) > 0 {
		slot := &t.ring[id&uint64(len(t.ring)-1)]
		if v := *slot; v != none && v.CallID() == id {
			*slot = none
			t.n--
			return v
		}
	}
	if v, ok := t.over[id]; ok {
		delete(t.over, id)
		t.n--
		return v
	}
	return none
}

// Each calls f for every value; f must not change the table.
func (t *Table[T]) Each(f func(T)) {
	var none T
	for _, v := range t.ring {
		if v != none {
			f(v)
		}
	}
	for _, v := range t.over {
		f(v)
	}
}
