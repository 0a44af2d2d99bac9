package change_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access/accesstest"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/filetransfer"
)

// zeros are the bytes of a large file.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// growth returns the largest growth of the heap while f runs.
func growth(f func()) (most int64) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	runtime.GC()
	before := heap()
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for tick := time.Tick(5 * time.Millisecond); ; {
			select {
			case <-done:
				return
			case <-tick:
				most = max(most, heap()-before)
			}
		}
	}()
	f()
	close(done)
	<-sampled
	return most
}

// A file of any size passes through in blocks, in both directions.
func TestLargeFile(t *testing.T) {
	const size, most = 256 << 20, 32 << 20 // bytes of the file, and of the growth of the console, the service and the viewer
	s, dir := files(t, access.Options{})
	v := s.viewer("")
	sum := sha256.New()
	if _, err := io.CopyN(sum, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	want := hex.EncodeToString(sum.Sum(nil))
	grown := growth(func() {
		r, err := http.NewRequestWithContext(t.Context(), "PUT", s.URL+contentOf("large"), io.LimitReader(zeros{}, size))
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = size
		var answer struct{ SHA256 string }
		if status, text := v.do(r); status != 200 || json.Unmarshal([]byte(text), &answer) != nil || answer.SHA256 != want {
			t.Errorf("the upload: %d %s", status, text)
		}
	})
	if info, err := os.Stat(filepath.Join(dir, "large")); err != nil || info.Size() != size {
		t.Fatalf("the file is %v, %v", info, err)
	}
	back := growth(func() {
		answer, err := v.Get(s.URL + contentOf("large"))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		sum.Reset()
		if n, err := io.Copy(sum, answer.Body); n != size || err != nil || hex.EncodeToString(sum.Sum(nil)) != want {
			t.Errorf("the download: %d bytes, %v", n, err)
		}
	})
	t.Logf("the heap has grown by %d KiB and %d KiB", grown>>10, back>>10)
	if grown > most || back > most {
		t.Errorf("the heap has grown by %d and %d bytes", grown, back)
	}
}

// An upload that does not end leaves what was there before, and nothing else.
func TestFailedUploads(t *testing.T) {
	file := accesstest.Users(t)
	s, dir := files(t, access.Options{Users: file}, filetransfer.MaxSize(1<<20))
	v := s.viewer("operate")
	writeFile(t, dir, "kept", "before")
	unchanged := func(what string) {
		t.Helper()
		eventually(t, what+" leaves nothing", func() bool { return strings.Join(namesIn(t, dir), " ") == "kept" })
		if data, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || string(data) != "before" {
			t.Errorf("%s: the file is %q, %v", what, data, err)
		}
	}
	if status, text := v.put("kept", strings.Repeat("x", 1<<20+1), "&replace=1"); status != 507 || !strings.Contains(text, "limit") {
		t.Errorf("a file that is too large for the service: %d %s", status, text)
	}
	unchanged("a file that is too large")
	if status, text := v.put("x/../kept", "x", "&replace=1"); status != 400 {
		t.Errorf("a path that is not allowed: %d %s", status, text)
	}
	if status, text := v.send("PUT", contentOf("kept")+"&replace=1", "{}"); status != 415 {
		t.Errorf("a body of another type: %d %s", status, text)
	}
	r, err := http.NewRequestWithContext(t.Context(), "PUT", s.URL+contentOf("kept"), io.LimitReader(zeros{}, 10))
	if err != nil {
		t.Fatal(err)
	}
	if status, text := v.do(r); status != 411 {
		t.Errorf("a body of unknown size: %d %s", status, text)
	}
	unchanged("what is refused")

	// The viewer leaves in the middle.
	v.half(t, "kept")
	audited(t, v, 1, "ended after 10 of 1000 bytes", "the viewer has left") // whichever is seen first
	unchanged("a viewer that leaves")

	// The session ends in the middle.
	reader, writer := io.Pipe()
	r, err = http.NewRequestWithContext(t.Context(), "PUT", s.URL+contentOf("kept")+"&replace=1", reader)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 1000
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("X-CSRF-Token", v.csrf)
	ended := make(chan error, 1)
	go func() {
		answer, err := v.Do(r)
		if err == nil {
			answer.Body.Close()
			if answer.StatusCode != 408 {
				err = fmt.Errorf("the status is %d", answer.StatusCode)
			}
		}
		ended <- err
	}()
	if _, err := io.WriteString(writer, strings.Repeat("x", 10)); err != nil {
		t.Fatal(err)
	}
	other := s.viewer("administer")
	audited(t, other, 2)
	v.expect(204, "POST", "/api/logout", "", nil)
	audited(t, other, 2, "the session has ended")
	writer.CloseWithError(io.ErrUnexpectedEOF)
	<-ended // by the answer, or because the body failed
	unchanged("a session that ends")
}

// half sends the beginning of an upload, and closes the connection.
func (v *viewer) half(t *testing.T, path string) {
	t.Helper()
	host := strings.TrimPrefix(v.site.URL, "http://")
	c, err := net.Dial("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	u, err := http.NewRequest("GET", v.site.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	cookie := v.Jar.Cookies(u.URL)[0]
	fmt.Fprintf(c, "PUT %s&replace=1 HTTP/1.1\r\nHost: %s\r\nCookie: %s\r\nX-CSRF-Token: %s\r\nContent-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\n%s",
		contentOf(path), host, cookie, v.csrf, strings.Repeat("x", 10))
	audited(t, v, 1) // it has begun
}

// audited waits until the audit log has n uploads that got their bytes, of which the last one has
// failed with one of the texts; without texts, until it has begun.
func audited(t *testing.T, v *viewer, n int, texts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("upload %d: %q", n, texts), func() bool {
		var log []audit.Entry
		v.expect(200, "GET", "/api/audit", "", &log)
		begun := 0
		for _, e := range log {
			if e.Outcome == audit.Begun && strings.Contains(e.Text, " 1000 bytes") {
				begun++
			}
		}
		switch {
		case begun != n:
			return false
		case len(texts) == 0:
			return log[0].Outcome == audit.Begun
		}
		failed := func(text string) bool { return strings.Contains(log[0].Text, text) }
		return log[0].Outcome == audit.Failed && slices.ContainsFunc(texts, failed)
	})
}

// A download that fails is not taken for a complete one.
func TestFailedDownload(t *testing.T) {
	s, dir := files(t, access.Options{})
	v := s.viewer("")
	at := filepath.Join(dir, "large")
	writeFile(t, dir, "large", "")
	if err := os.Truncate(at, 64<<20); err != nil {
		t.Fatal(err)
	}
	answer, err := v.Get(s.URL + contentOf("large"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.CopyN(io.Discard, answer.Body, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(at, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf("the download ends well after %d bytes", n)
	}
	eventually(t, "the audit log has it", func() bool {
		var log []audit.Entry
		v.expect(200, "GET", "/api/audit", "", &log)
		return log[0].Outcome == audit.Failed && strings.Contains(log[0].Text, "changed")
	})
}

// A file that grows after the console has told its size is not complete either, and the audit log
// says why.
func TestDownloadOfAGrowingFile(t *testing.T) {
	const size = 512 << 10
	var at string
	grow := filetransfer.Authorize(func(_ context.Context, op filetransfer.Op, _ string) error {
		if op == filetransfer.OpGet {
			return os.Truncate(at, 2*size)
		}
		return nil
	})
	s, dir := files(t, access.Options{}, grow)
	at = filepath.Join(dir, "log")
	writeFile(t, dir, "log", "")
	if err := os.Truncate(at, size); err != nil {
		t.Fatal(err)
	}
	v := s.viewer("")
	answer, err := v.Get(s.URL + contentOf("log"))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if n, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Errorf("the download ends well after %d bytes of %d", n, 2*size)
	}
	eventually(t, "the audit log has it", func() bool {
		var log []audit.Entry
		v.expect(200, "GET", "/api/audit", "", &log)
		return log[0].Outcome == audit.Failed && strings.Contains(log[0].Text, "changed")
	})
}

// Behind a proxy that logs users in, a transfer ends if the proxy does not name its user any more.
// The viewer learns why.
func TestUploadWithoutTheProxysWord(t *testing.T) {
	s, dir := files(t, access.Options{})
	upload := s.changes.Routes()["PUT /api/files/{service}/{name}/content"]
	word, end := context.WithCancelCause(t.Context())
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /api/files/{service}/{name}/content", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		defer context.AfterFunc(word, func() { cancel(context.Cause(word)) })()
		upload.ServeHTTP(w, r.WithContext(ctx))
	})
	front := httptest.NewServer(mux)
	defer front.Close()
	v := s.viewer("")
	reader, writer := io.Pipe()
	defer writer.Close()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", front.URL+contentOf("new"), reader)
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 1000
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if status, text := v.do(r); status != 408 || !strings.Contains(text, "the proxy has not named the user") || !strings.Contains(text, "anser file put") {
			t.Errorf("%d %s", status, text)
		}
	}()
	if _, err := io.WriteString(writer, strings.Repeat("x", 10)); err != nil {
		t.Fatal(err)
	}
	audited(t, v, 1)
	end(access.ErrNoWord)
	audited(t, v, 1, "the proxy has not named the user")
	if _, err := io.WriteString(writer, strings.Repeat("x", 990)); err != nil { // it is read, so that the viewer reads the answer
		t.Fatal(err)
	}
	writer.Close()
	<-ended
	eventually(t, "nothing is left", func() bool { return len(namesIn(t, dir)) == 0 })
}

