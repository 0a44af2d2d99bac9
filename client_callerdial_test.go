package anser_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// A caller that makes its connection itself is no lasting reader: pings and drains that come later
// are seen, calls of others are answered, and Close does not wait for a server that is silent.
func TestCallerMakesItsConnection(t *testing.T) {
	for name, opts := range map[string][]anser.DialOption{"waits": nil, "early": {anser.Idempotent()}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var ran atomic.Int32
				l := network.Listen("a:1")
				s := serve(t, l, countRuns(&ran))
				c := dial(t, "a:1", append(opts, anser.Dialer(network.Dial), anser.Conns(1))...)
				if _, err := call(context.Background(), c, "Echo.Say", "x"); err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				for range 20 {
					wg.Go(func() {
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						if _, err := call(ctx, c, "Echo.Say", "x"); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				ended := make(chan error, 1)
				began := time.Now()
				go func() { ended <- s.Shutdown(context.Background()) }()
				if err := <-ended; err != nil || time.Since(began) > 2*time.Second {
					t.Errorf("the server has stopped with %v after %v", err, time.Since(began))
				}
				silence := network.Listen("a:1")
				defer silence.Close()
				failed := make(chan error, 1)
				go func() {
					_, err := call(context.Background(), c, "Echo.Say", "x")
					failed <- err
				}()
				time.Sleep(time.Second)
				began = time.Now()
				c.Close()
				if err := <-failed; err == nil || time.Since(began) > 100*time.Millisecond {
					t.Errorf("after Close: %v, after %v", err, time.Since(began))
				}
			})
		})
	}
}

// A function of the user that does not return does not make a call outlast its deadline: another
// goroutine makes the connection.
func TestDeadlineWhileAFunctionMakesTheConnectionWait(t *testing.T) {
	wait := func() { time.Sleep(time.Minute) }
	lastly := func(context.Context, string, string) (net.Conn, error) { return nil, context.DeadlineExceeded }
	for name, opts := range map[string][]anser.DialOption{
		"observer of connections": {anser.Observe(anser.Observer{ConnOpened: func(anser.ConnInfo) error { wait(); return nil }})},
		"observer of failures":    {anser.Dialer(lastly), anser.Observe(anser.Observer{ConnFailed: func(anser.ConnInfo, error) { wait() }})},
		"verification": {anser.TLS(&tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error {
			wait()
			return nil
		}})},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, network *ansertest.Network) {
				var server []anser.ServerOption
				if name == "verification" {
					authority := transporttest.NewAuthority(t) // whose certificates are valid at the time of the bubble
					server = append(server, anser.TLS(&tls.Config{Certificates: []tls.Certificate{authority.Issue(t, time.Hour, "a")}}))
				}
				serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, server...)
				c := dial(t, "a:1", append([]anser.DialOption{anser.Dialer(network.Dial), anser.Conns(1)}, opts...)...)
				began := time.Now()
				_, err := call(context.Background(), c, "Echo.Say", "x", anser.Timeout(10*time.Second))
				if took := time.Since(began); err == nil || took > 10*time.Second {
					t.Errorf("%v, after %v", err, took)
				}
			})
		})
	}
}

// The caller may recover a panic of the function that dials: later calls make a connection.
func TestDialerPanics(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo})
		dials := 0
		c := dial(t, "a:1", anser.Conns(1), anser.Dialer(func(ctx context.Context, kind, address string) (net.Conn, error) {
			if dials++; dials == 1 {
				panic("no network")
			}
			return network.Dial(ctx, kind, address)
		}))
		func() {
			defer func() {
				if p := recover(); p != "no network" {
					t.Errorf("recovered %v", p)
				}
			}()
			call(context.Background(), c, "Echo.Say", "x")
		}()
		if out, err := call(context.Background(), c, "Echo.Say", "y"); err != nil || out != "y" {
			t.Errorf("%q, %v", out, err)
		}
	})
}
