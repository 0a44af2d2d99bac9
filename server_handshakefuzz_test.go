package anser_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// httpMethods are the first four bytes that an HTTP client may send.
var httpMethods = []string{"GET ", "HEAD", "POST", "PUT ", "DELE", "OPTI", "PATC", "CONN", "TRAC", "PRI "}

// speaksHTTP reports whether b begins an HTTP request, which gets an answer of its own.
func speaksHTTP(b []byte) bool {
	return slices.ContainsFunc(httpMethods, func(m string) bool { return bytes.HasPrefix(b, []byte(m)) })
}

// greeted applies docs/protocol.md §1 and §4 to the first bytes of a side: it returns the length
// of its hello, or why it is refused. An incomplete hello is refused when the time is over.
func greeted(b []byte) (n int, s wire.Settings, refused wire.Reason) {
	if len(b) > 0 && len(b) < len(wire.Magic) && slices.ContainsFunc(httpMethods, func(m string) bool {
		return strings.HasPrefix(m, string(b))
	}) {
		return 0, s, wire.Timeout // it may become an HTTP request
	}
	for i := range min(len(b), len(wire.Magic)) {
		if b[i] != wire.Magic[i] {
			return 0, s, wire.BadFrame
		}
	}
	if len(b) < wire.PrefaceSize {
		return 0, s, wire.Timeout
	}
	broken, frame := new(wire.Error), b[wire.PrefaceSize:]
	if err := wire.ParsePreface(b); errors.As(err, &broken) {
		return 0, s, broken.Reason
	}
	if len(frame) < wire.HeaderSize {
		return 0, s, wire.Timeout
	}
	h, err := wire.ParseHeader(frame)
	switch {
	case errors.As(err, &broken):
		return 0, s, broken.Reason
	case h.Length > 64<<10: // more than any settings need
		return 0, s, wire.FrameTooLarge
	case h.Type == wire.TypeSettings && wire.CheckSettingsLength(h.Length) != nil:
		return 0, s, wire.BadFrame
	case len(frame)-wire.HeaderSize < int(h.Length):
		return 0, s, wire.Timeout
	}
	body := frame[wire.HeaderSize:][:h.Length]
	switch {
	case h.Type == wire.TypeClose:
		return 0, s, wire.Normal
	case h.Type != wire.TypeSettings || h.ID != 0:
		return 0, s, wire.BadFrame
	}
	if s, err = wire.ParseSettings(body); errors.As(err, &broken) {
		return 0, s, broken.Reason
	}
	return wire.PrefaceSize + wire.HeaderSize + len(body), s, wire.Normal
}

// seedHellos adds good beginnings, and bad ones as in badinput.
func seedHellos(f *testing.F) {
	settings := wire.DefaultSettings()
	settings.MaxCalls, settings.Features = 256, 1
	hello := wirepeer.Hello(settings)
	for n := 0; n <= len(hello); n += 5 {
		f.Add(hello[:n], uint8(n/2))
	}
	changed := func(at int, b byte) []byte {
		c := bytes.Clone(hello)
		c[at] = b
		return c
	}
	for _, b := range [][]byte{
		hello, append(bytes.Clone(hello), "more"...), []byte("GET / HTTP/1.1\r\n\r\n"),
		{0x16, 3, 1},
		changed(4, 2), changed(7, 1),
		changed(wire.PrefaceSize, 0xFF), changed(wire.PrefaceSize+3, 0xFF), changed(wire.PrefaceSize+4, byte(wire.TypePing)),
		changed(wire.PrefaceSize+5, 0x80), changed(wire.PrefaceSize+8, 1), append(wire.AppendPreface(nil), wire.AppendClose(nil, wire.Overload, "full")...),
		append(wire.AppendPreface(nil), wire.AppendClose(nil, wire.BadChecksum, "none")...),
	} {
		f.Add(b, uint8(9))
	}
}

// sealing reports whether frames have checksums on a connection to a side that knows them too.
func sealing(s wire.Settings) bool {
	const wanted = wire.FeatureCRC | wire.FeatureCRCWanted
	return s.Features&wanted == wanted
}

// pieces cuts b at a place.
func pieces(b []byte, cut uint8) [2][]byte {
	at := min(int(cut), len(b))
	return [2][]byte{b[:at], b[at:]}
}

