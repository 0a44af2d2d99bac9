package oidctest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/command"
)

// printed is what a command prints.
type printed struct {
	mu  sync.Mutex // guards the field below
	buf bytes.Buffer
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

// freeURL returns the URL of a console that does not run yet: the provider must know it before.
func freeURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/"
}

// startConsole runs "anser console" for a provider at a URL of freeURL, and returns what it prints.
func startConsole(t *testing.T, p *provider, at string, more ...string) *printed {
	t.Helper()
	folder := t.TempDir()
	secret, system := filepath.Join(folder, "secret"), filepath.Join(folder, "services.json")
	for file, text := range map[string]string{secret: clientSecret + "\n", system: "[]"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/")
	args := append([]string{
		"console", "--listen", host, "--url", at, "--registry", "file://" + system, "--audit", filepath.Join(folder, "audit.jsonl"),
		"--oidc-issuer", p.server.URL, "--oidc-client-id", clientID, "--oidc-secret-file", secret,
		"--oidc-role", "ops=operate", "--oidc-role", "admins=administer", "--oidc-role", "viewers=look",
	}, more...)
	ctx, stop := context.WithCancel(context.Background())
	out, ended := new(printed), make(chan int, 1)
	go func() { ended <- command.Run(ctx, args, strings.NewReader(""), out, out) }()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d\n%s", code, out)
		}
		if strings.Contains(out.String(), clientSecret) {
			t.Errorf("the secret is printed:\n%s", out)
		}
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if strings.Contains(out.String(), " at "+at+"\n") {
			return out
		}
		if time.Now().After(deadline) || len(ended) > 0 {
			t.Fatalf("the console does not start:\n%s", out)
		}
	}
}

// browser is a browser of a user.
type browser struct {
	*http.Client
	t    *testing.T
	at   string
	seen []*url.URL // where it was led
}

func newBrowser(t *testing.T, at string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, at: at}
	b.Client = &http.Client{Jar: jar, Transport: &http.Transport{}, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		b.seen = append(b.seen, r.URL)
		return nil
	}}
	t.Cleanup(b.CloseIdleConnections)
	return b
}

// send makes a request, and follows where it leads.
func (b *browser) send(method, path, body string, header ...string) (int, string) {
	b.t.Helper()
	to := path
	if !strings.HasPrefix(path, "http") {
		to = b.at + path
	}
	r, err := http.NewRequestWithContext(b.t.Context(), method, to, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := b.Do(r)
	if err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer.StatusCode, string(data)
}

// login logs a user in at the provider, and returns the status at the end.
func (b *browser) login(p *provider, user string, header ...string) (int, string) {
	b.t.Helper()
	p.set(func() { p.user = user })
	return b.send("GET", "api/oidc/login", "", header...)
}

// begin begins a login of a user, up to the request that leads back to the console, which it does
// not send.
func (b *browser) begin(p *provider, user string) (back string) {
	b.t.Helper()
	p.set(func() { p.user = user })
	follow := b.CheckRedirect
	defer func() { b.CheckRedirect = follow }()
	b.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), b.at) {
			back = r.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	if status, text := b.send("GET", "api/oidc/login", ""); back == "" {
		b.t.Fatalf("the provider does not lead back: %d %s", status, text)
	}
	return back
}

type session struct{ User, Role, Login, CSRF string }

func (b *browser) session() (s session) {
	b.t.Helper()
	status, text := b.send("GET", "api/session", "")
	if err := json.Unmarshal([]byte(text), &s); status != 200 || err != nil {
		b.t.Fatalf("%d %s", status, text)
	}
	return s
}

// expect fails unless a request has a status, and returns the answer.
func (b *browser) expect(status int, method, path, body string, header ...string) string {
	b.t.Helper()
	got, text := b.send(method, path, body, header...)
	if got != status {
		b.t.Errorf("%s %s: %d %s, want %d", method, path, got, text, status)
	}
	return text
}
