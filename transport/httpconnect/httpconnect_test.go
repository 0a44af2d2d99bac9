package httpconnect_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/transport/httpconnect"
	"github.com/anser-rpc/anser/transport/transporttest"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// site is an HTTP server that includes a handler of Anser.
type site struct {
	*httpconnect.Handler
	server *http.Server
	addr   net.Addr
	served chan struct{}
}

func (s *site) Close() error {
	s.Handler.Close()
	s.server.Close() // it does not track the connections that were taken over
	<-s.served
	return nil
}

func (s *site) Addr() net.Addr { return s.addr }

func listen(address, scheme string, config *tls.Config) (*site, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s := &site{addr: l.Addr(), served: make(chan struct{})}
	s.Handler = httpconnect.NewHandler(scheme + "://" + l.Addr().String())
	mux := http.NewServeMux()
	mux.Handle(httpconnect.Path, s.Handler)
	mux.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello") })
	s.server = &http.Server{Handler: mux, TLSConfig: config.Clone(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() {
		defer close(s.served)
		if config != nil {
			s.server.ServeTLS(l, "", "")
		} else {
			s.server.Serve(l)
		}
	}()
	return s, nil
}

func TestHTTP(t *testing.T) {
	transporttest.Run(t, transporttest.Transport{
		Client: []anser.DialOption{httpconnect.HTTP()},
		Listen: func(address string) (net.Listener, string, error) {
			s, err := listen(address, "http", nil)
			if err != nil {
				return nil, "", err
			}
			return s, "http://" + s.addr.String(), nil
		},
	})
}

func TestHTTPS(t *testing.T) {
	a := transporttest.NewAuthority(t)
	config := a.Server(t, true)
	transporttest.Run(t, transporttest.Transport{
		TLS: true, ClientCertificate: true,
		Client: []anser.DialOption{httpconnect.HTTPS(), anser.TLS(a.Client(t))},
		Listen: func(address string) (net.Listener, string, error) {
			s, err := listen(address, "https", config)
			if err != nil {
				return nil, "", err
			}
			return s, "https://" + s.addr.String() + httpconnect.Path, nil
		},
	})
}

// The other pages of the site still work, and the path of the handler accepts only CONNECT.
func TestBesideHTTP(t *testing.T) {
	s, err := listen("", "http", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	get := func(path string) (int, string) {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Get("http://" + s.addr.String() + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	if code, body := get("/hello"); code != http.StatusOK || body != "hello" {
		t.Error(code, body)
	}
	if code, body := get(httpconnect.Path); code != http.StatusMethodNotAllowed || !strings.Contains(body, "CONNECT") {
		t.Error(code, body)
	}
}

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// fails makes a call that must not be sent, and returns its error.
func fails(t *testing.T, target string, opts ...anser.DialOption) string {
	t.Helper()
	c, err := anser.Dial(target, append(opts, silent, anser.Timeout(time.Minute), anser.HandshakeTimeout(time.Minute))...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Call(context.Background(), "Test.Echo", new([]byte), new([]byte), anser.WithFailMode(anser.Failfast))
	if e, ok := err.(*anser.Error); !ok || e.Outcome != anser.NotSent {
		t.Errorf("%v: want an error that says NotSent", err)
	}
	return err.Error()
}

func TestOtherServers(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if e := fails(t, strings.Replace(s.URL, "http", "http", 1), httpconnect.HTTP()); !strings.Contains(e, "404 Not Found: is an httpconnect.Handler at this path?") {
		t.Error(e)
	}
	site, err := listen("", "http", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	site.Handler.Close()
	if e := fails(t, "http://"+site.addr.String(), httpconnect.HTTP()); !strings.Contains(e, "503") {
		t.Error(e)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
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
			io.WriteString(nc, "220 mail\r\n")
			nc.Close()
		}
	})
	defer wg.Wait()
	defer l.Close()
	if e := fails(t, "http://"+l.Addr().String(), httpconnect.HTTP()); !strings.Contains(e, "CONNECT") {
		t.Error(e)
	}
}

// proxy is an HTTP proxy that requires a password.
func proxy(t *testing.T, config *tls.Config) (address string, through func() int) {
	t.Helper()
	var mu sync.Mutex
	var n int
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Proxy-Authorization") != "Basic dXNlcjpzZWNyZXQ=" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		out, err := net.Dial("tcp", r.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer out.Close()
		in, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer in.Close()
		mu.Lock()
		n++
		mu.Unlock()
		fmt.Fprint(in, "HTTP/1.1 200 Connection established\r\n\r\n")
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.Copy(out, in)
			out.(*net.TCPConn).CloseWrite()
		}()
		io.Copy(in, out)
		in.Close()
		<-done
	}))
	s.TLS = config
	if config != nil {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func TestProxy(t *testing.T) {
	a := transporttest.NewAuthority(t)
	server := anser.NewServer(silent, anser.TLS(a.Server(t, false)))
	anser.Handle(server, "Test.Echo", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(l)
	t.Cleanup(func() { server.Close() })
	for scheme, config := range map[string]*tls.Config{"http": nil, "https": a.Server(t, false)} {
		t.Run(scheme, func(t *testing.T) {
			address, through := proxy(t, config)
			dial, err := httpconnect.Proxy(scheme+"://user:secret@"+address, &tls.Config{RootCAs: a.Pool})
			if err != nil {
				t.Fatal(err)
			}
			c, err := anser.Dial("tls://"+l.Addr().String(), anser.Dialer(dial), anser.TLS(a.Client(t)), silent)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if err := c.Call(context.Background(), "Test.Echo", new([]byte("x")), new([]byte)); err != nil {
				t.Error(err)
			}
			if through() == 0 {
				t.Error("the connection did not go through the proxy")
			}
			dial, err = httpconnect.Proxy(scheme+"://user:wrong@"+address, &tls.Config{RootCAs: a.Pool})
			if err != nil {
				t.Fatal(err)
			}
			if e := fails(t, "tls://"+l.Addr().String(), anser.Dialer(dial), anser.TLS(a.Client(t))); !strings.Contains(e, "407") || strings.Contains(e, "wrong") {
				t.Error(e)
			}
		})
	}
	for _, bad := range []string{"socks5://h:1", "http://h", "http://user:pass word@h:1", ""} {
		if _, err := httpconnect.Proxy(bad, nil); err == nil || strings.Contains(err.Error(), "pass word") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A handler counts as a listener reachable from other machines, whatever its address is.
func TestInPublic(t *testing.T) {
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	for address, want := range map[string]string{"http://192.0.2.1:80": "no TLS: ", "https://192.0.2.1:443": "", "http://127.0.0.1:80": ""} {
		s, h := anser.NewServer(silent), httpconnect.NewHandler(address)
		if want == "" {
			h.Close() // Serve gets as far as Accept
		}
		err := s.Serve(h)
		s.Close()
		if strings.Contains(err.Error(), "anser.InsecurePublic") != (want != "") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

// elsewhere is an HTTP listener whose connections have a public local address.
type elsewhere struct{ net.Listener }

func (l elsewhere) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return connElsewhere{nc}, nil
}

type connElsewhere struct{ net.Conn }

func (connElsewhere) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80} }

// A handler with a loopback address refuses connections to another address.
func TestConnectionsFromElsewhere(t *testing.T) {
	h := httpconnect.NewHandler("http://127.0.0.1:80")
	web := httptest.NewUnstartedServer(h)
	web.Listener = elsewhere{web.Listener}
	web.Start()
	defer web.Close()
	s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
	var served sync.WaitGroup
	served.Go(func() { s.Serve(h) })
	defer served.Wait()
	defer s.Close()
	c, err := anser.Dial("http://"+strings.TrimPrefix(web.URL, "http://")+httpconnect.Path, httpconnect.HTTP(), anser.Timeout(time.Minute), anser.WithFailMode(anser.Failfast))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = anser.Call[[]byte](context.Background(), c, "Echo.Say", new([]byte))
	if err == nil || !strings.Contains(err.Error(), "comes from another machine and has no TLS and no authentication") {
		t.Error(err)
	}
}
