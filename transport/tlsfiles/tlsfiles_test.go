package tlsfiles_test

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/testlog"
	"github.com/anser-rpc/anser/transport/tlsfiles"
	"github.com/anser-rpc/anser/transport/transporttest"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

var (
	discard = slog.New(slog.DiscardHandler)
	silent  = anser.Logger(discard)
	// patient allows handshakes on a busy machine to take longer than the default.
	patient = anser.HandshakeTimeout(time.Minute)
)

func open(t *testing.T, opts ...tlsfiles.Option) *tlsfiles.Files {
	t.Helper()
	f, err := tlsfiles.Open(append([]tlsfiles.Option{tlsfiles.Logger(discard), tlsfiles.Poll(time.Hour)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// serve runs a server until the test ends; its method Test.Name returns the common name of the
// caller.
func serve(t *testing.T, config *tls.Config) string {
	t.Helper()
	s := anser.NewServer(silent, patient, anser.TLS(config))
	anser.Handle(s, "Test.Name", func(ctx context.Context, _ *[]byte) (*[]byte, error) {
		p, _ := anser.PeerFrom(ctx)
		name := ""
		if certs := p.TLS.PeerCertificates; len(certs) > 0 {
			name = certs[0].Subject.CommonName
		}
		return new([]byte(name)), nil
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-ended
	})
	return l.Addr().String()
}

// name returns the result of Test.Name over a new connection.
func name(address string, config *tls.Config) (string, error) {
	c, err := anser.Dial(address, anser.TLS(config), anser.Dialer(new(net.Dialer).DialContext), anser.Conns(1), silent, patient, anser.Timeout(time.Minute))
	if err != nil {
		return "", err
	}
	defer c.Close()
	out, err := anser.Call[[]byte](context.Background(), c, "Test.Name", new([]byte), anser.WithFailMode(anser.Failfast))
	if err != nil {
		return "", err
	}
	return string(*out), nil
}

// Both sides change their certificates and authorities during calls, and none fails. Later
// connections use the new ones.
func TestRotationUnderLoad(t *testing.T) {
	dir := t.TempDir()
	authority := transporttest.NewAuthority(t)
	ca := authority.Write(t, dir, "ca")
	write := func(client string) (serverChain, serverKey, clientChain, clientKey string) {
		serverChain, serverKey = transporttest.Write(t, dir, "server", authority.Issue(t, time.Hour, "127.0.0.1"))
		clientChain, clientKey = transporttest.Write(t, dir, "client", authority.Issue(t, time.Hour, client))
		return
	}
	sc, sk, cc, ck := write("before")
	server := open(t, tlsfiles.Certificate(sc, sk), tlsfiles.Authorities(ca))
	client := open(t, tlsfiles.Certificate(cc, ck), tlsfiles.Authorities(ca))
	address := serve(t, server.Server())

	c, err := anser.Dial("tls://"+address, anser.TLS(client.Client()), silent, patient, anser.Timeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var calls atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := c.Call(context.Background(), "Test.Name", new([]byte), new([]byte)); err != nil {
					t.Errorf("a call under load: %v", err)
				}
				if _, err := name(address, client.Client()); err != nil {
					t.Errorf("a call on a new connection: %v", err)
				}
				calls.Add(1)
			}
		})
	}
	for _, who := range []string{"first", "second"} {
		n := calls.Load()
		for end := time.Now().Add(time.Minute); calls.Load() < n+8 && !t.Failed(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no calls go on")
			}
		}
		write(who)
		if err := errors.Join(server.Reload(), client.Reload()); err != nil {
			t.Error(err)
		}
		if got, err := name(address, client.Client()); got != who || err != nil {
			t.Errorf("a new connection is that of %q, %v; want %q", got, err, who)
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d calls under load and as many new connections", calls.Load())

	// Another authority takes over: clients with a certificate of the old one are rejected, even
	// with an old session.
	other := transporttest.NewAuthority(t)
	oldCert := authority.Issue(t, time.Hour, "left over")
	authority = other
	write("of the other")
	other.Write(t, dir, "ca")
	if err := errors.Join(server.Reload(), client.Reload()); err != nil {
		t.Fatal(err)
	}
	if got, err := name(address, client.Client()); got != "of the other" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := name(address, &tls.Config{RootCAs: other.Pool, Certificates: []tls.Certificate{oldCert}}); err == nil {
		t.Error("a certificate of the old authority is still good")
	}
	if s := server.Stats(); s.Reloads != 3 || s.Failures != 0 || s.Err != nil || len(s.Certificates) != 1 {
		t.Errorf("%+v", s)
	}
}

// A client without a certificate resumes sessions, but not with a server that it no longer trusts.
func TestResumption(t *testing.T) {
	dir := t.TempDir()
	a := transporttest.NewAuthority(t)
	ca := a.Write(t, dir, "ca")
	sc, sk := transporttest.Write(t, dir, "server", a.Issue(t, time.Hour, "localhost"))
	server, client := open(t, tlsfiles.Certificate(sc, sk)), open(t, tlsfiles.Authorities(ca))
	l, err := tls.Listen("tcp", "127.0.0.1:0", server.Server())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			nc.Write([]byte("x"))
			nc.Close()
		}
	})
	defer wg.Wait()
	defer l.Close()
	resumed := func() bool {
		t.Helper()
		config := client.Client().Clone()
		config.ServerName = "localhost"
		nc, err := tls.Dial("tcp", l.Addr().String(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.Read(make([]byte, 1)) // the ticket arrives before it
		return nc.ConnectionState().DidResume
	}
	if resumed() {
		t.Error("the first connection resumes a session")
	}
	if !resumed() {
		t.Error("the second connection does not resume the session")
	}
	transporttest.NewAuthority(t).Write(t, dir, "ca")
	if err := client.Reload(); err != nil {
		t.Fatal(err)
	}
	config := client.Client().Clone()
	config.ServerName = "localhost"
	if nc, err := tls.Dial("tcp", l.Addr().String(), config); err == nil {
		nc.Close()
		t.Error("the session lets a server in whose authority is no longer trusted")
	}
}

// A server with several certificates chooses by the name that the client requests.
func TestNames(t *testing.T) {
	dir := t.TempDir()
	a := transporttest.NewAuthority(t)
	ca := a.Write(t, dir, "ca")
	var opts []tlsfiles.Option
	for _, n := range []string{"one.example.org", "two.example.org"} {
		chain, key := transporttest.Write(t, dir, n, a.Issue(t, time.Hour, n))
		opts = append(opts, tlsfiles.Certificate(chain, key))
	}
	address := serve(t, open(t, opts...).Server())
	files := open(t, tlsfiles.Authorities(ca))
	for host, ok := range map[string]bool{"one.example.org": true, "two.example.org": true, "three.example.org": false} {
		config := files.Client().Clone()
		config.ServerName = host
		if _, err := name(address, config); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "three.example.org") {
			t.Errorf("%s: %v", host, err)
		}
	}
	// An IP address without a certificate.
	if _, err := name(address, files.Client()); err == nil || !strings.Contains(err.Error(), "127.0.0.1") {
		t.Error(err)
	}
}

