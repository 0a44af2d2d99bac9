package anser_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

// crowdEnv, if it is set, is the number of stalled connections that TestStalledHandshakes makes.
// Each needs two file descriptors.
const crowdEnv = "ANSER_STALLED"

// Good clients can connect although peers that never finish their handshake take all places,
// whatever these have sent.
func TestStalledHandshakes(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for handshakes to time out")
	}
	crowd := 500
	if text := os.Getenv(crowdEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		crowd = n
	}
	record := []byte{0x16, 3, 1, 2, 0, 1} // the beginning of a ClientHello of some hundred bytes
	settings := wire.DefaultSettings()
	settings.Features = wire.FeatureAuth
	for secure, all := range map[bool]map[string][]byte{
		false: {"nothing": nil, "half a preface": wire.AppendPreface(nil)[:5], "no settings": wire.AppendPreface(nil), "no credential": wirepeer.Hello(settings)},
		true:  {"nothing": nil, "half a ClientHello": record},
	} {
		for name, sent := range all {
			t.Run(fmt.Sprintf("%s, TLS %v", name, secure), func(t *testing.T) {
				l := listen(t)
				opts := []anser.ServerOption{anser.MaxHandshakes(64), anser.HandshakeTimeout(time.Hour)}
				var own []anser.DialOption
				if secure {
					a := transporttest.NewAuthority(t)
					opts = append(opts, serverTLS(t, a, "127.0.0.1"))
					own = append(own, anser.TLS(&tls.Config{RootCAs: a.Pool}))
				}
				if name == "no credential" {
					opts = append(opts, anser.Authenticate(new(door)))
					own = append(own, showing("good"))
				}
				s := serve(t, l, map[string]handler{"Echo.Say": echo}, opts...)
				stalled := make([]net.Conn, crowd)
				var wg sync.WaitGroup
				for i := range stalled {
					nc, err := net.Dial("tcp", l.Addr().String())
					if err != nil {
						t.Fatal(err)
					}
					defer nc.Close()
					nc.Write(sent)
					stalled[i] = nc
					if i%(crowd/8) == 0 {
						wg.Go(func() { enters(t, l.Addr().String(), own) })
					}
				}
				wg.Wait()
				eventually(t, "those who stall are gone, but for as many as there are places", func() bool {
					st, least := s.Stats(), int64(crowd-64)
					return st.LimitsHit["MaxHandshakes"] >= least && st.Closed["OVERLOAD"] >= least && st.HandshakeFailed >= least
				})
				if secure {
					return // they get no CLOSE: their TLS handshake had not begun
				}
				p := wirepeer.New(stalled[0])
				p.SetDeadline(time.Now().Add(patience))
				if err := p.ReadPreface(); err != nil {
					t.Fatal(err)
				}
				const want = "the server is at its limit of 64 connections in their handshake, and this one kept it waiting (anser.MaxHandshakes)"
				if reason, text, err := p.ReadClose(); reason != wire.Overload || text != want || err != nil {
					t.Error(reason, text, err)
				}
			})
		}
	}
}

// enters makes a call over a new connection.
func enters(t *testing.T, address string, opts []anser.DialOption) {
	// A dialer of its own gives each client its own connection.
	c, err := anser.Dial(address, append([]anser.DialOption{
		silent, anser.NoSnapshot(), anser.Conns(1), anser.Dialer(new(net.Dialer).DialContext), anser.HandshakeTimeout(patience), anser.ConnectTimeout(patience),
	}, opts...)...)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	began := time.Now()
	if _, err := call(context.Background(), c, "Echo.Say", "", anser.Timeout(patience)); err != nil {
		t.Error(err)
	}
	t.Log("a good client was there after", time.Since(began).Round(time.Millisecond))
}

// A client in the middle of its TLS handshake gets more time than a client that sends nothing,
// and a client that has completed it keeps its place.
func TestWhoGivesUpItsPlace(t *testing.T) {
	for range 200 {
		if givesUpItsPlace(t) {
			return
		}
	}
	t.Error("each time the one in the middle of its handshake was too slow itself")
}

// givesUpItsPlace reports whether the attempt was conclusive: whether the silent client was
// closed while the other one still had time.
func givesUpItsPlace(t *testing.T) bool {
	l := listen(t)
	a := transporttest.NewAuthority(t)
	s := serve(t, l, map[string]handler{"Echo.Say": echo}, anser.MaxHandshakes(2), anser.HandshakeTimeout(time.Hour), serverTLS(t, a, "127.0.0.1"))
	open := func() net.Conn {
		nc, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		nc.SetDeadline(time.Now().Add(time.Minute))
		return nc
	}
	began := time.Now()
	greeted := tls.Client(open(), &tls.Config{RootCAs: a.Pool, ServerName: "127.0.0.1"})
	if err := greeted.Handshake(); err != nil { // which began before the silent one came
		t.Fatal(err)
	}
	silentOne := open()
	eventually(t, "both have places", func() bool { return s.Stats().Accepted == 2 })
	for i := range 2 {
		third := tls.Client(open(), &tls.Config{RootCAs: a.Pool, ServerName: "127.0.0.1"})
		if err := third.Handshake(); err != nil {
			t.Fatal(err)
		}
		if i == 0 && time.Since(began) > 400*time.Millisecond {
			return false
		}
		p := wirepeer.New(third)
		if _, err := p.Handshake(); err != nil {
			t.Fatal(err)
		}
		p.Send(wire.AppendPing(nil, wire.TypePing, 1))
		if f, err := p.Next(); f.Type != wire.TypePong || err != nil { // now it has left its place to the next one
			t.Fatal(f.Type, err)
		}
	}
	if n, err := silentOne.Read(make([]byte, 1)); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v, want the end of the one that says nothing", n, err)
	}
	if n := s.Stats().LimitsHit["MaxHandshakes"]; n != 1 {
		t.Errorf("%d were turned out, want the silent one", n)
	}
	if _, err := wirepeer.New(greeted).Handshake(); err != nil {
		t.Error(err)
	}
	return true
}

// A client that sends nothing to a TLS listener is counted too, although it gets no answer.
func TestHandshakeTimeoutWithTLS(t *testing.T) {
	l := listen(t)
	s := serve(t, l, nil, anser.HandshakeTimeout(10*time.Millisecond), serverTLS(t, transporttest.NewAuthority(t), "127.0.0.1"))
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	eventually(t, "it is counted", func() bool {
		st := s.Stats()
		return st.LimitsHit["HandshakeTimeout"] == 1 && st.HandshakeFailed == 1
	})
}

// Many clients that connect at once all succeed, although there are far fewer places.
func TestBurstOfHandshakes(t *testing.T) {
	const clients = 100
	l := listen(t)
	a := transporttest.NewAuthority(t)
	s := serve(t, l, map[string]handler{"Echo.Say": echo}, anser.MaxHandshakes(8), anser.HandshakeTimeout(time.Hour), serverTLS(t, a, "127.0.0.1"))
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() { enters(t, l.Addr().String(), []anser.DialOption{anser.TLS(&tls.Config{RootCAs: a.Pool})}) })
	}
	wg.Wait()
	t.Logf("%d were turned out and came again", s.Stats().LimitsHit["MaxHandshakes"])
}
