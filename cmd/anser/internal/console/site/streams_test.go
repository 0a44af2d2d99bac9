package site_test

import (
	"bufio"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/site"
	"github.com/anser-rpc/anser/registry"
)

// follow opens a stream of events, and returns what comes after its beginning when it has ended.
func (b *browser) follow(path string) (rest <-chan string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), "GET", b.at+path, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	answer, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	text := bufio.NewReader(answer.Body)
	if _, err := text.ReadString('\n'); err != nil || answer.StatusCode != 200 {
		b.t.Fatalf("%s: %d, %v", path, answer.StatusCode, err)
	}
	ended := make(chan string, 1)
	go func() {
		defer answer.Body.Close()
		data, _ := io.ReadAll(text)
		ended <- string(data)
	}()
	return ended
}

// Events end with the session: at the logout at once, and soon after a user has lost a role, is
// removed or has a new password.
func TestEventsEndWithTheSession(t *testing.T) {
	reg := registry.NewMemory()
	serve(t, reg, "one", "1.0")
	file := accesstest.Users(t)
	s := openWith(t, reg, site.Options{Access: site.Access{Users: file}, Audit: filepath.Join(t.TempDir(), "audit.jsonl")})
	open := func(user string) []<-chan string {
		b := newBrowser(t, s.URL())
		b.login(user)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if status, _, _ := b.send("GET", "/api/services/arith", ""); status == 200 {
				break
			} else if time.Now().After(deadline) {
				t.Fatal("the service does not appear")
			}
		}
		streams := []<-chan string{b.follow("/api/events"), b.follow("/api/events?instances=1&service=arith"), b.follow("/api/calls/live?service=arith")}
		if user == "administer" {
			b.send("POST", "/api/logout", "")
		}
		return streams
	}
	loggedOut, lowered, removed := open("administer"), open("operate"), open("look")
	ended := func(what string, streams []<-chan string) {
		t.Helper()
		deadline := time.After(time.Minute)
		for i, c := range streams {
			select {
			case text := <-c:
				if strings.Contains(text, "event: again") {
					t.Errorf("stream %d is asked to come back after %s", i, what)
				}
			case <-deadline:
				t.Errorf("stream %d is open a minute after %s", i, what)
			}
		}
	}
	ended("the logout", loggedOut)
	if err := access.SetUser(file, "operate", access.Look, accesstest.Password); err != nil {
		t.Fatal(err)
	}
	if err := access.RemoveUser(file, "look"); err != nil {
		t.Fatal(err)
	}
	ended("the loss of a role", lowered) // 10 s on a machine that does nothing else
	ended("the removal", removed)
}

// The console names an address that browsers can open if it listens on all of them.
func TestURLOfAllAddresses(t *testing.T) {
	for listen, want := range map[string]string{"127.0.0.1:0": "http://127.0.0.1:", "0.0.0.0:0": "http://localhost:", "[::]:0": "http://localhost:", ":0": "http://localhost:"} {
		s := open(t, site.Options{Listen: listen, Access: site.Access{Proxy: proxyOnThisMachine()}})
		if !strings.HasPrefix(s.URL(), want) || s.Everywhere() != strings.Contains(want, "localhost") {
			t.Errorf("%s: at %s, everywhere: %v", listen, s.URL(), s.Everywhere())
		}
		b := newBrowser(t, s.URL())
		if status, text, _ := b.send("GET", "/api/system", "", "X-User", "ada"); status != 200 {
			t.Errorf("%s: %d %s", s.URL(), status, text)
		}
	}
}
