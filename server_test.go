package anser_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// A connection that does not finish its handshake is told so.
func TestHandshakeTimeout(t *testing.T) {
	for name, sent := range map[string][]byte{
		"nothing":        nil,
		"half a preface": wire.AppendPreface(nil)[:5],
		"no settings":    wire.AppendPreface(nil),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
				nc, err := network.Dial(context.Background(), "tcp", "a:1")
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				began := time.Now()
				nc.Write(sent)
				p := wirepeer.New(nc)
				if err := p.ReadPreface(); err != nil {
					t.Fatal(err)
				}
				if reason, text, err := p.ReadClose(); reason != wire.Timeout || text == "" || err != nil {
					t.Fatal(reason, text, err)
				}
				if d := time.Since(began); d < 5*time.Second || d > 6*time.Second {
					t.Errorf("closed after %v", d)
				}
				nc.Close()
				synctest.Wait()
				if st := s.Stats(); st.HandshakeFailed != 1 || st.Closed["TIMEOUT"] != 1 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// A connection over the limit learns which limit that is.
func TestMaxConns(t *testing.T) {
	l := listen(t)
	s := serve(t, l, map[string]handler{"Echo.Say": echo}, anser.MaxConns(1))
	first := dial(t, l.Addr().String(), anser.Conns(1))
	if _, err := call(context.Background(), first, "Echo.Say", ""); err != nil {
		t.Fatal(err)
	}
	second := dial(t, l.Addr().String(), anser.Conns(1), anser.MaxMessage(1<<20)) // a connection of its own
	_, err := call(context.Background(), second, "Echo.Say", "", anser.Fail(anser.Failfast))
	e := wantFault(t, err, anser.Unavailable, anser.NotSent)
	if !strings.Contains(e.Message, "limit of 1 connections (anser.MaxConns)") {
		t.Error(e.Message)
	}
	eventually(t, "the refused connection is counted", func() bool { return s.Stats().Closed["OVERLOAD"] > 0 })
}
