//go:build unix

package main

import (
	"encoding/binary"
	"log"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/anser-rpc/anser/internal/benchpb"
)

type call struct {
	done  chan struct{}
	reply []byte
}

type conn struct {
	net.Conn
	codec   codec
	mu      sync.Mutex // guards buf, spare, writing, id, pending, writes
	buf     []byte
	spare   []byte
	writing bool
	id      uint64
	pending map[uint64]*call
	writes  int
}

func (c *conn) do(req *benchpb.BenchmarkMessage, k *call) *benchpb.BenchmarkMessage {
	c.mu.Lock()
	c.id++
	c.pending[c.id] = k
	start := len(c.buf)
	c.buf = binary.LittleEndian.AppendUint64(c.buf, 0)
	c.buf = binary.LittleEndian.AppendUint64(c.buf, c.id)
	c.buf = c.codec.append(c.buf, req)
	binary.LittleEndian.PutUint32(c.buf[start:], uint32(len(c.buf)-start-headerSize))
	if !c.writing {
		c.writing = true
		c.mu.Unlock()
		runtime.Gosched() // let every runnable caller append first
		c.mu.Lock()
		for len(c.buf) > 0 {
			out := c.buf
			c.buf = c.spare[:0]
			c.writes++
			c.mu.Unlock()
			if _, err := c.Write(out); err != nil {
				log.Fatal(err)
			}
			c.mu.Lock()
			c.spare = out
		}
		c.writing = false
	}
	c.mu.Unlock()
	<-k.done
	return c.codec.parse(k.reply)
}

func (c *conn) read() {
	readFrames(c, func(header, body []byte) {
		id := binary.LittleEndian.Uint64(header[8:])
		c.mu.Lock()
		k := c.pending[id]
		delete(c.pending, id)
		c.mu.Unlock()
		k.reply = append(k.reply[:0], body...)
		k.done <- struct{}{}
	}, func() error { return nil })
}

// load runs the workload and returns its figures.
func load(o options) map[string]any {
	pool := make([]*conn, o.conns)
	for i := range pool {
		c, err := net.Dial(o.network, o.addr)
		if err != nil {
			log.Fatal(err)
		}
		defer c.Close()
		pool[i] = &conn{Conn: c, codec: o.codec, pending: map[uint64]*call{}}
		go pool[i].read()
	}
	each := o.calls / o.callers
	latencies := make([][]time.Duration, o.callers)
	var wg sync.WaitGroup
	begin, cpu := time.Now(), cpuTime()
	for i := range o.callers {
		wg.Go(func() { latencies[i] = callInTurn(pool[i%len(pool)], each) })
	}
	wg.Wait()
	elapsed, cpu := time.Since(begin), cpuTime()-cpu
	all := slices.Concat(latencies...)
	writes := 0
	for _, c := range pool {
		writes += c.writes
	}
	figures := map[string]any{
		"c": o.callers, "conns": o.conns, "codec": "vt", "calls": len(all),
		"calls_per_s":            int(float64(len(all)) / elapsed.Seconds()),
		"client_cpu_us_per_call": cpu.Seconds() * 1e6 / float64(len(all)),
		"calls_per_write":        float64(len(all)) / float64(writes),
	}
	if o.codec.std {
		figures["codec"] = "std"
	}
	percentiles(figures, all)
	return figures
}

// callInTurn makes n calls one after another and returns how long each took.
func callInTurn(c *conn, n int) []time.Duration {
	req := benchpb.Filled()
	k := &call{done: make(chan struct{}, 1)}
	mine := make([]time.Duration, 0, n)
	for range n {
		t := time.Now()
		m := c.do(req, k)
		mine = append(mine, time.Since(t))
		if !benchpb.Answered(m) {
			log.Fatal("wrong reply")
		}
	}
	return mine
}
