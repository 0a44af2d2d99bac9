package anser_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// about fails the test unless d is want or up to 2.5 s more: connections are checked about once a
// second.
func about(t *testing.T, what string, d, want time.Duration) {
	t.Helper()
	if d < want || d > want+2500*time.Millisecond {
		t.Errorf("%s after %v, want about %v", what, d, want)
	}
}

// silence reads what a side sends to a peer that does not answer, and returns when the ping and
// the end arrived.
func silence(t *testing.T, p *wirepeer.Peer) (pinged, closed time.Duration) {
	began := time.Now()
	f, err := p.Next()
	if f.Type != wire.TypePing || err != nil {
		t.Errorf("%s, %v; want a ping", f.Type, err)
	}
	pinged = time.Since(began)
	reason, text, err := p.ReadClose()
	if reason != wire.Timeout || text != "no answer to a ping for 10s (anser.Keepalive)" || err != nil {
		t.Error(reason, text, err)
	}
	return pinged, time.Since(began)
}

func TestClientGivesASilentServerUp(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		silent := make(chan struct{}, 8)
		rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
			f, err := p.NextOf(wire.TypeRequest)
			if err != nil {
				return
			}
			p.Send(wirepeer.Reply(f.ID, []byte("ok")))
			pinged, closed := silence(t, p)
			about(t, "pinged", pinged, 30*time.Second)
			about(t, "closed", closed, 40*time.Second)
			silent <- struct{}{}
		})
		c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
		for range 2 { // the second call needs a new connection
			if out, err := call(context.Background(), c, "Echo.Say", ""); out != "ok" || err != nil {
				t.Fatal(out, err)
			}
			<-silent
		}
	})
}

// An open call is not a sign of life.
func TestClientGivesASilentServerUpDuringACall(t *testing.T) {
	for name, opt := range map[string]func() (context.Context, context.CancelFunc){
		"plain":      func() (context.Context, context.CancelFunc) { return context.Background(), func() {} },
		"cancelable": func() (context.Context, context.CancelFunc) { return context.WithCancel(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				silent := make(chan struct{})
				rawServer(t, network.Listen("a:1"), func(p *wirepeer.Peer) {
					f, err := p.NextOf(wire.TypeRequest)
					if err != nil {
						return
					}
					p.Send(wirepeer.Reply(f.ID, []byte("ok")))
					p.NextOf(wire.TypeRequest)
					silence(t, p)
					close(silent)
				})
				c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
				if _, err := call(context.Background(), c, "Echo.Say", ""); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := opt()
				defer cancel()
				began := time.Now()
				_, err := call(ctx, c, "Echo.Say", "", anser.Timeout(0))
				wantFault(t, err, anser.Unavailable, anser.OutcomeUnknown)
				about(t, "the call failed", time.Since(began), 40*time.Second)
				<-silent
			})
		})
	}
}

func TestServerGivesASilentClientUp(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		ended := make(chan error, 1)
		s := serve(t, network.Listen("a:1"), map[string]handler{
			"Echo.Wait": func(ctx context.Context, in *[]byte) (*[]byte, error) {
				<-ctx.Done()
				ended <- ctx.Err()
				return in, nil
			},
		})
		p := rawClient(t, network, "a:1")
		p.Send(wire.AppendMethod(nil, 1, "Echo.Wait"), wirepeer.Request(1, 1, nil))
		pinged, closed := silence(t, p)
		about(t, "pinged", pinged, 30*time.Second)
		about(t, "closed", closed, 40*time.Second)
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
		p.Close()
		synctest.Wait()
		if st := s.Stats(); st.Closed["TIMEOUT"] != 1 || st.Conns != 0 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	})
}
