package anser

import (
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/anser-rpc/anser/wire"
)

func idOf(n uint64) (id replyID) {
	binary.LittleEndian.PutUint64(id[:], n*0x9E3779B97F4A7C15)
	return id
}

// replyModel is what a replyMemory promises, without its bounds.
type replyModel struct {
	running map[uint64]*runningKey
	ended   map[uint64]int64 // on the memory's clock
}

// check compares what the memory has counted with what it holds.
func (m *replyMemory) check(t *testing.T) {
	t.Helper()
	keys, bytes, shares := len(m.running), 0, make(map[*keyShare]int)
	for _, r := range m.running {
		shares[r.share]++
	}
	for _, s := range m.spans {
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
	if keys != m.keys || bytes != m.bytes || len(shares) != len(m.shares) || len(shares) != len(m.largest) {
		t.Fatalf("%d keys, %d bytes of replies and %d clients, counted as %d, %d and %d", keys, bytes, len(shares), m.keys, m.bytes, len(m.shares))
	}
	for share, n := range shares {
		kept := 0
		for _, r := range share.replies {
			kept += len(r.frame) + replyOverhead
		}
		if share.keys != n || share.bytes != kept || m.largest[share.place] != share || share.bytes > m.largest[0].bytes {
			t.Fatalf("a client with %d keys and %d bytes has the counts %d and %d", n, kept, share.keys, share.bytes)
		}
	}
	if m.keys*keyBytes+m.bytes > m.limits.Bytes {
		t.Fatalf("%d keys and %d bytes of replies are over the limit of %d", m.keys, m.bytes, m.limits.Bytes)
	}
}

// FuzzReplyMemory drives a memory with clients that run, repeat, are refused and wait. It never runs what it has promised to
// know, keeps within its bytes, and counts what it holds.
func FuzzReplyMemory(f *testing.F) {
	for seed := range uint64(8) {
		b := make([]byte, 4000)
		rnd := rand.New(rand.NewPCG(seed, 1))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	ok := append(wire.AppendHeader(nil, wire.Header{Type: wire.TypeReply, ID: 1}), make([]byte, 600)...)
	no := wire.AppendError(nil, 1, 0, &wire.ErrorBody{Code: wire.Unavailable, Outcome: wire.Refused})
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := &replyMemory{limits: ReplyCacheLimits{Bytes: 8 << 10, Age: 10 * time.Second}}
		model := replyModel{make(map[uint64]*runningKey), make(map[uint64]int64)}
		now := nanotime()
		m.tick(now)
		for ; len(ops) >= 2; ops = ops[2:] {
			op, n := ops[0], uint64(ops[1])
			client := [sha256.Size]byte{byte(n % 5)}
			switch {
			case op < 140:
				e, fault := m.enter(nil, idOf(n), n, client)
				ended, ran := model.ended[n]
				promised := ran && m.clock-ended <= int64(m.limits.Age)
				switch {
				case promised && !e.ran:
					t.Fatalf("%d ran %v ago and is not known: %+v, %v", n, time.Duration(m.clock-ended), e, fault)
				case fault != nil || e.ran:
				case e.first != (model.running[n] == nil):
					t.Fatalf("%d is first: %t", n, e.first)
				case e.first:
					model.running[n] = e.runs
				}
			case op < 230:
				r := model.running[n]
				if r == nil {
					break
				}
				delete(model.running, n)
				if op < 160 {
					m.settle(r, no)
					break
				}
				m.settle(r, ok[:wire.HeaderSize+int(op)])
				model.ended[n] = m.clock
			default:
				// A stop of the process is not time for which it has run.
				before := m.clock
				now += int64(op-229) * int64(time.Second)
				m.tick(now)
				if m.clock-before > int64(maxTick) {
					t.Fatalf("the clock went on by %v", time.Duration(m.clock-before))
				}
			}
			m.check(t)
		}
	})
}

// A key takes as many bytes as it is counted for.
func TestMemoryOfKeys(t *testing.T) {
	const n = 300_000
	m := &replyMemory{limits: ReplyCacheLimits{Bytes: 1 << 30, Age: time.Hour}}
	heap := func() uint64 {
		runtime.GC()
		var st runtime.MemStats
		runtime.ReadMemStats(&st)
		return st.HeapAlloc
	}
	before := heap()
	frame := wire.AppendHeader(nil, wire.Header{Type: wire.TypeReply, ID: 1})
	for i := range uint64(n) {
		e, fault := m.enter(nil, idOf(i), i, [sha256.Size]byte{})
		if fault != nil {
			t.Fatal(fault)
		}
		m.limits.Bytes = 1 // no reply
		m.settle(e.runs, frame)
		m.limits.Bytes = 1 << 30
	}
	used := float64(int64(heap())-int64(before)) / n
	t.Logf("%.0f bytes for each key", used)
	if used > 1.15*keyBytes {
		t.Errorf("a key takes %.0f bytes and is counted as %d", used, keyBytes)
	}
	runtime.KeepAlive(m)
}

// Replies are dropped for room where they are most: a client with few keeps them.
func TestRepliesOfTheLargestClientAreDropped(t *testing.T) {
	m := &replyMemory{limits: ReplyCacheLimits{Bytes: 64 << 10, Age: time.Hour}}
	frame := append(wire.AppendHeader(nil, wire.Header{Type: wire.TypeReply, ID: 1}), make([]byte, 1000)...)
	run := func(n uint64, client byte) {
		e, fault := m.enter(nil, idOf(n), n, [sha256.Size]byte{client})
		if fault != nil {
			t.Fatal(fault)
		}
		m.settle(e.runs, frame)
	}
	for n := range uint64(10) {
		run(n, 1)
	}
	for n := uint64(100); n < 400; n++ {
		run(n, 2)
	}
	m.check(t)
	for n := range uint64(10) {
		if e, _ := m.enter(nil, idOf(n), n, [sha256.Size]byte{1}); !e.ran || e.frame == nil {
			t.Errorf("the reply of call %d is gone", n)
		}
	}
	if e, _ := m.enter(nil, idOf(100), 100, [sha256.Size]byte{2}); !e.ran || e.frame != nil {
		t.Error("the oldest reply of the client with most replies is still there")
	}
}
