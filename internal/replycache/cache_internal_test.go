package replycache

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

func idOf(n uint64) (id ID) {
	binary.LittleEndian.PutUint64(id[:], n*0x9E3779B97F4A7C15)
	return id
}

// model is what a Cache promises, without its bounds.
type model struct {
	running map[uint64]*Call[uint64]
	ended   map[uint64]time.Duration // on the cache's clock
}

// check compares what the cache has counted with what it holds.
func (c *Cache[C]) check(t *testing.T) {
	t.Helper()
	keys, bytes, shares := len(c.running), 0, make(map[*share]int)
	for _, r := range c.running {
		shares[r.share]++
	}
	for _, s := range c.spans {
		keys += len(s.records)
		for _, r := range s.records {
			if r.reply != nil {
				bytes += len(r.reply.frame) + replyOverhead
			}
		}
		for share, n := range s.counts {
			shares[share] += n
		}
	}
	if keys != c.keys || bytes != c.replies || len(shares) != len(c.shares) || len(shares) != len(c.largest) {
		t.Fatalf("%d keys, %d bytes of replies and %d clients, counted as %d, %d and %d", keys, bytes, len(shares), c.keys, c.replies, len(c.shares))
	}
	for share, n := range shares {
		kept := 0
		for _, r := range share.replies {
			kept += len(r.frame) + replyOverhead
		}
		if share.keys != n || share.bytes != kept || c.largest[share.place] != share || share.bytes > c.largest[0].bytes {
			t.Fatalf("a client with %d keys and %d bytes has the counts %d and %d", n, kept, share.keys, share.bytes)
		}
	}
	if c.keys*keyBytes+c.replies > c.bytes {
		t.Fatalf("%d keys and %d bytes of replies are over the limit of %d", c.keys, c.replies, c.bytes)
	}
}

