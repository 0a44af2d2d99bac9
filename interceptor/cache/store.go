package cache

import (
	"container/list"
	"reflect"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/interceptor/internal/share"
)

// key identifies an entry. text contains the codec, the method, the values of Vary and Partition,
// and the request.
type key struct {
	reply reflect.Type // requested by the caller on a client; nil on a server
	text  string
}

// entry is a cached reply or error. It is immutable once it is in the store.
type entry struct {
	key
	method    *method
	codec     codec.Codec
	request   int // offset of the request in text
	replyType reflect.Type
	reply     []byte
	err       error
	ends      time.Time // when it expires
	gone      time.Time // when it can no longer be used as a stale entry
	place     *list.Element
}

// overhead is the approximate memory of an entry in bytes, without its texts.
const overhead = 320

func (e *entry) size() int64 {
	n := int64(overhead + len(e.text) + cap(e.reply))
	if e.err != nil {
		n += int64(len(e.err.Error()))
	}
	return n
}

func (e *entry) result() share.Result {
	if e.err != nil {
		return share.Result{Err: e.err}
	}
	return share.NewResult(e.replyType, e.reply, e.codec)
}

// store holds the most recently used entries within limits. It is not safe for concurrent use.
type store struct {
	entries  map[key]*entry
	order    list.List // of *entry, the most recently used one in front
	maxLen   int
	maxBytes int64
	bytes    int64
	evicted  int64
}

func newStore(entries int, bytes int64) store {
	return store{entries: make(map[key]*entry), maxLen: entries, maxBytes: bytes}
}

func (s *store) len() int { return len(s.entries) }

// get returns the entry and marks it as used.
func (s *store) get(reply reflect.Type, text []byte) *entry {
	e := s.entries[key{reply, string(text)}] // does not allocate
	if e != nil {
		s.order.MoveToFront(e.place)
	}
	return e
}

// put adds an entry that is not larger than the store, and replaces one with the same key.
func (s *store) put(e *entry) {
	s.drop(e.key)
	e.place = s.order.PushFront(e)
	s.entries[e.key] = e
	s.bytes += e.size()
	for len(s.entries) > s.maxLen || s.bytes > s.maxBytes {
		s.remove(s.order.Back().Value.(*entry))
		s.evicted++
	}
}

func (s *store) drop(k key) {
	if e := s.entries[k]; e != nil {
		s.remove(e)
	}
}

func (s *store) remove(e *entry) {
	delete(s.entries, e.key)
	s.order.Remove(e.place)
	s.bytes -= e.size()
}

func (s *store) removeIf(f func(*entry) bool) (n int) {
	for _, e := range s.entries {
		if f(e) {
			s.remove(e)
			n++
		}
	}
	return n
}
