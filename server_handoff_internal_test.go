package anser

import (
	"context"
	"net"
	"testing"

	"github.com/anser-rpc/anser/internal/testusage"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A handler that holds up nothing keeps the reading of its connection for a while, in which the
// garbage collector may have stopped it. Otherwise the next check hands the reading over.
func TestHandoffWhereSomethingWaits(t *testing.T) {
	release, runs := make(chan struct{}), make(chan struct{}, 1)
	s := NewServer()
	s.monitor.close() // this test checks
	Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) {
		if string(*in) == "block" {
			runs <- struct{}{}
			<-release
		}
		return in, nil
	}, Inline())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	p, id := wirepeer.New(nc), uint64(0)
	if _, err := p.Handshake(); err != nil {
		t.Fatal(err)
	}
	p.Send(wire.AppendMethod(nil, 1, "Echo.Say"))
	send := func(texts ...string) {
		var frames []byte
		for _, text := range texts {
			id++
			frames = append(frames, wirepeer.Request(id, 1, []byte(text))...)
		}
		p.Send(frames)
	}
	answer := func() {
		t.Helper()
		if f, err := p.NextOf(wire.TypeReply); err != nil {
			t.Fatal(f.Type, err)
		}
	}
	send("quick") // the settings are read
	answer()
	for _, test := range []struct {
		name   string
		send   []string
		after  bool // another request comes while the handler runs
		checks int
	}{
		{"alone", []string{"block"}, false, monitorAlone},
		{"a reply before it", []string{"quick", "block"}, false, 1},
		{"a request behind it", []string{"block", "quick"}, false, 1},
		{"a later request", []string{"block"}, true, 3},
	} {
		send(test.send...)
		<-runs
		c := s.liveConns()[0]
		c.seen, c.same = 0, 0
		if saw := c.look(true); saw != sawRunning {
			t.Fatalf("%s: the first check saw %d", test.name, saw)
		}
		for i := 1; i < test.checks; i++ {
			if saw := c.look(true); saw != sawStuck {
				t.Fatalf("%s: check %d saw %d, want %d", test.name, i, saw, sawStuck)
			}
		}
		others := len(test.send) - 1
		if test.after {
			send("quick")
			if !testusage.Soon(func() bool { return !c.state.socket.Silent() }) {
				t.Fatal("the later request has not arrived")
			}
			others++
		}
		if saw := c.look(true); saw != sawHandoff {
			t.Fatalf("%s: check %d saw %d, want %d", test.name, test.checks, saw, sawHandoff)
		}
		for range others {
			answer()
		}
		release <- struct{}{}
		answer()
	}
	send("block")
	<-runs
	c := s.liveConns()[0]
	c.look(true)
	c.failWith(serverClosed)
	if saw := c.look(true); saw != sawHandoff {
		t.Fatalf("the check after the end of the connection saw %d, want %d", saw, sawHandoff)
	}
	release <- struct{}{}
}
