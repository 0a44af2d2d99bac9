package anser_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// The goroutine that reads a connection writes no large reply of another call: it reads the next
// calls, whose replies pass.
func TestReaderThatWritesWhenALargeReplyComes(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		want, release := pattern(2<<20, 9), make(chan struct{})
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Say", echo, anser.Inline())
		anser.Handle(s, "Echo.Large", func(context.Context, *[]byte) (*[]byte, error) {
			<-release
			return &want, nil
		}, anser.Concurrent())
		run(t, s, network.Listen("a:1"))
		p, _ := partsPeer(t, network, true, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Large"), wirepeer.Request(1, 2, nil))
		in := pattern(100_000, 1)
		p.Send(wirepeer.Request(2, 1, in))
		synctest.Wait() // the connection is full
		close(release)
		synctest.Wait()
		if err := echoOf(p, 2, in); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the connection is full again
		p.Send(wirepeer.Request(3, 1, []byte("small")))
		synctest.Wait()
		frame, early, between, err := join(p, 1)
		if err != nil || early || !bytes.HasSuffix(frame, want) {
			t.Fatalf("%d bytes, early: %v, %v", len(frame), early, err)
		}
		if len(between) != 1 || between[0].ID != 3 {
			t.Errorf("between the PARTs are %d frames", len(between))
		}
	})
}

// The goroutine that reads a connection does not wait with a large reply until another one is
// written: it reads the next calls, and their ends.
func TestReaderDoesNotWaitForALargeReply(t *testing.T) {
	partsBubble(t, func(t *testing.T, network *ansertest.Network) {
		want := pattern(2<<20, 10)
		s := anser.NewServer(silent)
		anser.Handle(s, "Echo.Say", echo, anser.Inline())
		anser.Handle(s, "Echo.Large", func(context.Context, *[]byte) (*[]byte, error) { return &want, nil }, anser.Inline())
		run(t, s, network.Listen("a:1"))
		p, _ := partsPeer(t, network, true, false)
		p.Send(wire.AppendMethod(nil, 1, "Echo.Say"), wire.AppendMethod(nil, 2, "Echo.Large"))
		p.Send(wirepeer.Request(1, 2, nil), wirepeer.Request(2, 2, nil), wirepeer.Request(3, 2, nil))
		p.Send(wirepeer.Request(4, 1, []byte("small")), wire.AppendCancel(nil, 2))
		synctest.Wait()
		frame, early, between, err := join(p, 1)
		if err != nil || early || !bytes.HasSuffix(frame, want) {
			t.Fatalf("%d bytes, early: %v, %v", len(frame), early, err)
		}
		if len(between) != 1 || between[0].ID != 4 {
			t.Errorf("between the PARTs are %d frames", len(between))
		}
		frame, early, _, err = join(p, 3) // 2 was cancelled
		if err != nil || early || !bytes.HasSuffix(frame, want) {
			t.Errorf("%d bytes, early: %v, %v", len(frame), early, err)
		}
		synctest.Wait()
		if st := s.Stats(); st.Memory != 0 || st.InFlight != 0 || st.Cancelled != 1 {
			t.Errorf("%+v", st)
		}
	})
}
