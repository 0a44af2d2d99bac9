package anser_test

import (
	"context"
	"testing"

	"github.com/anser-rpc/anser"
)

// Both sides list their open streams, with their messages, their credit and what they wait for.
func TestStreamStatus(t *testing.T) {
	const window, size = 8 << 10, 1000
	proceed := make(chan struct{})
	s := anser.NewServer(anser.FlowControlWindows(window, 1<<20))
	anser.HandleStream(s, "Feed.Idle", func(_ context.Context, st *bytesStream) error {
		_, err := st.Recv()
		return err
	})
	anser.HandleStream(s, "Feed.Busy", func(ctx context.Context, st *bytesStream) error {
		if _, err := st.Recv(); err != nil {
			return err
		}
		select {
		case <-proceed:
		case <-ctx.Done():
		}
		return nil
	})
	l := listen(t)
	run(t, s, l)
	c := dial(t, l.Addr().String(), anser.Conns(1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := anser.Open[[]byte, []byte](ctx, c, "Feed.Idle"); err != nil {
		t.Fatal(err)
	}
	busy, err := anser.Open[[]byte, []byte](ctx, c, "Feed.Busy")
	if err != nil {
		t.Fatal(err)
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		msg := make([]byte, size)
		for busy.Send(&msg) == nil {
		}
	}()
	var here, there []anser.StreamStatus
	eventually(t, "a Send that waits for credit, and a Recv that waits for a message", func() bool {
		here, _ = c.Streams(10)
		there, _ = s.Streams(10)
		return len(here) == 2 && len(there) == 2 && here[1].WaitsForCredit && there[0].WaitsForMessage
	})
	const fit = window / (size + 2)
	if st := here[1]; st.Method != "Feed.Busy" || st.Address != l.Addr().String() || st.Protocol != "anser" || st.Age <= 0 ||
		st.Sent != fit || st.Received != 0 || st.SendCredit >= size || st.WaitsForConn || st.WaitsForMessage {
		t.Errorf("the client has %+v", st)
	}
	if st := there[1]; st.Method != "Feed.Busy" || st.Addr == nil || st.Received != fit || st.Sent != 0 || st.ReceiveCredit >= size || st.WaitsForMessage {
		t.Errorf("the server has %+v", st)
	}
	if st := there[0]; st.Method != "Feed.Idle" || st.Received != 0 || st.ReceiveCredit != window || st.WaitsForCredit {
		t.Errorf("the server has %+v", st)
	}
	if list, all := s.Streams(1); all != 2 || len(list) != 1 || list[0].Method != "Feed.Idle" {
		t.Errorf("with a limit of 1: %+v of %d", list, all)
	}
	close(proceed)
	cancel()
	<-sent
	eventually(t, "no streams", func() bool {
		_, here := c.Streams(0)
		_, there := s.Streams(0)
		return here+there == 0
	})
}

// A first message that is part of the request counts on both sides.
func TestFirstMessageOfStreamCounts(t *testing.T) {
	s := anser.NewServer()
	const watch anser.ServerStreamMethod[[]byte, []byte] = "Feed.Watch"
	watch.Handle(s, func(ctx context.Context, _ *[]byte, out anser.Sender[[]byte]) error {
		out.Send(text("news"))
		<-ctx.Done()
		return nil
	})
	l := listen(t)
	run(t, s, l)
	c := dial(t, l.Addr().String())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	st, err := watch.Open(ctx, c, text("all"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Recv(); err != nil {
		t.Fatal(err)
	}
	here, _ := c.Streams(1)
	there, _ := s.Streams(1)
	for _, list := range [][]anser.StreamStatus{here, there} {
		if len(list) != 1 || list[0].Sent != 1 || list[0].Received != 1 {
			t.Errorf("got %+v", list)
		}
	}
	for _, st := range []anser.StreamStatus{here[0], there[0]} {
		if st.ClientStream || !st.ServerStream {
			t.Errorf("the kind is %+v", st)
		}
	}
}

// Streams over another protocol are listed too.
func TestStreamsOverAnotherProtocol(t *testing.T) {
	s := foreignServer(t)
	handleEcho(s)
	f := openForeign(t, s, nil)
	_, c, ends, err := f.openStream(anser.ProtocolRequest{Method: "Words.Echo", Priority: anser.Normal})
	if err != nil {
		t.Fatal(err)
	}
	c.in <- "a"
	<-c.out
	var st anser.StreamStatus
	eventually(t, "a Recv that waits", func() bool {
		list, all := s.Streams(5)
		if all != 1 {
			t.Fatalf("%d streams are open", all)
		}
		st = list[0]
		return st.WaitsForMessage && st.Sent == 1
	})
	if st.Method != "Words.Echo" || st.Age <= 0 || st.Received != 1 || st.WaitsForConn {
		t.Errorf("got %+v", st)
	}
	close(c.in)
	<-ends
	eventually(t, "no streams", func() bool {
		_, all := s.Streams(0)
		return all == 0
	})
}
