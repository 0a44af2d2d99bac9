package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// weather is what a proxy does to the connections that pass it. The zero weather does nothing.
type weather struct {
	Delay, Jitter time.Duration // of what is sent, each way; the delay is from Delay-Jitter to Delay+Jitter
	Rate          [2]int        // bytes/s of each connection, to the server and to the client; 0: no bound
	Cut           int           // bytes one way after which a connection is reset, on average; 0: it is not
	Single        bool          // each byte is a packet of its own
	Flip          int           // bytes one way between two bits that are flipped, on average; 0: none is
	Lie           int           // frames to the client between two whose length is wrong, on average; 0: none is
}

// passed is what a proxy has done under its present weather.
type passed struct {
	Conns int64 // made since the proxy started
	Bytes int64
	Cuts  int64
	Flips int64
	Lies  int64
	// Delays are the medians of how long bytes were held back, to the servers and to the clients.
	Delays [2]time.Duration
}

// proxy forwards connections between clients and servers.
type proxy struct {
	host  string // address without a port
	now   atomic.Pointer[weather]
	conns atomic.Int64
	bytes atomic.Int64
	cuts  atomic.Int64
	flips atomic.Int64
	lies  atomic.Int64

	serving sync.WaitGroup

	mu      sync.Mutex // guards the following
	open    map[net.Conn]bool
	doors   []net.Listener
	closed  bool
	delayed [2][]delayed
}

type delayed struct {
	by    time.Duration
	bytes int
}

// startProxy starts a proxy on its own host.
func (w *world) startProxy() (*process, error) {
	h, err := w.host("proxy")
	if err != nil {
		return nil, err
	}
	return w.start("proxy", "proxy", config{Listen: cmp.Or(h.IP, "127.0.0.1")})
}

// runProxy is the role of a proxy. It has no door until it is asked to forward.
func runProxy(c config, p *parent) error {
	x := &proxy{host: c.Listen, open: make(map[net.Conn]bool)}
	x.now.Store(new(weather))
	defer x.close()
	if err := p.ready(); err != nil {
		return err
	}
	return p.obey(x.do)
}

func (x *proxy) do(c command) (any, error) {
	switch c.Do {
	case "forward": // to an address; the answer is where the proxy listens for it
		var to string
		if err := json.Unmarshal(c.Value, &to); err != nil {
			return nil, err
		}
		return x.forward(to)
	case "weather":
		w := new(weather)
		if err := json.Unmarshal(c.Value, w); err != nil {
			return nil, err
		}
		x.change(w)
		return nil, nil
	case "passed":
		return x.passed(), nil
	}
	return nil, fmt.Errorf("a proxy cannot %s", c.Do)
}

func (x *proxy) change(w *weather) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.delayed = [2][]delayed{}
	x.bytes.Store(0)
	x.cuts.Store(0)
	x.flips.Store(0)
	x.lies.Store(0)
	x.now.Store(w)
}

func (x *proxy) passed() passed {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := passed{Conns: x.conns.Load(), Bytes: x.bytes.Load(), Cuts: x.cuts.Load(), Flips: x.flips.Load(), Lies: x.lies.Load()}
	for way, all := range x.delayed {
		all = slices.SortedFunc(slices.Values(all), func(a, b delayed) int { return cmp.Compare(a.by, b.by) })
		sum := 0
		for _, d := range all {
			sum += d.bytes
		}
		for _, d := range all {
			if sum -= 2 * d.bytes; sum <= 0 {
				p.Delays[way] = d.by
				break
			}
		}
	}
	return p
}

// close closes all connections.
func (x *proxy) close() {
	x.mu.Lock()
	x.closed = true
	for _, l := range x.doors {
		l.Close()
	}
	for nc := range x.open {
		nc.Close()
	}
	x.mu.Unlock()
	x.serving.Wait()
}

// forward opens a door for what goes to an address.
func (x *proxy) forward(to string) (string, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(x.host, "0"))
	if err != nil {
		return "", err
	}
	x.mu.Lock()
	x.doors = append(x.doors, l)
	x.mu.Unlock()
	x.serving.Go(func() {
		for {
			nc, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				time.Sleep(time.Millisecond) // for example because of a lack of descriptors
				continue
			}
			x.serving.Go(func() { x.pass(nc.(*net.TCPConn), to) })
		}
	})
	return l.Addr().String(), nil
}

// keep notes a connection, so that close ends it.
func (x *proxy) keep(nc net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.closed {
		x.open[nc] = true
	}
	return !x.closed
}

// drop closes connections. What was sent on them still arrives.
func (x *proxy) drop(all ...*net.TCPConn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, nc := range all {
		delete(x.open, nc)
		nc.Close()
	}
}

// reset closes connections by RST, unless they are closed.
func (x *proxy) reset(all ...*net.TCPConn) {
	for _, nc := range all {
		nc.SetLinger(0)
	}
	x.drop(all...)
}

