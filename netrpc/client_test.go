package netrpc_test

import (
	"context"
	"encoding/gob"
	"errors"
	"io"
	"net"
	stock "net/rpc"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// dialects are the wire formats of this package's clients.
var dialects = map[string]struct {
	client func(io.ReadWriteCloser) *netrpc.Client
	codec  func(io.ReadWriteCloser) netrpc.ServerCodec
}{
	"gob":    {netrpc.NewClient, nil},
	"JSON":   {jsonrpc.NewClient, jsonrpc.NewServerCodec},
	"JSON 2": {jsonrpc.NewClient2, jsonrpc.NewServerCodec},
}

// A call ends with its context, reports whether it was sent, and does not modify the reply from
// then on.
func TestCallsEndWithTheirContexts(t *testing.T) {
	for name, wire := range dialects {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWaits()
				connect := serveInMemory(t, quiet(w, new(Arith)), wire.codec)
				c := wire.client(connect())
				defer c.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				var reply Reply
				err := c.CallContext(ctx, "Waits.Stubborn", &Args{}, &reply)
				if !errors.Is(err, context.DeadlineExceeded) || anser.CodeOf(err) != anser.DeadlineExceeded || anser.OutcomeOf(err) != anser.OutcomeUnknown {
					t.Errorf("CallContext: %v, want that the deadline is exceeded and the outcome unknown", err)
				}
				if took := time.Since(began); took != time.Second {
					t.Errorf("CallContext took %v: want a second", took)
				}
				ctx, cancel = context.WithCancel(t.Context())
				call := c.GoContext(ctx, "Waits.Stubborn", &Args{}, &reply, nil)
				synctest.Wait()
				cancel()
				if err := (<-call.Done).Error; !errors.Is(err, context.Canceled) || anser.OutcomeOf(err) != anser.OutcomeUnknown {
					t.Errorf("GoContext: %v, want that it is cancelled and the outcome unknown", err)
				}
				// With a context that has already ended, nothing is sent.
				for _, err := range []error{
					c.CallContext(ctx, "Waits.Stubborn", &Args{}, &reply), (<-c.GoContext(ctx, "Waits.Stubborn", &Args{}, &reply, nil).Done).Error,
				} {
					if !errors.Is(err, context.Canceled) || anser.OutcomeOf(err) != anser.NotSent {
						t.Errorf("after the end: %v, want that it was not sent", err)
					}
				}
				// The replies arrive now, after their callers have given up.
				close(w.release)
				synctest.Wait()
				mustAdd(t, c)
				if n := len(w.entered); reply.C != 0 || n != 2 {
					t.Errorf("the reply is %v and %d calls ran: want none and 2", reply, n)
				}
			})
		})
	}
}

// The context of a completed call has no further effect.
func TestContextsThatEndLater(t *testing.T) {
	c := dial(t, serve(t, quiet(new(Arith)), nil))
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		var reply Reply
		done := make(chan *netrpc.Call, 2)
		call := c.GoContext(ctx, "Arith.Mul", &Args{3, 4}, &reply, done)
		if got := <-done; got != call || got.Error != nil || reply.C != 12 {
			t.Fatalf("got %v, %v", reply, got.Error)
		}
		cancel()
		mustAdd(t, c)
		if len(done) > 0 {
			t.Fatal("the call ends twice")
		}
	}
}

// A server that does not read does not block a caller with a context.
func TestContextsWhileNothingIsRead(t *testing.T) {
	for name, wire := range dialects {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				network := &ansertest.Network{Buffer: 10}
				l := network.Listen("server")
				defer l.Close()
				conn, err := network.Dial(t.Context(), "", "server")
				if err != nil {
					t.Fatal(err)
				}
				c := wire.client(conn)
				defer c.Close()
				large := make([]byte, 200<<10)
				for i := range 10 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					began := time.Now()
					err := c.CallContext(ctx, "Keeper.Length", large, new(int))
					if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
						t.Errorf("call %d: %v after %v, want it after a second", i, err, took)
					}
					// The first requests wait in the buffer; there is no room for further ones.
					if got := anser.OutcomeOf(err); i > 5 && got != anser.NotSent {
						t.Errorf("call %d: the outcome is %v, want that it was not sent", i, got)
					}
					cancel()
				}
			})
		})
	}
}

// A dialer gives up on a server that does not read.
func TestStalledServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &ansertest.Network{Buffer: 10}
		l := network.Listen("server")
		defer l.Close()
		c, err := (&netrpc.Dialer{Net: network.Dial, Stall: time.Second}).Dial(t.Context(), "", "server")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		began := time.Now()
		err = c.Call("Keeper.Length", make([]byte, 1000), new(int))
		if took := time.Since(began); err == nil || took != time.Second {
			t.Errorf("the call ends with %v after %v, want an error after a second", err, took)
		}
	})
}

