package admin_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser/admin"
	"github.com/anser-rpc/anser/telemetry"
)

// Requests over the limit are refused at once, and served again when others have ended.
func TestManyViewers(t *testing.T) {
	const most = 64
	began, release := make(chan struct{}, most), make(chan struct{})
	page, err := admin.New(telemetry.New(), admin.Handle("wait", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		began <- struct{}{}
		<-release
	})))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w
	}
	var wg sync.WaitGroup
	for range most {
		wg.Go(func() { ask("/wait") })
	}
	for range most {
		<-began
	}
	if w := ask("/style.css"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "try again later") {
		t.Errorf("one too many: %d %s", w.Code, w.Body)
	}
	close(release)
	wg.Wait()
	if w := ask("/style.css"); w.Code != http.StatusOK {
		t.Errorf("after the others: %d %s", w.Code, w.Body)
	}
}

// deadlines records the deadlines of an answer.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// The time that a profile takes does not count for its download.
func TestProfileHasTimeToBeSent(t *testing.T) {
	page, err := admin.New(telemetry.New())
	if err != nil {
		t.Fatal(err)
	}
	const took = 20 * time.Millisecond
	r := httptest.NewRequest(http.MethodGet, "/debug/pprof/trace?seconds=0.02", nil)
	r.Host, r.RemoteAddr = "127.0.0.1", "127.0.0.1:1"
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	page.ServeHTTP(w, r)
	if n := len(w.set); w.Code != http.StatusOK || n != 2 || w.set[1].Sub(w.set[0]) < took {
		t.Errorf("%d, deadlines %v", w.Code, w.set)
	}
}

// The log says that credentials were wrong, once for many requests, and has none of them.
func TestGuessesAreLogged(t *testing.T) {
	var log bytes.Buffer
	page, err := admin.New(telemetry.New(), admin.Token("0123456789abcdef"), admin.Logger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range []string{"", "Bearer guess-one", "Bearer guess-two", "Basic Z3Vlc3M6Z3Vlc3M="} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		if page.ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
			t.Errorf("%q: %d", header, w.Code)
		}
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "wrong credentials") || strings.Contains(text, "guess") {
		t.Errorf("the log is\n%s", text)
	}
}

// Lists of files are pages with links in a browser, below which their own links work.
func TestListsInABrowser(t *testing.T) {
	s := newSite(t, admin.FlightRecorder(time.Hour, time.Minute))
	for path, want := range map[string][]string{
		"/debug/pprof/": {`href="goroutine?debug=1"`, `href="../../methods"`, `href="../../style.css"`},
		"/flight/":      {`href="now.trace"`, `href="../methods"`},
		"/":             {`href="./flight/"`, `href="./debug/pprof/"`, "Calls served"},
	} {
		_, body, _ := s.get(t, path, "Accept", "text/html")
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s has no %s", path, text)
			}
		}
	}
	if _, body, _ := newSite(t).get(t, "/", "Accept", "text/html"); strings.Contains(body, "flight/") {
		t.Error("a page without a recorder has a link to it")
	}
}