// pass carries a connection to the address, until both ways have ended.
func (x *proxy) pass(client *net.TCPConn, to string) {
	nc, err := net.Dial("tcp", to)
	if err != nil {
		x.reset(client)
		return
	}
	server := nc.(*net.TCPConn)
	defer x.drop(client, server)
	if !x.keep(client) || !x.keep(server) {
		return
	}
	x.conns.Add(1)
	var both sync.WaitGroup
	for i, ends := range [2][2]*net.TCPConn{{client, server}, {server, client}} {
		w := &way{proxy: x, number: i, from: ends[0], to: ends[1]}
		both.Go(func() {
			if w.carry() != nil {
				x.reset(client, server) // an error ends both ways
			}
		})
	}
	both.Wait()
}

// way is one direction of a connection. Its fields are owned by the forwarding goroutine, except
// those of piece.
type way struct {
	*proxy
	number   int // 0: to the server
	from, to *net.TCPConn

	cut, flip int // bytes that are left until then
	frames    lengths
}

// piece is the data of one read.
type piece struct {
	data    []byte
	read    time.Time
	due     time.Time
	delayed bool
}

// Sizes of data in flight. The buffer is small if the rate is limited, so that the sender soon
// notices.
const (
	maxPieceBytes   = 32 << 10
	maxPieces       = 256
	slowBufferBytes = 4 << 10
	slowRate        = 64 << 10
)

// carry reads and writes until the end of the data, or an error.
func (w *way) carry() error {
	pieces := make(chan piece, maxPieces)
	stop := make(chan struct{})
	var reading sync.WaitGroup
	var readErr error
	reading.Go(func() {
		defer close(pieces)
		readErr = w.read(pieces, stop)
	})
	var err error
	for p := range pieces {
		if err = w.write(p); err != nil {
			break
		}
	}
	close(stop)
	if err != nil {
		w.reset(w.from, w.to) // ends a read that waits
	}
	reading.Wait()
	if err := cmp.Or(err, readErr); err != nil {
		return err
	}
	return w.to.CloseWrite()
}

// redraw is how long a delay stays the same: if every piece had its own, the ones before would
// hold it up.
const redraw = 20 * time.Millisecond

func (w *way) read(pieces chan<- piece, stop <-chan struct{}) error {
	buf := make([]byte, maxPieceBytes)
	var free, drawn time.Time // when the next byte may be read; when the delay was chosen
	var delay time.Duration
	for {
		now, size := w.now.Load(), len(buf)
		rate := now.Rate[w.number]
		if rate > 0 {
			size = min(max(rate/10, 1), size)
			if rate < slowRate {
				w.from.SetReadBuffer(slowBufferBytes)
			}
		}
		n, err := w.from.Read(buf[:size])
		if n > 0 {
			p := piece{data: bytes.Clone(buf[:n]), read: time.Now()}
			p.due = p.read
			if now := w.now.Load(); now.Delay > 0 { // it may have changed meanwhile
				if p.read.Sub(drawn) > redraw {
					drawn, delay = p.read, now.Delay-now.Jitter+rand.N(2*now.Jitter+1)
				}
				p.due, p.delayed = p.read.Add(delay), true
			}
			select {
			case pieces <- p:
			case <-stop:
				return nil
			}
			if rate > 0 {
				if free.Before(p.read) {
					free = p.read
				}
				free = free.Add(time.Duration(n) * time.Second / time.Duration(rate))
				select {
				case <-time.After(time.Until(free) - time.Millisecond): // a timer is late by that much
				case <-stop:
					return nil
				}
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// errCut means that the proxy has reset a connection.
var errCut = errors.New("reset by the proxy")

// write sends a piece on, or what the weather leaves of it.
func (w *way) write(p piece) error {
	time.Sleep(time.Until(p.due))
	now := w.now.Load()
	if p.delayed {
		w.mu.Lock()
		w.delayed[w.number] = append(w.delayed[w.number], delayed{time.Since(p.read), len(p.data)})
		w.mu.Unlock()
	}
	w.bytes.Add(int64(len(p.data)))
	if at := due(&w.flip, now.Flip, len(p.data)); at >= 0 {
		p.data[at] ^= 1 << rand.IntN(8)
		w.flips.Add(1)
	}
	if w.number == 1 {
		w.lies.Add(w.frames.pass(p.data, now.Lie))
	}
	at := due(&w.cut, now.Cut, len(p.data))
	if at >= 0 {
		p.data = p.data[:at]
	}
	if err := w.send(p.data, now.Single); err != nil {
		return err
	}
	if at >= 0 {
		w.cuts.Add(1)
		return errCut
	}
	return nil
}

func (w *way) send(data []byte, single bool) error {
	if !single {
		_, err := w.to.Write(data)
		return err
	}
	for i := range data {
		if _, err := w.to.Write(data[i : i+1]); err != nil { // Go sets TCP_NODELAY
			return err
		}
	}
	return nil
}

// due counts n bytes, and returns at which of them it is time for what happens once in mean bytes,
// or -1.
func due(left *int, mean, n int) int {
	if mean == 0 {
		*left = 0
		return -1
	}
	if *left == 0 {
		*left = 1 + rand.IntN(2*mean)
	}
	if *left > n {
		*left -= n
		return -1
	}
	at := *left - 1
	*left = 0
	return at
}
