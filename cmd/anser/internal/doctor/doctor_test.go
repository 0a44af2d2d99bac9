package doctor_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
	"github.com/anser-rpc/anser/transport/transporttest"
	"github.com/anser-rpc/anser/wire"
)

func TestHealthyServer(t *testing.T) {
	g := examine(t, patient, serve(t))
	expect(t, g, "tcp", doctor.Pass, "connects to 127.0.0.1:")
	expect(t, g, "handshake", doctor.Pass, "speaks Anser, version 1")
	expect(t, g, "description", doctor.Pass, "describes 2 methods")
	expect(t, g, "protocols", doctor.Note, "Anser only")
	without(t, g, doctor.Warn, doctor.Fail)
	var names []string
	for _, s := range g.Timings[0].Steps {
		names = append(names, s.Name)
	}
	if got := strings.Join(names, " "); got != "connect handshake description" {
		t.Errorf("the steps are %q", got)
	}
}

func TestSeveralAddresses(t *testing.T) {
	at, none := serve(t), unused(t)
	groups, err := patient.Target(t.Context(), "tcp://"+at+","+none)
	if err != nil || len(groups) != 2 {
		t.Fatalf("%d groups, %v", len(groups), err)
	}
	without(t, groups[0], doctor.Warn, doctor.Fail)
	expect(t, groups[1], "tcp", doctor.Fail, "refuses connections", "no process listens there")
	for _, wrong := range []string{"h", "h:0", "tcp://a:1,b", "unix://"} {
		if _, err := patient.Target(t.Context(), wrong); err == nil {
			t.Errorf("%q was taken", wrong)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	g := examine(t, patient, "unix://"+path)
	expect(t, g, "tcp", doctor.Fail, "there is no socket "+path)
	s := anser.NewServer(silent, anser.NoSignals())
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Close(); <-served }()
	g = examine(t, patient, "unix://"+path)
	expect(t, g, "description", doctor.Pass, "answers calls")
	without(t, g, doctor.Warn, doctor.Fail)
}

func TestServerThatSaysNothing(t *testing.T) {
	t.Parallel()
	at := plainServer(t, discard)
	g, timeout := hastily(func(c *doctor.Config) *doctor.Group { return examine(t, c, at) }, "connects to")
	expect(t, g, "tcp", doctor.Pass, "connects to")
	expect(t, g, "handshake", doctor.Fail, "says nothing within "+timeout.String(), "the process hangs or is paused")
	expect(t, g, "protocols", doctor.Fail, "speaks none of Anser, gRPC")
	if steps := g.Timings[0].Steps; len(steps) != 3 || steps[1].Error == "" || steps[1].Micros < timeout.Microseconds() {
		t.Errorf("the timing does not say where it hung: %+v", steps)
	}
}

func TestServerThatHangsInCalls(t *testing.T) {
	t.Parallel()
	at := plainServer(t, func(nc net.Conn) {
		begin := make([]byte, len(wire.Magic))
		if _, err := io.ReadFull(nc, begin); err == nil && string(begin) == string(wire.Magic[:]) {
			nc.Write(wire.AppendSettings(wire.AppendPreface(nil), wire.DefaultSettings()))
			discard(nc)
		}
	})
	g, timeout := hastily(func(c *doctor.Config) *doctor.Group { return examine(t, c, at) }, "speaks Anser", "no answer to a call")
	expect(t, g, "handshake", doctor.Pass, "speaks Anser")
	expect(t, g, "description", doctor.Fail, "no answer to a call within "+timeout.String())
}

func TestServersOfOtherKinds(t *testing.T) {
	t.Parallel()
	closes := examine(t, patient, plainServer(t, func(net.Conn) {}))
	expect(t, closes, "handshake", doctor.Fail, "closed the connection without an answer")
	expect(t, closes, "protocols", doctor.Fail, "speaks none of")

	at := plainServer(t, func(nc net.Conn) {
		io.WriteString(nc, "SSH-2.0-\x1b]0;title\x07\u202eevil\xff\r\n")
		discard(nc)
	})
	ssh, _ := hastily(func(c *doctor.Config) *doctor.Group { return examine(t, c, at) }, "SSH-2.0-")
	expect(t, ssh, "handshake", doctor.Fail, "neither Anser nor HTTP", "SSH-2.0-")
	if all := text(ssh); strings.ContainsAny(all, "\x1b\x07\u202e") || !utf8.ValidString(all) {
		t.Errorf("a terminal gets what the server sends: %q", all)
	}

	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	g, _ := hastily(func(c *doctor.Config) *doctor.Group { return examine(t, c, web.Listener.Addr().String()) }, "speaks HTTP/1.1", "agrees with")
	expect(t, g, "handshake", doctor.Fail, "speaks HTTP/1.1, not Anser")
	expect(t, g, "clock", doctor.Pass, "agrees with this machine's")
}

// A server may refuse the handshake with a reason.
func TestRefusedHandshakes(t *testing.T) {
	for name, test := range map[string]struct {
		reason wire.Reason
		say    string
		check  string
		status doctor.Status
		part   string
	}{
		"version":  {wire.BadVersion, "protocol version 1 is not supported", "handshake", doctor.Fail, "another version of the protocol"},
		"internal": {wire.Internal, "no \x1b[2Jmemory", "handshake", doctor.Fail, `no \x1b[2Jmemory (INTERNAL)`},
		"overload": {wire.Overload, "the server is at its limit", "limits", doctor.Fail, "the server takes no more connections"},
		"TLS":      {wire.BadFrame, "this port speaks TLS: give the client anser.TLS", "tls", doctor.Fail, "the port speaks TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			g := examine(t, patient, plainServer(t, func(nc net.Conn) {
				nc.Write(wire.AppendClose(wire.AppendPreface(nil), test.reason, test.say))
			}))
			expect(t, g, test.check, test.status, test.part)
		})
	}
}

