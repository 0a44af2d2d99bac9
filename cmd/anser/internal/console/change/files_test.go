package change_test

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/access"
	"github.com/anser-rpc/anser/cmd/anser/internal/console/audit"
	"github.com/anser-rpc/anser/filetransfer"
	"github.com/anser-rpc/anser/registry"
)

// serveFolder starts an instance of the service arith that serves a folder, and returns the folder.
func serveFolder(t *testing.T, reg registry.Registrar, id string, opts ...filetransfer.ServeOption) string {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(silent, anser.Announce(reg, registry.Instance{Service: "arith", ID: id}), anser.NoSignals())
	if _, err := filetransfer.Serve(s, root, append([]filetransfer.ServeOption{filetransfer.AllowRemove()}, opts...)...); err != nil {
		t.Fatal(err)
	}
	// A stream with a name like that of an operation is not one.
	err = anser.HandleStream(s, "Other.List", func(context.Context, *anser.Stream[Echo, Echo]) error {
		t.Error("Other.List was called")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	listen(t, s)
	return dir
}

// files starts a console for a service with one instance that serves a folder.
func files(t *testing.T, o access.Options, opts ...filetransfer.ServeOption) (s *site, dir string) {
	t.Helper()
	reg := registry.NewMemory()
	dir = serveFolder(t, reg, "one", opts...)
	awaitInstances(t, reg, 1)
	return start(t, reg, o), dir
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// namesIn returns the names in a folder, with hidden ones.
func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

// put uploads a body to a path with a query.
func (v *viewer) put(path, body, query string) (int, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), "PUT", v.site.URL+contentOf(path)+query, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	return v.do(r)
}

func (v *viewer) do(r *http.Request) (int, string) {
	v.t.Helper()
	return v.sendAs("application/octet-stream", r)
}

// contentOf returns the path of the content of a file.
func contentOf(path string) string {
	return "/api/files/arith/File/content?path=" + url.QueryEscape(path)
}

type listing struct {
	Instance string
	Entries  []struct {
		Name, Path string
		Size       int64
		Dir, Other bool
	}
	More bool
}

func (l listing) names() (names []string) {
	for _, e := range l.Entries {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

func TestFiles(t *testing.T) {
	var mu sync.Mutex // guards users
	users := make(map[string]bool)
	s, dir := files(t, access.Options{}, filetransfer.Authorize(func(ctx context.Context, op filetransfer.Op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		users[op.String()+" "+anser.MetadataFrom(ctx)["console-user"]] = true
		if path == "secret" {
			return fmt.Errorf("it is secret")
		}
		return nil
	}))
	v := s.viewer("")
	writeFile(t, dir, "2026/report.txt", "honk")
	writeFile(t, dir, "secret", "")

	if text := v.expect(200, "GET", "/api/files/arith", "", nil); !strings.Contains(text, `"folders":[{"name":"File","list":true,"get":true,"put":true,"remove":true}]`) {
		t.Errorf("the folders are %s", text)
	}
	var l listing
	v.expect(200, "GET", "/api/files/arith/File", "", &l)
	if l.Instance != "one" || strings.Join(l.names(), " ") != "2026 secret" {
		t.Errorf("the root has %+v", l)
	}
	l = listing{}
	v.expect(200, "GET", "/api/files/arith/File?path=2026&q=REP", "", &l)
	if len(l.Entries) != 1 || l.Entries[0].Path != "2026/report.txt" || l.Entries[0].Size != 4 || l.Entries[0].Dir {
		t.Errorf("2026 has %+v", l)
	}
	if text := v.expect(200, "GET", "/api/files/arith/File/stat?path=2026/none", "", nil); !strings.Contains(text, `"entry":null`) {
		t.Errorf("a file that is not there: %s", text)
	}
	for path, want := range map[string]int{
		"/api/files/arith/File?path=none":                 404,
		"/api/files/arith/File?path=../..":                400,
		"/api/files/arith/File?path=2026/report.txt":      400,
		"/api/files/arith/Other":                          404,
		"/api/files/arith/Demo":                           404,
		"/api/files/a%20b/File":                           400,
		"/api/files/arith/File/stat?path=2026/report.txt": 200,
		contentOf("2026"):                                 400,
		contentOf("none"):                                 404,
		contentOf("secret"):                               403,
		contentOf("/etc/passwd"):                          400,
		contentOf("2026/report.txt") + "&instance=two":    404,
		contentOf(strings.Repeat("a", 5000)):              400,
	} {
		if status, text := v.send("GET", path, ""); status != want || status != 200 && !strings.Contains(text, `"error":"`) {
			t.Errorf("%.200s: %d %s, want %d", path, status, text, want)
		}
	}

	answer, err := v.Get(s.URL + contentOf("2026/report.txt"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	h := answer.Header
	if err != nil || string(data) != "honk" || h.Get("Content-Length") != "4" || h.Get("Content-Type") != "application/octet-stream" ||
		h.Get("Content-Disposition") != "attachment; filename=report.txt" || h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox; default-src 'none'") {
		t.Errorf("%q, %v, %v", data, err, h)
	}

	if status, text := v.put("new/deep/a b.txt", "hello", "&reason=a+test"); status != 200 || !strings.Contains(text, `"size":5`) || !strings.Contains(text, "2cf24dba5fb0a30e") {
		t.Errorf("an upload: %d %s", status, text)
	}
	if status, text := v.put("new/deep/a b.txt", "other", ""); status != 409 || !strings.Contains(text, "replace=1") {
		t.Errorf("an upload of a file that exists: %d %s", status, text)
	}
	if status, text := v.put("new/deep/a b.txt", "", "&replace=1"); status != 200 {
		t.Errorf("an upload that replaces: %d %s", status, text)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "new/deep/a b.txt")); err != nil || len(got) > 0 {
		t.Errorf("the file has %q, %v", got, err)
	}
	if status, text := v.send("DELETE", contentOf("new"), ""); status != 409 {
		t.Errorf("a removal of a folder that is not empty: %d %s", status, text)
	}
	v.expect(200, "DELETE", contentOf("new/deep/a b.txt")+"&reason=old", "", nil)
	v.expect(200, "DELETE", contentOf("new/deep"), "", nil)
	if got := namesIn(t, filepath.Join(dir, "new")); len(got) > 0 {
		t.Errorf("the folder has %q", got)
	}

	var log []audit.Entry
	v.expect(200, "GET", "/api/audit", "", &log)
	var got []string
	for _, e := range slices.Backward(log) {
		got = append(got, fmt.Sprintf("%s %s %s %s", e.Action, e.Subject, e.Outcome, e.Reason))
	}
	want := []string{
		"download file 2026/report.txt begun ", "download file 2026/report.txt done ",
		"upload file new/deep/a b.txt begun a test", "upload file new/deep/a b.txt done a test",
		"upload file new/deep/a b.txt begun ", "upload file new/deep/a b.txt failed ",
		"upload file new/deep/a b.txt begun ", "upload file new/deep/a b.txt done ",
		"remove file new begun ", "remove file new failed ",
		"remove file new/deep/a b.txt begun old", "remove file new/deep/a b.txt done old",
		"remove file new/deep begun ", "remove file new/deep done ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, op := range []string{"List", "Stat", "Get", "Put", "Remove"} {
		if !users[op+" this machine"] {
			t.Errorf("%s does not know the user: %v", op, users)
		}
	}
}

// What a folder does not serve is not offered and not done.
func TestFoldersWithLess(t *testing.T) {
	reg := registry.NewMemory()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := anser.NewServer(silent, anser.Announce(reg, registry.Instance{Service: "arith", ID: "one"}), anser.NoSignals())
	for name, opt := range map[string]filetransfer.ServeOption{"Read": filetransfer.ReadOnly(), "Write": filetransfer.WriteOnly()} {
		if _, err := filetransfer.Serve(s, root, filetransfer.Named(name), opt); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { root.Close() })
	listen(t, s)
	awaitInstances(t, reg, 1)
	v := start(t, reg, access.Options{}).viewer("")
	if text := v.expect(200, "GET", "/api/files/arith", "", nil); !strings.Contains(text, `[{"name":"Read","list":true,"get":true},{"name":"Write","put":true}]`) {
		t.Errorf("the folders are %s", text)
	}
	v.expect(501, "GET", "/api/files/arith/Write", "", nil)
	v.expect(501, "GET", "/api/files/arith/Write/content?path=a", "", nil)
	v.expect(501, "DELETE", "/api/files/arith/Read/content?path=a", "", nil)
	r, err := http.NewRequestWithContext(t.Context(), "PUT", v.site.URL+"/api/files/arith/Read/content?path=a", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if status, text := v.do(r); status != 501 || !strings.Contains(text, "Read.Put") {
		t.Errorf("an upload to a folder that is read-only: %d %s", status, text)
	}
}

// Instances have folders of their own: requests go to the one that is named, or always to the same.
func TestFilesOfInstances(t *testing.T) {
	reg := registry.NewMemory()
	for _, id := range []string{"two", "one", "three"} {
		writeFile(t, serveFolder(t, reg, id), "of-"+id, "")
	}
	awaitInstances(t, reg, 3)
	s := start(t, reg, access.Options{})
	v := s.viewer("")
	for query, want := range map[string]string{"": "one", "?instance=two": "two", "?instance=three": "three"} {
		for range 3 {
			var l listing
			v.expect(200, "GET", "/api/files/arith/File"+query, "", &l)
			if l.Instance != want || strings.Join(l.names(), " ") != "of-"+want {
				t.Errorf("%s: %+v", query, l)
			}
		}
	}
	if text := v.expect(404, "GET", "/api/files/arith/File?instance=%1b%5b2J", "", nil); strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}

// Names of files are text, in answers and in headers.
func TestHostileFileNames(t *testing.T) {
	s, dir := files(t, access.Options{})
	v := s.viewer("")
	html, quoted, control := "<img src=x onerror=alert(1)>.html", "a\"; filename=evil.exe; x=\".txt", "line\r\nX-Evil: 1\x1b[2J"
	for _, name := range []string{html, quoted, control, `back\slash`, "鸿雁.txt"} {
		writeFile(t, dir, name, "x")
	}
	var l listing
	text := v.expect(200, "GET", "/api/files/arith/File", "", &l)
	if len(l.Entries) != 5 || strings.ContainsAny(text, "\x1b\r") {
		t.Errorf("the folder has %s", text)
	}
	for _, e := range l.Entries {
		if strings.ContainsAny(e.Name, "\x1b\r\n") || (e.Path == "") != strings.HasPrefix(e.Name, "line") {
			t.Errorf("%+v", e)
		}
	}
	for _, name := range []string{html, quoted, "鸿雁.txt"} {
		answer, err := v.Get(s.URL + contentOf(name))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		kind, params, err := mime.ParseMediaType(answer.Header.Get("Content-Disposition"))
		if answer.StatusCode != 200 || err != nil || kind != "attachment" || params["filename"] != name || len(params) != 1 || answer.Header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("%q: %d, %v, %v", name, answer.StatusCode, err, answer.Header)
		}
	}
	for _, name := range []string{control, `back\slash`} {
		answer, err := v.Get(s.URL + contentOf(name))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != 400 || answer.Header.Get("X-Evil") != "" {
			t.Errorf("%q: %d, %v", name, answer.StatusCode, answer.Header)
		}
	}
	if sum, err := audit.Verify(s.log, ""); err != nil || sum.Entries < 6 {
		t.Errorf("the audit log: %+v, %v", sum, err)
	}
}

// A folder with more than an answer takes is cut, and a filter finds what is in it.
func TestLargeFolder(t *testing.T) {
	s, dir := files(t, access.Options{})
	v := s.viewer("")
	for n := range 1100 {
		writeFile(t, dir, fmt.Sprintf("file-%04d", n), "")
	}
	var all, some listing
	v.expect(200, "GET", "/api/files/arith/File", "", &all)
	v.expect(200, "GET", "/api/files/arith/File?q=109", "", &some)
	if len(all.Entries) != 1000 || !all.More || len(some.Entries) != 11 || some.More {
		t.Errorf("%d entries, %t; %d entries, %t", len(all.Entries), all.More, len(some.Entries), some.More)
	}
}