// Invalid files leave the old certificates in use; log and Stats report it once.
func TestBadFilesKeepTheOldOnes(t *testing.T) {
	dir := t.TempDir()
	a := transporttest.NewAuthority(t)
	ca := a.Write(t, dir, "ca")
	chain, key := transporttest.Write(t, dir, "server", a.Issue(t, time.Hour, "127.0.0.1"))
	var logged testlog.Buffer
	files := open(t, tlsfiles.Certificate(chain, key), tlsfiles.Authorities(ca), tlsfiles.Logger(logged.Logger()), tlsfiles.ExpiresSoon(0))
	address := serve(t, files.Server())
	clientConfig := a.Client(t)
	good := func(file string) func() {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return func() { os.WriteFile(file, b, 0o600) }
	}
	failures := int64(0)
	for what, spoil := range map[string]func() (restore func(), want string){
		"garbage": func() (func(), string) {
			r := good(chain)
			os.WriteFile(chain, []byte("x"), 0o600)
			return r, "failed to find any PEM data"
		},
		"empty": func() (func(), string) {
			r := good(key)
			os.WriteFile(key, nil, 0o600)
			return r, "failed to find any PEM data"
		},
		"missing": func() (func(), string) { r := good(chain); os.Remove(chain); return r, "no such file" },
		"authority": func() (func(), string) {
			r := good(ca)
			os.WriteFile(ca, []byte("x"), 0o600)
			return r, "holds no certificate"
		},
		"other key": func() (func(), string) {
			r := good(chain)
			other, _ := transporttest.Write(t, t.TempDir(), "x", a.Issue(t, time.Hour, "127.0.0.1"))
			b, _ := os.ReadFile(other)
			os.WriteFile(chain, b, 0o600)
			return r, "private key does not match public key"
		},
		"ended": func() (func(), string) {
			r1, r2 := good(chain), good(key)
			transporttest.Write(t, dir, "server", a.Issue(t, -time.Minute, "127.0.0.1"))
			return func() { r1(); r2() }, "expired on"
		},
	} {
		t.Run(what, func(t *testing.T) {
			logged.Take()
			restore, want := spoil()
			for range 3 {
				if err := files.Reload(); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v: want %q", err, want)
				}
			}
			failures++
			if s := files.Stats(); s.Err == nil || s.Failures != failures || s.Reloads != 0 {
				t.Errorf("%+v, want %d failures", s, failures)
			}
			if n := strings.Count(logged.String(), "cannot be used"); n != 1 || strings.Contains(logged.String(), "PRIVATE") {
				t.Errorf("%d lines are logged:\n%s", n, &logged)
			}
			if _, err := name(address, clientConfig); err != nil {
				t.Errorf("the old certificate does not work: %v", err)
			}
			restore()
			if err := files.Reload(); err != nil || files.Stats().Err != nil {
				t.Errorf("restored: %v, %v", err, files.Stats().Err)
			}
		})
	}
}

