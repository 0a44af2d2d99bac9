package anser

import (
	"errors"
	"sync"
	"testing"
)

// Writing is reserved if several callers return at once and nothing else writes or can write.
func TestReserveWriting(t *testing.T) {
	for _, c := range []struct {
		name     string
		replies  int
		open     int
		writing  bool
		err      error
		reserved bool
	}{
		{"few", fewReplies, 0, false, nil, true},
		{"too few", fewReplies - 1, 0, false, nil, false},
		{"others open", fewReplies, manyOpen - 1, false, nil, true},
		{"many open", replyBatch, manyOpen, false, nil, false},
		{"somebody writes", replyBatch, 0, true, nil, false},
		{"lost", replyBatch, 0, false, errors.New("lost"), false},
	} {
		half := &callerHalf{conn: new(conn)}
		half.writing, half.err = c.writing, c.err
		for id := range uint64(c.open) {
			half.open.Put(id, &call{id: id})
		}
		if got := half.reserveLocked(c.replies); got != c.reserved || half.reserved != c.reserved || half.writing != (c.writing || c.reserved) {
			t.Errorf("%s: reserved %v (%v), writing %v, want %v", c.name, got, half.reserved, half.writing, c.reserved)
		}
	}
}

// writeBehind does nothing once a caller has written; otherwise it ends the reservation.
func TestWriteBehind(t *testing.T) {
	for _, reserved := range []bool{true, false} {
		half := &callerHalf{conn: new(conn)}
		half.writing, half.reserved = true, reserved
		half.background = new(sync.WaitGroup)
		half.background.Add(1)
		half.writeBehind()
		if half.reserved || half.writing == reserved {
			t.Errorf("reserved %v: then reserved %v, writing %v", reserved, half.reserved, half.writing)
		}
	}
}

// A call that has ended is not read for another attempt: its reply has replaced the request.
func TestIfOpen(t *testing.T) {
	half := &callerHalf{conn: new(conn)}
	k := &call{id: 1}
	half.open.Put(k.id, k)
	for _, other := range []*call{{id: 1}, {id: 2}} {
		if half.ifOpen(other, func() { t.Errorf("the call %d, which is not open, was read", other.id) }) {
			t.Errorf("the call %d is open", other.id)
		}
	}
	read := false
	if !half.ifOpen(k, func() { read = true }) || !read {
		t.Error("an open call was not read")
	}
}

// A call that was not sent yet has the id of an earlier attempt or use. Giving it up does not
// remove another call with this id from the connection.
func TestCancelBeforeStart(t *testing.T) {
	half := &callerHalf{conn: new(conn)}
	half.err = errConnClosed // no CANCEL is written
	open := &call{id: 7}
	half.open.Put(open.id, open)
	if taken, _ := half.cancel(&call{id: 7}, false); taken {
		t.Error("a call that is not on the connection was taken off it")
	}
	if half.open.Get(open.id) != open {
		t.Error("the call of another caller was taken off the connection")
	}
	if taken, _ := half.cancel(open, false); !taken || half.open.Len() != 0 {
		t.Error("an open call was not taken back")
	}
}