func TestServerAtItsLimitOfConnections(t *testing.T) {
	at := serve(t, anser.MaxConns(1))
	c, err := anser.Dial(at, anser.Conns(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Call(t.Context(), anser.MethodsName, new(anser.None), new(anser.MethodList), anser.WithFailMode(anser.Failfast)); err != nil {
		t.Fatal(err)
	}
	g := examine(t, patient, at)
	expect(t, g, "limits", doctor.Fail, "limit of 1 connections", "raise anser.MaxConns")
}

func TestServerThatDescribesNothing(t *testing.T) {
	g := examine(t, patient, serve(t, anser.NoDescribe()))
	expect(t, g, "description", doctor.Note, "anser.NoDescribe")
	without(t, g, doctor.Warn, doctor.Fail)
}

// A server that refuses the question for its methods says why.
func TestServerThatRefusesToDescribe(t *testing.T) {
	refuses := func(code anser.Code) string {
		return serve(t, anser.Observe(anser.Observer{Request: func(context.Context, anser.MessageInfo) error {
			return anser.Errorf(code, "the server is at its limit of 3 calls")
		}}))
	}
	g := examine(t, patient, refuses(anser.ResourceExhausted))
	expect(t, g, "limits", doctor.Fail, "at its limit of 3 calls", "docs/limits.md")
	g = examine(t, patient, refuses(anser.PermissionDenied))
	expect(t, g, "description", doctor.Note, "may not ask for the methods")
	without(t, g, doctor.Warn, doctor.Fail)
}

func TestServerThatDemandsChecksums(t *testing.T) {
	g := examine(t, patient, serve(t, anser.Checksums()))
	expect(t, g, "handshake", doctor.Pass, "speaks Anser")
	expect(t, g, "description", doctor.Pass, "describes 2 methods")
	without(t, g, doctor.Warn, doctor.Fail)
}

func TestAuthentication(t *testing.T) {
	token := auth.NewToken()
	at := serve(t, anser.Authenticate(anser.AuthenticatorFunc(func(_ context.Context, r *anser.AuthRequest) (*anser.Identity, error) {
		if string(r.Data) != token {
			return nil, errors.New("not valid")
		}
		return &anser.Identity{Subject: "ada"}, nil
	})))
	g := examine(t, patient, at)
	expect(t, g, "authentication", doctor.Note, "requires a token or a certificate")
	expect(t, g, "authentication", doctor.Warn, "does not take this client")
	without(t, g, doctor.Fail)
	known := &doctor.Config{Timeout: time.Minute, Dial: []anser.DialOption{auth.Token(token)}}
	g = examine(t, known, at)
	expect(t, g, "description", doctor.Pass, "describes 2 methods")
	without(t, g, doctor.Warn, doctor.Fail)
	if strings.Contains(text(g), token) {
		t.Error("the token is shown")
	}
}

func TestClientCertificateIsRequired(t *testing.T) {
	a := transporttest.NewAuthority(t)
	at := serve(t, anser.TLS(a.Server(t, true)))
	config := a.Client(t)
	with := &doctor.Config{Timeout: time.Minute, TLS: config, Dial: []anser.DialOption{anser.TLS(config)}}
	g := examine(t, with, at)
	expect(t, g, "description", doctor.Pass, "describes 2 methods")
	without(t, g, doctor.Fail)

	bare := config.Clone()
	bare.Certificates = nil
	without(t, examine(t, &doctor.Config{Timeout: time.Minute, TLS: bare, Dial: []anser.DialOption{anser.TLS(bare)}}, at), doctor.Fail)
	g = examine(t, &doctor.Config{Timeout: time.Minute, TLS: bare, Dial: []anser.DialOption{anser.TLS(bare)}}, at)
	expect(t, g, "authentication", doctor.Note, "requires a certificate of the client")
}