// The files are polled automatically, even through a symbolic link, and certificates that expire
// soon are logged once a day.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a := transporttest.NewAuthority(t)
		for _, v := range []string{"v1", "v2"} {
			os.Mkdir(filepath.Join(dir, v), 0o700)
			transporttest.Write(t, filepath.Join(dir, v), "tls", a.Issue(t, 72*time.Hour, v))
		}
		link := filepath.Join(dir, "current")
		if err := os.Symlink("v1", link); err != nil {
			t.Fatal(err)
		}
		var logged testlog.Buffer
		f, err := tlsfiles.Open(tlsfiles.Certificate(filepath.Join(link, "tls.pem"), filepath.Join(link, "tls.key")),
			tlsfiles.ExpiresSoon(48*time.Hour), tlsfiles.Logger(logged.Logger()))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		os.Symlink("v2", link+".new")
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if s := f.Stats(); s.Reloads != 1 || !strings.Contains(s.Certificates[0].Subject, "v2") {
			t.Errorf("%+v", s)
		}
		if strings.Contains(logged.String(), "expires soon") {
			t.Error("warned three days before the end")
		}
		time.Sleep(47 * time.Hour)
		synctest.Wait()
		if n := strings.Count(logged.String(), "expires soon"); n != 1 {
			t.Errorf("%d warnings on the first day:\n%s", n, &logged)
		}
		time.Sleep(20 * time.Hour)
		synctest.Wait()
		if n := strings.Count(logged.String(), "expires soon"); n != 2 {
			t.Errorf("%d warnings in two days", n)
		}
	})
}

func TestMistakes(t *testing.T) {
	for want, opts := range map[string][]tlsfiles.Option{
		"no files":          nil,
		"want a time above": {tlsfiles.Authorities("x"), tlsfiles.Poll(0)},
		"want at least 0":   {tlsfiles.Authorities("x"), tlsfiles.ExpiresSoon(-1)},
		"an option is nil":  {nil},
		"logger is nil":     {tlsfiles.Authorities("x"), tlsfiles.Logger(nil)},
		"no such file":      {tlsfiles.Authorities(filepath.Join(t.TempDir(), "x"))},
	} {
		if _, err := tlsfiles.Open(opts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	// A server without a certificate rejects its clients, and names the cause in its own error.
	dir := t.TempDir()
	a := transporttest.NewAuthority(t)
	f := open(t, tlsfiles.Authorities(a.Write(t, dir, "ca")))
	if _, err := f.Server().GetConfigForClient(nil); err == nil || !strings.Contains(err.Error(), "needs a certificate") {
		t.Error(err)
	}
	f.Close()
	f.Close()
}