// FuzzServerHandshake makes clients begin with arbitrary bytes, in two pieces, some with a call
// right after a good hello. The server answers with its hello and serves a call, or sends why it
// does not.
func FuzzServerHandshake(f *testing.F) {
	seedHellos(f)
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		n, settings, refused := greeted(data)
		frames := append(wire.AppendMethod(nil, 1, "Echo.Say"), wirepeer.Request(1, 1, []byte("hello"))...)
		sealed := n > 0 && sealing(settings)
		early := n > 0 && !sealed && cut%2 == 1
		if n > 0 {
			data = data[:n]
		}
		if early {
			data = append(bytes.Clone(data), frames...)
		}
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
			nc, err := network.Dial(context.Background(), "tcp", "a:1")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			p := wirepeer.New(nc)
			for _, b := range pieces(data, cut) {
				p.Send(b) // the server may have hung up
				synctest.Wait()
			}
			if n > 0 {
				if sealed && settings.Features&wire.FeatureAuth != 0 {
					p.Send(wire.AppendAuth(nil, "token", []byte("x"))) // as announced; without checksums the server does not wait for it
				}
				if sealed {
					frames = wirepeer.Seal(frames)
				}
				if !early {
					p.Send(frames)
				}
				if _, err := p.ReadHello(); err != nil {
					t.Fatalf("the server's hello: %v", err)
				}
				p.Sealed = sealed
				r, err := p.NextOf(wire.TypeReply, wire.TypeClose)
				if err != nil || r.Type != wire.TypeReply {
					t.Fatalf("after a good hello: %s, %v", r.Type, err)
				}
				return
			}
			switch {
			case speaksHTTP(data):
				r, err := http.ReadResponse(bufio.NewReader(nc), nil)
				if err != nil || r.StatusCode != http.StatusBadRequest {
					t.Fatalf("the answer to a request of HTTP: %+v, %v", r, err)
				}
				r.Body.Close()
			case refused != wire.Normal: // a client that sends CLOSE itself gets none
				if err := p.ReadPreface(); err != nil {
					t.Fatalf("the server's preface: %v", err)
				}
				if reason, text, err := p.ReadClose(); err != nil || reason != refused {
					t.Fatalf("closed with %s %q, %v; want %s", reason, text, err, refused)
				}
			}
			p.Close()
			synctest.Wait()
			if st := s.Stats(); st.HandshakeFailed != 1 || refused != wire.Normal && st.Closed[refused.String()] != 1 || st.Conns != 0 {
				t.Fatalf("%+v; want it to tell of %s", st, refused)
			}
		})
	})
}

// FuzzClientHandshake makes a server begin with arbitrary bytes, and correctly the next time. A
// call, which with an odd cut goes out with the preface, succeeds or fails with a reason, and a
// later one succeeds.
func FuzzClientHandshake(f *testing.F) {
	seedHellos(f)
	f.Fuzz(func(t *testing.T, data []byte, cut uint8) {
		n, settings, _ := greeted(data)
		if n > 0 {
			data = data[:n]
		}
		bubble(t, func(t *testing.T, network *ansertest.Network) {
			l := network.Listen("a:1")
			var wg sync.WaitGroup
			var healed atomic.Bool
			answer := func(nc net.Conn) {
				defer nc.Close()
				p := wirepeer.New(nc)
				sealed := false
				if healed.Load() {
					p.Send(wirepeer.Hello(wire.DefaultSettings()))
				} else {
					for _, b := range pieces(data, cut) {
						p.Send(b)
						time.Sleep(time.Nanosecond) // not synctest.Wait: there may be two connections
					}
					sealed = sealing(settings)
				}
				if _, err := p.ReadHello(); err != nil {
					return
				}
				p.Sealed = sealed
				for {
					r, err := p.NextOf(wire.TypeRequest)
					if err != nil {
						return
					}
					p.Send(wirepeer.Reply(r.ID, []byte("hello")))
				}
			}
			wg.Go(func() {
				for {
					nc, err := l.Accept()
					if err != nil {
						return
					}
					wg.Go(func() { answer(nc) })
				}
			})
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.Timeout(time.Minute))
			defer func() {
				c.Close()
				l.Close()
				wg.Wait()
			}()
			opts := []anser.CallOption{anser.WithFailMode(anser.Failfast)}
			early := cut%2 == 1
			if early {
				opts = append(opts, anser.Idempotent())
			}
			_, err := call(context.Background(), c, "Echo.Say", "hello", opts...)
			good := n > 0 && settings.MaxCalls > 0
			if early { // it has gone out before the server could say how many calls it takes
				good = n > 0 && !sealing(settings)
			}
			if good != (err == nil) {
				t.Fatalf("the call: %v; want it to succeed: %t", err, good)
			}
			if err != nil && !early && fault(t, err).Outcome != anser.NotSent {
				t.Fatalf("%v: its outcome is %s, but there was no connection", err, fault(t, err).Outcome)
			}
			healed.Store(true)
			if n > 0 {
				return // the connection is established
			}
			time.Sleep(time.Second) // a failed connection is not retried at once
			if out, err := call(context.Background(), c, "Echo.Say", "hello", anser.Timeout(5*time.Minute)); err != nil || out != "hello" {
				t.Fatalf("the server is good now: %q, %v", out, err)
			}
		})
	})
}
