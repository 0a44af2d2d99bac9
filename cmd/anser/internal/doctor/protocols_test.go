package doctor_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/internal/authority"
	"github.com/anser-rpc/anser/protocols"
)

const all = "the port speaks Anser, gRPC (SERVING), gRPC-Web, Connect, JSON over HTTP, JSON-RPC over HTTP, JSON-RPC over TCP, net/rpc, rpcx"

func TestProtocols(t *testing.T) {
	g := examine(t, patient, serve(t, protocols.All()))
	expect(t, g, "protocols", doctor.Pass, all)
	expect(t, g, "clock", doctor.Pass, "agrees")
	without(t, g, doctor.Warn, doctor.Fail)

	g = examine(t, patient, serve(t, anser.Protocols(protocols.RPCXClients())))
	expect(t, g, "protocols", doctor.Pass, "speaks Anser, rpcx; not gRPC, ")
}

func TestProtocolsOverTLS(t *testing.T) {
	a := authority.New("the authority")
	at := serve(t, protocols.All(), anser.TLS(&tls.Config{Certificates: []tls.Certificate{a.Issue()}, NextProtos: []string{anser.ALPN, "h2", "http/1.1"}}))
	config := &tls.Config{RootCAs: a.Pool}
	g := examine(t, &doctor.Config{Timeout: time.Minute, TLS: config, Dial: []anser.DialOption{anser.TLS(config)}}, at)
	expect(t, g, "protocols", doctor.Pass, all)
	without(t, g, doctor.Warn, doctor.Fail)
}

func TestProtocolsWithAuthentication(t *testing.T) {
	g := examine(t, patient, serve(t, protocols.All(), anser.Authenticate(anser.AuthenticatorFunc(func(context.Context, *anser.AuthRequest) (*anser.Identity, error) {
		return nil, errors.New("not valid")
	}))))
	expect(t, g, "protocols", doctor.Pass, "gRPC (authentication needed)", "Connect (authentication needed)", "rpcx")
	without(t, g, doctor.Fail)
}

// Clocks are read from the header Date.
func TestClock(t *testing.T) {
	for name, test := range map[string]struct {
		ahead  time.Duration
		status doctor.Status
		part   string
	}{
		"right":     {0, doctor.Pass, "agrees"},
		"ahead":     {-20 * time.Second, doctor.Warn, "behind this machine's"},
		"behind":    {20 * time.Second, doctor.Warn, "ahead of this machine's"},
		"yesterday": {-24 * time.Hour, doctor.Fail, "hours behind this machine's"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", time.Now().Add(test.ahead).UTC().Format(http.TimeFormat))
			}))
			defer web.Close()
			g, _ := hastily(func(c *doctor.Config) *doctor.Group { return examine(t, c, web.Listener.Addr().String()) }, test.part)
			expect(t, g, "clock", test.status, test.part)
		})
	}
}
