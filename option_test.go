package anser_test

import (
	"crypto/tls"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/balance"
	"github.com/anser-rpc/anser/codec"
)

// Options are values: the same one may be given to many clients.
func TestOptionsAreShared(t *testing.T) {
	config := &tls.Config{ServerName: "example"}
	opt := anser.TLS(config)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			c, err := anser.Dial("127.0.0.1:1", opt, silent)
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	wg.Wait()
	if config.MinVersion != 0 {
		t.Error("the caller's configuration was changed")
	}
}

// unnumbered is a codec without a number.
type unnumbered struct{ codec.Raw }

func (unnumbered) ID() uint8 { return 0 }

// An option that cannot work is an error of Dial and of Serve that says what would work.
func TestOptionMistakes(t *testing.T) {
	for want, opt := range map[string]anser.Option{
		"anser.Logger: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)": anser.Logger(nil),
		"anser.Intercept: an interceptor is nil":                                                          anser.Intercept(nil),
		"anser.Codecs: a codec is nil":                                                                    anser.Codecs(codec.Raw{}, nil),
		`anser.Codecs: codec "raw" has the number 0: use 64 to 255`:                                       anser.Codecs(unnumbered{}),
		"anser.TLS: the configuration is nil: leave the option out for a side without TLS":                anser.TLS(nil),
		"anser.MaxMessage(0): want 1 to 2147418111 bytes":                                                 anser.MaxMessage(0),
		"anser.MaxMessage(9223372036854775807): want 1 to 2147418111 bytes":                               anser.MaxMessage(math.MaxInt),
		"anser.Keepalive(0s, 1ns): want times above 0":                                                    anser.Keepalive(0, 1),
		"anser.Keepalive(1ns, -1ns): want times above 0":                                                  anser.Keepalive(1, -1),
		"anser.HandshakeTimeout(0s): want a time above 0":                                                 anser.HandshakeTimeout(0),
		"anser.IdleTimeout(-1ns): want at least 0":                                                        anser.IdleTimeout(-1),
		"anser.ReadTimeout(-1ns): want at least 0":                                                        anser.ReadTimeout(-1),
		"anser.WriteStall(0s): want a time above 0":                                                       anser.WriteStall(0),
	} {
		wantMistake(t, opt, nil, want)
		wantMistake(t, nil, opt, want)
	}
	for want, opt := range map[string]anser.DialOption{
		"anser.Balancer: the balancer is nil: leave the option out for balance.P2C":                         anser.Balancer(nil),
		`anser.Balancer: "closest": the client's position is unknown: set Here.Latitude and Here.Longitude`: anser.Balancer(balance.Closest(balance.Here{})),
		"anser.SlowStart(-1ns): want at least 0":                                                            anser.SlowStart(-1),
		"anser.Conns(0): want at least 1":                                                                   anser.Conns(0),
		"anser.ConnectTimeout(-1ns): want a time above 0":                                                   anser.ConnectTimeout(-1),
		"anser.Dialer: the function is nil: leave the option out for net.Dialer":                            anser.Dialer(nil),
		"anser.RetryBudget(-1, 1): want numbers of at least 0":                                              anser.RetryBudget(-1, 1),
		"anser.RetryBudget(1, NaN): want numbers of at least 0":                                             anser.RetryBudget(1, math.NaN()),
	} {
		wantMistake(t, opt, nil, want)
	}
	for want, opt := range map[string]anser.ServerOption{
		"anser.MaxInFlight(0): want at least 1":             anser.MaxInFlight(0),
		"anser.MaxQueueTime(-1ns): want a time above 0":     anser.MaxQueueTime(-1),
		"anser.AdaptiveLimit(-1, 0): want numbers of at le": anser.AdaptiveLimit(-1, 0),
		"anser.MaxConns(-1): want at least 1":               anser.MaxConns(-1),
		"anser.MaxHandshakes(0): want at least 1":           anser.MaxHandshakes(0),
		"anser.DrainGrace(-1ns): want at least 0":           anser.DrainGrace(-1),
		"anser.MinPing(-1ns): want at least 0":              anser.MinPing(-1),
	} {
		wantMistake(t, nil, opt, want)
	}
	s := anser.NewServer(silent, nil)
	defer s.Close()
	if err := s.Serve(new(ansertest.Network).Listen("a:1")); err == nil || !strings.Contains(err.Error(), "an option of the server is nil") {
		t.Error(err)
	}
}

// wantMistake makes a client or a server with the option, whichever is not nil.
func wantMistake(t *testing.T, client anser.DialOption, server anser.ServerOption, want string) {
	t.Helper()
	var err error
	if client != nil {
		var c *anser.Client
		if c, err = anser.Dial("a:1", client); err == nil {
			c.Close()
		}
	} else {
		s := anser.NewServer(silent, server)
		anser.Handle(s, "Arith.Mul", mul)
		l := new(ansertest.Network).Listen("a:1")
		err = s.Serve(l)
		s.Close()
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
}
