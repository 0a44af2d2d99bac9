package h2_test

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2/hpack"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/protocols/internal/h2"
)

// received is a frame of the server, and the time since the beginning at which it has arrived.
type received struct {
	kind, flags byte
	payload     []byte
	after       time.Duration
}

// inBubble connects a client to a server in a synctest bubble. The channels get what the server
// sends, and how its side ends.
func inBubble(t *testing.T, config h2.Config, handler http.HandlerFunc) (c *client, frames <-chan received, ended <-chan error) {
	t.Helper()
	near, far := ansertest.Pipe()
	site := &h2.Site{Handler: handler, Context: t.Context()}
	config.MaxStreams, config.MaxHeader, config.Window, config.ConnWindow = 100, 16<<10, 64<<10, 128<<10
	config.Stall, config.Request = 10*time.Second, site.Serve
	end, in := make(chan error, 1), make(chan received, 10_000)
	go func() { end <- h2.New(far, nil, &config).Serve() }()
	t.Cleanup(func() { near.Close() })
	began := time.Now()
	go func() {
		defer close(in)
		for {
			var head [9]byte
			if _, err := io.ReadFull(near, head[:]); err != nil {
				return
			}
			p := make([]byte, int(head[0])<<16|int(head[1])<<8|int(head[2]))
			if _, err := io.ReadFull(near, p); err != nil {
				return
			}
			in <- received{head[3], head[4], p, time.Since(began)}
		}
	}()
	c = &client{t: t, nc: near}
	c.enc = hpack.NewEncoder(&c.buf)
	c.out.WriteString(h2.Preface)
	c.frame(settings, 0, 0, nil)
	c.write()
	return c, in, end
}

// write sends what was collected.
func (c *client) write() {
	c.t.Helper()
	if _, err := c.nc.Write(c.out.Bytes()); err != nil {
		c.t.Errorf("a write of the client: %v", err)
	}
	c.out.Reset()
	synctest.Wait()
}

// count returns how many frames of a kind have arrived, and the payload of the last one.
func count(frames <-chan received, kind byte) (n int, last received) {
	for {
		select {
		case f, ok := <-frames:
			if !ok {
				return n, last
			}
			if f.kind == kind {
				n, last = n+1, f
			}
		default:
			return n, last
		}
	}
}

// Clients may ping as often as the policy says, twice too early, and as they like after an answer.
func TestPingsOfClients(t *testing.T) {
	const least = 10 * time.Second
	repeat := func(n int, gap time.Duration) (gaps []time.Duration) {
		for range n {
			gaps = append(gaps, gap)
		}
		return gaps
	}
	for name, row := range map[string]struct {
		idle      bool // no stream is open
		permitted bool // PING frames without a stream are
		answers   bool // a request is answered before each PING
		gaps      []time.Duration
		last      int // number of the PING that ends the connection; 0: none does
	}{
		"at the limit":                                    {gaps: repeat(50, least)},
		"below the limit":                                 {gaps: repeat(50, least-1), last: 4},
		"twice below the limit":                           {gaps: append(repeat(2, 0), repeat(10, least)...)},
		"a third time, after some in time":                {gaps: append(append(repeat(2, 0), repeat(10, least)...), 0), last: 14},
		"below the limit, with answers":                   {answers: true, gaps: repeat(50, time.Millisecond)},
		"without a stream, permitted":                     {idle: true, permitted: true, gaps: repeat(50, least)},
		"without a stream, permitted, below":              {idle: true, permitted: true, gaps: repeat(50, least-1), last: 4},
		"without a stream, not permitted":                 {idle: true, gaps: repeat(50, least), last: 4},
		"without a stream, not permitted, every 2 hours":  {idle: true, gaps: repeat(10, 2*time.Hour)},
		"without a stream, not permitted, a little early": {idle: true, gaps: repeat(10, 2*time.Hour-1), last: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, frames, ended := inBubble(t, h2.Config{MinPing: least, PingWithoutStream: row.permitted}, func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/wait" {
						<-r.Context().Done()
					}
				})
				if !row.idle {
					c.frame(headers, endHeaders|endStream, 1, c.request("GET", "/wait", "x"))
				}
				sent := 0
				for _, gap := range append([]time.Duration{0}, row.gaps...) {
					time.Sleep(gap)
					if row.answers {
						c.frame(headers, endHeaders|endStream, uint32(2*sent+3), c.header())
					}
					c.write()
					c.frame(ping, 0, 0, make([]byte, 8))
					c.write()
					if sent++; sent == row.last {
						break
					}
					if n, _ := count(frames, ping); n != 1 {
						t.Fatalf("PING %d gets %d answers", sent, n)
					}
				}
				n, away := count(frames, 7)
				switch {
				case row.last == 0 && n > 0:
					t.Errorf("after PING %d: GOAWAY", sent)
				case row.last > 0 && n != 1:
					t.Errorf("after PING %d: no GOAWAY", sent)
				case n > 0:
					code, why := h2.Code(binary.BigEndian.Uint32(away.payload[4:])), string(away.payload[8:])
					if code != h2.EnhanceYourCalm || why != "too_many_pings" {
						t.Errorf("GOAWAY says %v, %q", code, why)
					}
				}
				c.nc.Close()
				<-ended
			})
		})
	}
}

