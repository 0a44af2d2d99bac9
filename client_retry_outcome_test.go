package anser_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// The outcome of a call is that of all its attempts: it may have run if one of them may have.
func TestOutcomeOfAllAttempts(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := network.Listen("a:1")
		rawServer(t, l, func(p *wirepeer.Peer) {
			p.NextOf(wire.TypeRequest)
			l.Kill() // from now on nothing listens
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "Echo.Say", "hello", anser.Idempotent())
		e := wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
		if len(e.Attempts) < 2 || e.Attempts[0].Outcome != anser.OutcomeUnknown || e.Attempts[1].Outcome != anser.NotSent {
			t.Fatalf("attempts: %+v", e.Attempts)
		}
	})
}

func TestDurationOfEachAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				time.Sleep(time.Second)
				return nil, anser.Aborted
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial))
		_, err := call(context.Background(), c, "Echo.Say", "hello", anser.Idempotent(), anser.RetryOn(anser.Aborted))
		e := wantFault(t, err, anser.Aborted, anser.Executed)
		if len(e.Attempts) != 3 {
			t.Fatalf("%d attempts, want 3", len(e.Attempts))
		}
		for _, a := range e.Attempts {
			if d := a.Duration.Round(100 * time.Millisecond); d != time.Second {
				t.Errorf("an attempt took %v, want 1 s", a.Duration)
			}
		}
	})
}

// Trailers belong to the attempt whose answer the caller gets.
func TestTrailersOfTheLastAttempt(t *testing.T) {
	network := new(ansertest.Network)
	serve(t, network.Listen("a:1"), map[string]handler{
		"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
			if anser.AttemptFrom(ctx) == 0 {
				anser.SetTrailer(ctx, "attempt", "first")
				return nil, anser.Aborted
			}
			return in, nil
		},
	})
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	md := anser.Metadata{"old": "x"}
	_, err := call(context.Background(), c, "Echo.Say", "hello", anser.Idempotent(), anser.RetryOn(anser.Aborted), anser.Trailer(&md))
	if err != nil || len(md) != 0 {
		t.Fatal(md, err)
	}
}

// An attempt that never reached a server has no trailers, though the one before it had some; nor
// has a call that could not be made.
func TestTrailersOfAnAttemptThatWasNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		l := network.Listen("a:1")
		serve(t, l, map[string]handler{
			"Echo.Say": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				anser.SetTrailer(ctx, "attempt", "first")
				return nil, anser.Errorf(anser.Aborted, "later").WithRetryAfter(time.Second)
			},
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Idempotent(), anser.RetryOn(anser.Aborted))
		time.AfterFunc(500*time.Millisecond, l.Kill)
		md := anser.Metadata{"old": "x"}
		_, err := call(context.Background(), c, "Echo.Say", "hello", anser.Trailer(&md))
		if e := wantFault(t, err, anser.Unavailable, anser.Executed); len(e.Attempts) < 2 || len(md) != 0 {
			t.Error(md, err)
		}
		md = anser.Metadata{"old": "x"}
		_, err = call(context.Background(), c, "Echo.Say", "hello", anser.Trailer(&md), anser.Timeout(-1))
		if wantFault(t, err, anser.DeadlineExceeded, anser.NotSent); len(md) != 0 {
			t.Error(md)
		}
	})
}

// A reply that cannot be decoded is an error that says which instance sent it, in which attempt.
func TestBrokenReply(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		var s service
		s.serve(t, network, func(p *wirepeer.Peer, f wirepeer.Frame, _ string, before int) {
			if before == 1 {
				p.Close()
				return
			}
			frame := append(wire.AppendReplyHead(nil, f.ID, 0, codec.MsgpackID, 0, nil), 0xC1) // a byte that MessagePack does not use
			wire.PutLength(frame, uint32(len(frame)-wire.HeaderSize))
			p.Send(frame)
		}, "a:1", "b:1")
		c := dial(t, "tcp://a:1,b:1", anser.Dialer(network.Dial), anser.Idempotent())
		for _, attempts := range []int{0, 2} {
			_, err := anser.Call[Reply](context.Background(), c, "Arith.Mul", &Args{7, 8})
			e := wantFault(t, err, anser.Internal, anser.Executed)
			asked, _, _ := s.tell()
			s.mu.Lock()
			s.asked = []string{""} // the next one is the second to ask
			s.mu.Unlock()
			if e.Phase != anser.PhaseDecode || e.Address != asked[len(asked)-1] || len(e.Attempts) != attempts || e.Attempt != max(attempts-1, 0) {
				t.Errorf("%+v, asked %v", e, asked)
			}
		}
	})
}

// What is too large stays too large: it is not sent again.
func TestTooLargeIsNotRetried(t *testing.T) {
	network := new(ansertest.Network)
	s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.MaxMessage(1000))
	c := dial(t, "a:1", anser.Dialer(network.Dial))
	_, err := call(context.Background(), c, "Echo.Say", strings.Repeat("x", 1001))
	e := wantFault(t, err, anser.ResourceExhausted, anser.Refused)
	if want := "the message of 1001 bytes is over the limit of 1000: raise it with anser.MaxMessage on the server, or send less"; e.Message != want {
		t.Error(e.Message)
	}
	if out, err := call(context.Background(), c, "Echo.Say", strings.Repeat("x", 1000)); len(out) != 1000 || err != nil {
		t.Error(err)
	}
	if st := s.Stats(); st.Refused != 1 || st.Methods["Echo.Say"].Calls != 1 {
		t.Errorf("%d calls refused, %d ran; want 1, 1", st.Refused, st.Methods["Echo.Say"].Calls)
	}
}
