package command_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
	"github.com/anser-rpc/anser/transport/quic"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// secureServer serves Hello.Name, which returns the common name of its caller's certificate; it
// requires one.
func secureServer(t *testing.T, l net.Listener, config *tls.Config) {
	t.Helper()
	s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)), anser.TLS(config))
	type reply struct{ Name string }
	anser.Handle(s, "Hello.Name", func(ctx context.Context, _ *struct{}) (*reply, error) {
		p, _ := anser.PeerFrom(ctx)
		return &reply{p.TLS.PeerCertificates[0].Subject.CommonName}, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-ended
	})
}

func TestChecksumsFlag(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
	type reply struct{ Checksums bool }
	anser.Handle(s, "Hello.Checksums", func(ctx context.Context, _ *struct{}) (*reply, error) {
		p, _ := anser.PeerFrom(ctx)
		return &reply{p.Checksums}, nil
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-ended
	})
	run(t, "call", l.Addr().String(), "Hello.Checksums", "--timeout", "2m").expect(t, 0, "false")
	run(t, "call", l.Addr().String(), "Hello.Checksums", "--timeout", "2m", "--checksums").expect(t, 0, "true")
}

func TestTLSFlags(t *testing.T) {
	a, dir := transporttest.NewAuthority(t), t.TempDir()
	config := &tls.Config{
		Certificates: []tls.Certificate{a.Issue(t, time.Hour, "127.0.0.1", "arith.example.org")},
		ClientCAs:    a.Pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	secureServer(t, l, config)
	q, err := quic.Listen("127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Wait)
	secureServer(t, q, config)
	ca := a.Write(t, dir, "ca")
	cert, key := transporttest.Write(t, dir, "me", a.Issue(t, time.Hour, "somebody"))
	mine := []string{"--ca", ca, "--cert", cert, "--key", key}
	call := func(target string, flags ...string) result {
		return run(t, append([]string{"call", target, "Hello.Name", "--timeout", "2m"}, flags...)...)
	}
	address := l.Addr().String()
	for _, target := range []string{address, "tls://" + address, "quic://" + q.Addr().String()} {
		call(target, mine...).expect(t, 0, `"somebody"`)
	}
	call(address, append(mine, "--server-name", "arith.example.org")...).expect(t, 0, `"somebody"`)
	call(address, append(mine, "--server-name", "other.example.org")...).expect(t, 3, "other.example.org", "--server-name says")
	call(address).expect(t, 3, "this port speaks TLS: use --tls")
	call(address, "--tls").expect(t, 3, "unknown authority", "--ca names the PEM file")
	run(t, "describe", address, "--tls", "--timeout", "2m").expect(t, 3, "unknown authority", "--ca names the PEM file")
	call(address, "--ca", ca).expect(t, 3, "certificate required")
	call(address, "--cert", cert).expect(t, 2, "--cert and --key belong together")
	call(address, "--ca", filepath.Join(dir, "nothing")).expect(t, 2, "no such file")
	call(address, "--ca", key).expect(t, 2, "holds no certificate")
	run(t, append([]string{"describe", address, "--timeout", "2m"}, mine...)...).expect(t, 0, "Hello.Name")
	out := run(t, append([]string{"bench", address, "Hello.Name", "--seconds", "0.2", "--warmup", "0", "--callers", "2", "--json"}, mine...)...)
	out.expect(t, 0)
	if !strings.Contains(out.out, `"errors":0`) && !strings.Contains(out.out, `"errors": 0`) {
		t.Error(out.out)
	}
}

func TestTokenFile(t *testing.T) {
	good, dir := auth.NewToken(), t.TempDir()
	tokens, err := auth.NewTokens(auth.Grant{Subject: "ada", SHA256: auth.Digest(good)})
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(anser.Authenticate(tokens), anser.Logger(slog.New(slog.DiscardHandler)))
	anser.Handle(s, "Hello.Name", func(ctx context.Context, _ *anser.None) (*string, error) {
		return new(anser.IdentityFrom(ctx).Subject), nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-ended })
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	call := func(flags ...string) result {
		return run(t, append([]string{"call", l.Addr().String(), "Hello.Name", "--timeout", "2m"}, flags...)...)
	}
	call("--token-file", file("good", good+"\n")).expect(t, 0, `"ada"`)
	bad := auth.NewToken()
	out := call("--token-file", file("bad", bad))
	out.expect(t, 3, "the server does not take the credential")
	if strings.Contains(out.out+out.err, bad) {
		t.Error("the token is shown")
	}
	call("--token-file", filepath.Join(dir, "none")).expect(t, 2, "--token-file: ", "no such file")
	call().expect(t, 3, "use --token-file, or --cert and --key")
}
