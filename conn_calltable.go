package anser

// table finds what is open by its id. Ids only grow, so that most are found at once in a ring at
// their low bits; one that meets an older one that is still open goes to a map. Not safe for
// concurrent use.
type table[T interface {
	comparable
	callID() uint64
}] struct {
	ring []T // length is a power of two
	over map[uint64]T
	n    int
}

const (
	firstRing = 16
	maxRing   = 1 << 21
)

func (t *table[T]) put(id uint64, v T) {
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

func (t *table[T]) grow() {
	old := t.ring
	t.ring = make([]T, 2*len(old))
	var none T
	for _, v := range old {
		if v != none {
			t.ring[v.callID()&uint64(len(t.ring)-1)] = v
		}
	}
}

// get returns what put stored under id, or the zero value.
func (t *table[T]) get(id uint64) T {
	if len(t.ring) > 0 {
		if v := t.ring[id&uint64(len(t.ring)-1)]; v != *new(T) && v.callID() == id {
			return v
		}
	}
	return t.over[id]
}

// take removes and returns what put stored under id, or the zero value.
func (t *table[T]) take(id uint64) T {
	var none T
	if len(t.ring) > 0 {
		slot := &t.ring[id&uint64(len(t.ring)-1)]
		if v := *slot; v != none && v.callID() == id {
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

// each calls f for everything that is open; f may not change the table.
func (t *table[T]) each(f func(T)) {
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