// A client that is silent is asked, and one that does not answer loses its connection.
func TestSilentClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := h2.Config{KeepaliveIdle: 30 * time.Second, KeepaliveAnswer: 10 * time.Second}
		c, frames, ended := inBubble(t, config, echo)
		time.Sleep(20 * time.Second)
		c.frame(headers, endHeaders|endStream, 1, c.header())
		c.write()
		for i := range 100 { // it answers in time
			time.Sleep(30*time.Second + 9*time.Second)
			if n, f := count(frames, ping); n != 1 || f.flags != 0 || f.after != time.Duration(i+1)*30*time.Second+time.Duration(i)*9*time.Second+20*time.Second {
				t.Fatalf("round %d: %d PING frames, the last one after %v", i, n, f.after)
			} else {
				c.frame(ping, 1, 0, f.payload)
			}
			c.write()
		}
		began := time.Now()
		if err := <-ended; !errors.Is(err, h2.ErrSilent) || time.Since(began) != 40*time.Second {
			t.Errorf("the connection ends after %v with %v", time.Since(began), err)
		}
	})
}

// A client that takes a long answer slowly gets the PING late, and keeps its connection.
func TestSlowClientIsNotSilent(t *testing.T) {
	const size = 2 << 20
	synctest.Test(t, func(t *testing.T) {
		near, far := ansertest.Pipe()
		defer near.Close()
		site := &h2.Site{Context: t.Context(), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, size)) })}
		ended := make(chan error, 1)
		go func() {
			ended <- h2.New(far, nil, &h2.Config{
				MaxStreams: 100, MaxHeader: 16 << 10, Window: 64 << 10, ConnWindow: 128 << 10, Stall: 10 * time.Second, Request: site.Serve,
				KeepaliveIdle: 5 * time.Second, KeepaliveAnswer: 40 * time.Second,
			}).Serve()
		}()
		c := &client{t: t, nc: near}
		c.enc = hpack.NewEncoder(&c.buf)
		c.out.WriteString(h2.Preface)
		c.frame(settings, 0, 0, []byte{0, 4, 0x7f, 0xff, 0xff, 0xff})
		c.frame(windowUpdate, 0, 0, []byte{0x7f, 0, 0, 0})
		c.frame(headers, endHeaders|endStream, 1, c.header())
		c.write()
		b := make([]byte, 8<<10)
		for got := 0; got < size; { // 256 s, in which it sends nothing
			time.Sleep(time.Second)
			n, err := near.Read(b)
			if err != nil {
				t.Fatalf("after %d bytes: %v, %v", got, err, <-ended)
			}
			got += n
		}
		near.Close()
		<-ended
	})
}

// A time for writes below a second bounds each write, and not several of them together.
func TestShortStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := ansertest.Pipe()
		site := &h2.Site{Context: t.Context(), Handler: http.HandlerFunc(echo)}
		ended := make(chan error, 1)
		go func() {
			ended <- h2.New(far, nil, &h2.Config{
				MaxStreams: 100, MaxHeader: 16 << 10, Window: 64 << 10, ConnWindow: 128 << 10, Stall: 100 * time.Millisecond, Request: site.Serve,
			}).Serve()
		}()
		c := &client{t: t, nc: near}
		c.enc = hpack.NewEncoder(&c.buf)
		c.out.WriteString(h2.Preface)
		c.frame(settings, 0, 0, nil)
		c.write()
		for i := range uint32(100) {
			time.Sleep(30 * time.Millisecond)
			c.frame(headers, endHeaders|endStream, 2*i+1, c.header())
			c.write()
		}
		near.Close()
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Errorf("the connection ends with %v", err)
		}
	})
}
