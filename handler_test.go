package anser_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
)

// A handler that ends its goroutine, as t.FailNow does in a test's handler, fails its call alone.
func TestHandlerThatEndsItsGoroutine(t *testing.T) {
	for name, opt := range map[string]anser.HandleOption{"inline": anser.Inline(), "concurrent": anser.Concurrent()} {
		for _, wait := range []time.Duration{0, 10 * time.Millisecond} { // after that the connection has another reader
			t.Run(name+wait.String(), func(t *testing.T) {
				bubble(t, func(t *testing.T, network *ansertest.Network) {
					s := anser.NewServer(silent)
					anser.Handle(s, "Echo.Say", echo, opt)
					anser.Handle(s, "Echo.Exit", func(ctx context.Context, in *[]byte) (*[]byte, error) {
						time.Sleep(wait)
						runtime.Goexit()
						return in, nil
					}, opt)
					run(t, s, network.Listen("a:1"))
					c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1))
					for range 3 {
						_, err := call(context.Background(), c, "Echo.Exit", "")
						e := wantFault(t, err, anser.Internal, anser.Executed)
						if !strings.Contains(e.Message, "ended its goroutine") {
							t.Error(e.Message)
						}
						if out, err := call(context.Background(), c, "Echo.Say", "hello"); out != "hello" || err != nil {
							t.Fatal(out, err)
						}
					}
					synctest.Wait()
					if st := s.Stats(); st.InFlight != 0 || st.Conns != 1 || st.Accepted != 1 || st.Methods["Echo.Exit"].Failed != 3 {
						t.Errorf("%+v", st)
					}
				})
			})
		}
	}
}