// A user cannot take the transfers of all others.
func TestTransfersOfAUser(t *testing.T) {
	const most = 8 // of a user
	s, _ := files(t, access.Options{Users: accesstest.Users(t)})
	greedy, other := s.viewer("operate"), s.viewer("administer")
	var running sync.WaitGroup
	var bodies []*io.PipeWriter
	for i := range most {
		reader, writer := io.Pipe()
		bodies = append(bodies, writer)
		r, err := http.NewRequestWithContext(t.Context(), "PUT", s.URL+contentOf(fmt.Sprintf("file-%d", i)), reader)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = 1000
		running.Go(func() {
			if status, text := greedy.do(r); status != 200 {
				t.Errorf("a transfer: %d %s", status, text)
			}
		})
	}
	audited(t, other, most)
	if status, text := greedy.put("more", "x", ""); status != 429 || !strings.Contains(text, "8 transfers of files of operate") {
		t.Errorf("one more of the user: %d %s", status, text)
	}
	if status, text := other.put("other", "x", ""); status != 200 {
		t.Errorf("one of another user: %d %s", status, text)
	}
	for _, w := range bodies {
		if _, err := io.WriteString(w, strings.Repeat("x", 1000)); err != nil {
			t.Error(err)
		}
		w.Close()
	}
	running.Wait()
	if status, text := greedy.put("more", "x", ""); status != 200 {
		t.Errorf("after they have ended: %d %s", status, text)
	}
}

// A file whose download cannot be recorded is not sent, and the answer does not speak of a change.
func TestDownloadThatCannotBeRecorded(t *testing.T) {
	s, dir := files(t, access.Options{})
	v := s.viewer("")
	writeFile(t, dir, "report", "honk")
	log, err := os.OpenFile(s.log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if _, err := log.WriteString("of another program\n"); err != nil {
		t.Fatal(err)
	}
	status, text := v.send("GET", contentOf("report"), "")
	if status != 503 || !strings.Contains(text, "the file was not sent, as the download cannot be recorded") || strings.Contains(text, "changed") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := v.send("DELETE", contentOf("report"), ""); status != 503 || !strings.Contains(text, "nothing was changed, as the change cannot be recorded") {
		t.Errorf("a change: %d %s", status, text)
	}
}