// FuzzCache drives a cache with clients that run, repeat, are refused and wait. It never runs what
// it has promised to know, keeps within its bytes, and counts what it holds.
func FuzzCache(f *testing.F) {
	for seed := range uint64(8) {
		b := make([]byte, 4000)
		rnd := rand.New(rand.NewPCG(seed, 1))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	frame := make([]byte, 1000)
	f.Fuzz(func(t *testing.T, ops []byte) {
		c := New[uint64](Config{Bytes: 8 << 10, Age: 10 * time.Second})
		m := model{make(map[uint64]*Call[uint64]), make(map[uint64]time.Duration)}
		now := mono.Now()
		c.Tick(now)
		for ; len(ops) >= 2; ops = ops[2:] {
			op, n := ops[0], uint64(ops[1])
			switch {
			case op < 140:
				e, err := c.Enter(n, idOf(n), n, Client{byte(n % 5)})
				ended, ran := m.ended[n]
				promised := ran && c.clock-ended <= c.age
				switch {
				case promised && !e.Ran:
					t.Fatalf("%d ran %v ago and is not known: %+v, %v", n, c.clock-ended, e, err)
				case err != nil || e.Ran:
				case e.First != (m.running[n] == nil):
					t.Fatalf("%d is first: %t", n, e.First)
				case e.First:
					m.running[n] = e.Call
				}
			case op < 230:
				r := m.running[n]
				if r == nil {
					break
				}
				delete(m.running, n)
				ran := op >= 160
				c.Settle(r, ran, frame[:op])
				if ran {
					m.ended[n] = c.clock
				}
			default:
				// A stop of the process is not time for which it has run.
				before := c.clock
				now = now.Add(time.Duration(op-229) * time.Second)
				c.Tick(now)
				if c.clock-before > maxTick {
					t.Fatalf("the clock advanced by %v", c.clock-before)
				}
			}
			c.check(t)
		}
		if got := len(c.Running()); got != len(m.running) {
			t.Fatalf("%d calls run, want %d", got, len(m.running))
		}
	})
}

// A key takes as many bytes as it is counted for.
func TestMemoryOfKeys(t *testing.T) {
	const n = 300_000
	c := New[*int](Config{Bytes: 1 << 30, Age: time.Hour})
	heap := func() uint64 {
		runtime.GC()
		var st runtime.MemStats
		runtime.ReadMemStats(&st)
		return st.HeapAlloc
	}
	before := heap()
	for i := range uint64(n) {
		e, err := c.Enter(nil, idOf(i), i, Client{})
		if err != nil {
			t.Fatal(err)
		}
		c.bytes = 1 // no reply
		c.Settle(e.Call, true, nil)
		c.bytes = 1 << 30
	}
	used := float64(int64(heap())-int64(before)) / n
	t.Logf("%.0f bytes for each key", used)
	if used > 1.15*keyBytes {
		t.Errorf("a key takes %.0f bytes and is counted as %d", used, keyBytes)
	}
	runtime.KeepAlive(c)
}

// run runs a call with the digest 0 and a reply of n bytes.
func run(t *testing.T, c *Cache[string], id ID, client byte, n int) {
	t.Helper()
	e, err := c.Enter("", id, 0, Client{client})
	if err != nil || !e.First {
		t.Fatal(e, err)
	}
	c.Settle(e.Call, true, make([]byte, n))
}

// Replies are dropped for room where they are most: a client with few keeps them.
func TestRepliesOfTheLargestClientAreDropped(t *testing.T) {
	c := New[string](Config{Bytes: 64 << 10, Age: time.Hour})
	for n := range uint64(10) {
		run(t, c, idOf(n), 1, 1000)
	}
	for n := uint64(100); n < 400; n++ {
		run(t, c, idOf(n), 2, 1000)
	}
	c.check(t)
	for n := range uint64(10) {
		if e, _ := c.Enter("", idOf(n), 0, Client{1}); !e.Ran || e.Frame == nil {
			t.Errorf("the reply of call %d is gone", n)
		}
	}
	if e, _ := c.Enter("", idOf(100), 0, Client{2}); !e.Ran || e.Frame != nil {
		t.Error("the oldest reply of the client with most replies is still there")
	}
}

// A repeated call waits for the first one, and runs itself if that one did not run.
func TestRepeats(t *testing.T) {
	c := New[string](Config{Bytes: MinBytes, Age: time.Hour})
	id := NewID(Client{1}, "A.B", "key")
	first, err := c.Enter("first", id, 7, Client{1})
	if err != nil || !first.First {
		t.Fatal(first, err)
	}
	again, err := c.Enter("again", id, 7, Client{1})
	if err != nil || again.First || again.Ran || again.Call != first.Call {
		t.Fatal(again, err)
	}
	if got := c.Running(); len(got) != 1 || got[0] != "first" {
		t.Errorf("%q run", got)
	}
	if _, err := c.Enter("", id, 8, Client{1}); !errors.Is(err, ErrOtherRequest) {
		t.Error("another request while the call runs:", err)
	}
	c.Settle(first.Call, false, []byte("refused"))
	<-again.Call.Done()
	if again, err = c.Enter("again", id, 7, Client{1}); err != nil || !again.First {
		t.Fatal("after a call that did not run:", again, err)
	}
	frame := []byte("reply")
	c.Settle(again.Call, true, frame)
	frame[0] = 'R'
	if e, err := c.Enter("", id, 7, Client{1}); err != nil || !e.Ran || string(e.Frame) != "reply" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := c.Enter("", id, 8, Client{1}); !errors.Is(err, ErrOtherRequest) {
		t.Error("another request after the call:", err)
	}
	if s := c.Stats(); s.Known != 1 || s.Replies != 1 || s.Clients != 1 || s.Bytes != keyBytes+replyOverhead+5 {
		t.Errorf("%+v", s)
	}
}

// One client cannot use up the room for keys.
func TestOneClientLeavesRoom(t *testing.T) {
	c := New[string](Config{Bytes: MinBytes, Age: time.Hour})
	fill := func(client byte) (n uint64) {
		for {
			e, err := c.Enter("", idOf(uint64(client)<<32|n), 0, Client{client})
			if errors.Is(err, ErrFull) {
				return n
			}
			c.Settle(e.Call, true, nil)
			n++
		}
	}
	one := fill(1)
	if other := fill(2); one < 40 || other == 0 {
		t.Errorf("one client has %d keys, and then another one %d", one, other)
	}
}

func TestIDs(t *testing.T) {
	seen := make(map[ID]bool)
	for _, id := range []ID{
		NewID(Client{}, "A.B", "key"), NewID(Client{1}, "A.B", "key"), NewID(Client{}, "A.B", "yek"),
		NewID(Client{}, "A.Bk", "ey"), NewID(Client{}, "A", ".Bkey"),
	} {
		if seen[id] {
			t.Error("two keys have the same id")
		}
		seen[id] = true
	}
}
