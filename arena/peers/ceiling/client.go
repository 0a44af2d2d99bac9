package main

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"sync"
	"syscall"

	"github.com/anser-rpc/anser/arena/workload"
)

type call struct {
	done  chan struct{}
	reply []byte
	err   error
}

type conn struct {
	net.Conn
	mu      sync.Mutex // guards buf, spare, writing, id, pending, err
	buf     []byte
	spare   []byte
	writing bool
	id      uint64
	pending map[uint64]*call
	err     error // that ended the connection
}

func dial(ctx context.Context, addr string) (workload.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: nc, pending: map[uint64]*call{}}
	go c.read() // until Close
	return c, nil
}

func (c *conn) do(method uint32, req, reply message, k *call) error {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.id++
	c.pending[c.id] = k
	start := len(c.buf)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, 0)
	c.buf = binary.LittleEndian.AppendUint32(c.buf, method)
	c.buf = binary.LittleEndian.AppendUint64(c.buf, c.id)
	var err error
	if c.buf, err = appendMessage(c.buf, req); err != nil {
		c.buf = c.buf[:start]
		delete(c.pending, c.id)
		c.mu.Unlock()
		return err
	}
	binary.LittleEndian.PutUint32(c.buf[start:], uint32(len(c.buf)-start-headerSize))
	if !c.writing {
		c.writing = true
		c.mu.Unlock()
		runtime.Gosched() // let every runnable caller append first
		c.mu.Lock()
		for len(c.buf) > 0 {
			out := c.buf
			c.buf = c.spare[:0]
			c.mu.Unlock()
			_, err := c.Write(out)
			c.mu.Lock()
			c.spare = out
			if err != nil {
				c.failLocked(err)
				break
			}
		}
		c.writing = false
	}
	c.mu.Unlock()
	<-k.done
	if k.err != nil {
		return k.err
	}
	return reply.UnmarshalVT(k.reply)
}

func (c *conn) read() {
	err := readFrames(c, func(header, body []byte) error {
		id := binary.LittleEndian.Uint64(header[8:])
		c.mu.Lock()
		k := c.pending[id]
		delete(c.pending, id)
		c.mu.Unlock()
		if k == nil {
			return errors.New("a reply that nobody waits for")
		}
		k.reply = append(k.reply[:0], body...)
		k.done <- struct{}{}
		return nil
	}, func() error { return nil })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failLocked(err)
}

// failLocked ends all calls and those to come. The peer of the connection sees that it is closed.
func (c *conn) failLocked(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	c.Close()
	for _, k := range c.pending {
		k.err = err
		k.done <- struct{}{}
	}
	c.pending = nil
}

// ended says whether err is the way in which connections end.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// Say is for callers without a view; each of its calls makes one.
func (c *conn) Say(ctx context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	return c.Caller().Say(ctx, in)
}

// Add is for callers without a view; each of its calls makes one.
func (c *conn) Add(ctx context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	return c.Caller().Add(ctx, in)
}

// Caller returns the view of one caller, with its own call and reply buffer.
func (c *conn) Caller() workload.Conn {
	return &caller{conn: c, call: call{done: make(chan struct{}, 1)}}
}

type caller struct {
	*conn
	call call
}

func (c *caller) Say(_ context.Context, in *workload.BenchmarkMessage) (workload.Said, error) {
	out := new(workload.BenchmarkMessage)
	return out, c.do(methodSay, in, out, &c.call)
}

func (c *caller) Add(_ context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	out := new(workload.AddReply)
	return out, c.do(methodAdd, in, out, &c.call)
}
