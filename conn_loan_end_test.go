package anser_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A large call that ends while its request is being written returns at once, although the other
// side does not read, and the caller may change the message: the other side gets the old one.
func TestEndOfACallWhoseRequestIsBeingWritten(t *testing.T) {
	for _, kind := range []string{"sockets", "memory", "checksums"} {
		for _, end := range []string{"cancel", "deadline", "timeout"} {
			t.Run(kind+"/"+end, func(t *testing.T) {
				patience := 300 * time.Millisecond
				for !endWhileWritten(t, kind, end, patience) {
					if patience *= 2; patience > time.Minute {
						t.Fatal("nothing of the request has been written in half a minute")
					}
				}
			})
		}
	}
}

// endWhileWritten ends a call after some time, or when it has begun, and reports whether some of
// its request had been written.
func endWhileWritten(t *testing.T, kind, end string, patience time.Duration) bool {
	t.Helper()
	const size = 12 << 20
	l := listen(t)
	opts := []anser.DialOption{anser.Conns(1), anser.MaxMessage(128 << 20)}
	switch kind {
	case "memory":
		network := &ansertest.Network{Buffer: 64 << 10}
		l = network.Listen("a:1")
		opts = append(opts, anser.Dialer(network.Dial))
	case "checksums":
		opts = append(opts, anser.Checksums())
	}
	begun, read := make(chan struct{}), make(chan struct{})
	resume := sync.OnceFunc(func() { close(read) })
	defer resume()
	result := make(chan string, 1)
	slowPeer(t, l, func(p *wirepeer.Peer) {
		if _, err := p.NextOf(wire.TypeMethod); err != nil {
			return
		}
		close(begun)
		<-read
		f, err := p.NextOf(wire.TypeRequest)
		if err != nil {
			result <- err.Error()
			return
		}
		var r wire.Request
		if err := wire.ParseRequest(f.Flags, f.Body, &r); err != nil {
			result <- err.Error()
			return
		}
		result <- fmt.Sprint(len(r.Payload), " bytes, ", bytes.Count(r.Payload, []byte("a")), " of them old")
		f, err = p.NextOf(wire.TypeRequest)
		if err == nil {
			p.Send(wirepeer.Reply(f.ID, []byte("small")))
		}
		p.Next()
	})
	c := dial(t, l.Addr().String(), opts...)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var callOpts []anser.CallOption
	want := anser.DeadlineExceeded
	switch end {
	case "cancel":
		want = anser.Canceled
		go func() {
			<-begun
			cancel()
		}()
	case "deadline":
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	case "timeout":
		callOpts = append(callOpts, anser.Timeout(patience))
	}
	in := bytes.Repeat([]byte("a"), size)
	_, err := anser.Call[[]byte](ctx, c, "Echo.Say", &in, callOpts...)
	if code := fault(t, err).Code; code != want {
		t.Fatal(err)
	}
	for i := range in {
		in[i] = 'b'
	}
	if fault(t, err).Outcome == anser.NotSent {
		return false
	}
	resume()
	if got, want := <-result, fmt.Sprint(size, " bytes, ", size, " of them old"); got != want {
		t.Fatalf("the other side got %s; want %s", got, want)
	}
	if out, err := call(context.Background(), c, "Echo.Say", "hello", anser.Timeout(0)); out != "small" || err != nil {
		t.Fatal(out, err)
	}
	return true
}