// The calls fail with the error of the read; later ones find the client shut down.
func TestConnectionsThatEnd(t *testing.T) {
	for name, wire := range dialects {
		t.Run(name, func(t *testing.T) {
			one, two := ansertest.Pipe()
			c := wire.client(one)
			defer c.Close()
			call := c.Go("Arith.Add", Args{1, 2}, new(Reply), nil)
			two.Read(make([]byte, 1000))
			two.Close()
			if err := (<-call.Done).Error; err != io.ErrUnexpectedEOF {
				t.Errorf("the call in flight: %v, want an unexpected EOF", err)
			}
			if err := c.Call("Arith.Add", Args{1, 2}, new(Reply)); err != netrpc.ErrShutdown {
				t.Errorf("a later call: %v, want ErrShutdown", err)
			}
		})
	}
}

func TestUnbufferedDone(t *testing.T) {
	c := dial(t, serve(t, quiet(new(Arith)), nil))
	defer func() {
		if recover() == nil {
			t.Error("Go takes a channel on which the result would be lost")
		}
	}()
	c.Go("Arith.Add", Args{1, 2}, new(Reply), make(chan *netrpc.Call))
}

// The result of a call whose channel is full is lost, without another effect.
func TestFullDone(t *testing.T) {
	c := dial(t, serve(t, quiet(new(Arith)), nil))
	done := make(chan *netrpc.Call, 1)
	for range 10 {
		c.Go("Arith.Add", Args{1, 2}, new(Reply), done)
	}
	mustAdd(t, c)
	<-done
}

// A token is sent only over TLS or within this machine.
func TestTokensInTheClear(t *testing.T) {
	l := listen(t)
	defer l.Close()
	d := netrpc.Dialer{Token: "a secret", Net: func(ctx context.Context, network, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, l.Addr().String())
		return elsewhere{conn}, err
	}}
	for _, dial := range []func() (*netrpc.Client, error){
		func() (*netrpc.Client, error) { return d.Dial(t.Context(), "tcp", "192.0.2.1:1") },
		func() (*netrpc.Client, error) { return d.DialHTTP(t.Context(), "tcp", "192.0.2.1:1", "") },
	} {
		conn := make(chan net.Conn, 1)
		go func() {
			c, _ := l.Accept()
			conn <- c
		}()
		if _, err := dial(); err == nil {
			t.Error("the token is sent")
		}
		c := <-conn
		if got, _ := io.ReadAll(c); len(got) > 0 {
			t.Errorf("the server gets %q", got)
		}
		c.Close()
	}
}

// elsewhere is a connection to another machine.
type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

func TestPathsThatCannotBeAskedFor(t *testing.T) {
	addr := serveHTTP(t, quiet(new(Arith)))
	for _, path := range []string{"x", "/x HTTP/1.0\r\nEvil: 1\r\n\r\n", "/a b"} {
		if _, err := netrpc.DialHTTPPath("tcp", addr, path); err == nil {
			t.Errorf("%q is asked for", path)
		}
	}
}

// A failing third-party codec ends the client, as in net/rpc.
func TestForeignCodecs(t *testing.T) {
	one, two := net.Pipe()
	defer two.Close()
	c := netrpc.NewClientWithCodec(&foreign{conn: one, enc: gob.NewEncoder(one), dec: gob.NewDecoder(one)})
	defer c.Close()
	s := quiet(new(Arith), Odd{})
	go s.ServeConn(two)
	mustAdd(t, c)
	if err := c.Call("Odd.Echo", make(chan int), new(Moody)); err == nil {
		t.Error("a channel is sent")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.CallContext(ctx, "Arith.Add", Args{1, 2}, new(Reply)); !errors.Is(err, context.Canceled) {
		t.Errorf("CallContext: %v", err)
	}
}

// foreign is a typical third-party codec.
type foreign struct {
	conn io.Closer
	enc  *gob.Encoder
	dec  *gob.Decoder
}

func (f *foreign) WriteRequest(r *stock.Request, body any) error {
	return errors.Join(f.enc.Encode(r), f.enc.Encode(body))
}
func (f *foreign) ReadResponseHeader(r *stock.Response) error { return f.dec.Decode(r) }
func (f *foreign) ReadResponseBody(body any) error            { return f.dec.Decode(body) }
func (f *foreign) Close() error                               { return f.conn.Close() }
