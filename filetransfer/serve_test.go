package filetransfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

// put sends a few bytes.
func put(t *testing.T, c *anser.Client, path string, opts ...filetransfer.Option) error {
	t.Helper()
	_, err := filetransfer.PutFrom(within(t), c, strings.NewReader("bytes"), 5, path, opts...)
	return err
}

// get fetches a file and discards it.
func get(t *testing.T, c *anser.Client, path string, opts ...filetransfer.Option) error {
	t.Helper()
	_, err := filetransfer.GetTo(within(t), c, path, new(bytes.Buffer), opts...)
	return err
}

func stat(t *testing.T, c *anser.Client, path string, opts ...filetransfer.Option) error {
	t.Helper()
	_, err := filetransfer.Stat(within(t), c, path, opts...)
	return err
}

// list returns the paths in order.
func list(t *testing.T, c *anser.Client, dir string, opts ...filetransfer.Option) ([]string, error) {
	t.Helper()
	var names []string
	for info, err := range filetransfer.List(within(t), c, dir, opts...) {
		if err != nil {
			return nil, err
		}
		names = append(names, info.Path)
	}
	slices.Sort(names)
	return names, nil
}

// everything tries all operations on a path.
func everything(t *testing.T, c *anser.Client, path string) map[filetransfer.Op]error {
	t.Helper()
	_, listed := list(t, c, path)
	return map[filetransfer.Op]error{
		filetransfer.OpPut: put(t, c, path), filetransfer.OpGet: get(t, c, path), filetransfer.OpStat: stat(t, c, path),
		filetransfer.OpList: listed, filetransfer.OpRemove: filetransfer.Remove(within(t), c, path),
	}
}

func TestPathsThatCannotBeUsed(t *testing.T) {
	s := newSite(t, filetransfer.AllowRemove())
	outside := filepath.Join(filepath.Dir(s.dir), "outside")
	write(t, outside, []byte("secret"))
	long := strings.Repeat("x/", 3000) + "x"
	for _, p := range []string{
		"../outside", "a/../../outside", "..", "a/..", "/etc/passwd", outside, "//a", "a//b", "a/", "./a", "a/.",
		`..\outside`, `a\b`, `\\host\share`, "C:/a", "C:a", "a:stream", "a\x00b", "a\nb", "\x7f", "\xff\xfe",
		"NUL", "nul.txt", "con", "a/COM1.log", "lpt9", "COM¹", "aux .txt", "CONIN$", "a.", "a ", "a/b./c",
		".anser-0123.part", "a/.anser-x", long,
	} {
		for op, err := range everything(t, s.client, p) {
			if (op == filetransfer.OpList || op == filetransfer.OpStat) && p == "a/" {
				continue // a folder may end with a slash
			}
			if !errors.Is(err, anser.InvalidArgument) {
				t.Errorf("%v %.50q: %v", op, p, err)
			}
		}
	}
	if err := put(t, s.client, ""); !errors.Is(err, anser.InvalidArgument) {
		t.Errorf("an empty path: %v", err)
	}
	want(t, outside, []byte("secret"))
	if left, _ := os.ReadDir(s.dir); len(left) > 0 {
		t.Errorf("there is something in the folder: %v", left)
	}
	if err := put(t, s.client, strings.Repeat("x", 300)); !errors.Is(err, anser.InvalidArgument) {
		t.Errorf("a name that is too long for the file system: %v", err)
	}
	for _, p := range []string{"a", "ä", "...a", "a..b", ".hidden", "a b", "COM10", "console", "nulls", "日本"} {
		if err := put(t, s.client, p); err != nil {
			t.Errorf("put %q: %v", p, err)
		}
	}
}

func FuzzPaths(f *testing.F) {
	for _, p := range []string{"a", "a/b", "../a", "/a", "a\x00", "NUL", `a\b`, "a/./b", ".anser-a", "COM¹.x"} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p string) {
		if filetransfer.CheckPath(p) != nil {
			return
		}
		if !filepath.IsLocal(p) || filepath.ToSlash(filepath.Clean(p)) != p || strings.ContainsAny(p, "\\:\x00") {
			t.Errorf("%q was accepted", p)
		}
	})
}

func TestLinksThatLeadOut(t *testing.T) {
	s := newSite(t, filetransfer.AllowRemove())
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), []byte("secret"))
	s.write("inside", []byte("inside"))
	for link, to := range map[string]string{
		"file": filepath.Join(outside, "secret"), "folder": outside, "relative": "../../../../../../../../etc", "good": "inside",
	} {
		symlink(t, to, filepath.Join(s.dir, link))
	}
	for op, err := range everything(t, s.client, "folder/secret") {
		wantCode(t, err, anser.PermissionDenied, "out of the served folder")
		if err == nil {
			t.Errorf("%v got through", op)
		}
	}
	wantCode(t, get(t, s.client, "file"), anser.PermissionDenied)
	wantCode(t, stat(t, s.client, "file"), anser.PermissionDenied)
	for _, dir := range []string{"folder", "relative"} {
		_, err := list(t, s.client, dir)
		wantCode(t, err, anser.PermissionDenied)
		wantCode(t, put(t, s.client, dir+"/new"), anser.PermissionDenied)
		wantCode(t, put(t, s.client, dir+"/new/new", filetransfer.Parents()), anser.PermissionDenied)
	}
	if err := get(t, s.client, "good"); err != nil {
		t.Errorf("a link that stays inside: %v", err)
	}
	// Sending to a link replaces the link and not its target; removing it removes the link.
	if err := put(t, s.client, "file"); err != nil {
		t.Error(err)
	}
	s.want("file", []byte("bytes"))
	if err := filetransfer.Remove(within(t), s.client, "folder"); err != nil {
		t.Error(err)
	}
	want(t, filepath.Join(outside, "secret"), []byte("secret"))
	if left, _ := os.ReadDir(outside); len(left) != 1 {
		t.Errorf("outside there are %v", left)
	}
}

func TestReadOnlyAndWriteOnly(t *testing.T) {
	s := newSite(t, filetransfer.ReadOnly())
	s.write("a", []byte("x"))
	wantCode(t, put(t, s.client, "b"), anser.Unimplemented)
	wantCode(t, filetransfer.Remove(within(t), s.client, "a"), anser.Unimplemented)
	if err := errors.Join(get(t, s.client, "a"), stat(t, s.client, "a")); err != nil {
		t.Error(err)
	}
	s = newSite(t, filetransfer.WriteOnly())
	s.write("a", []byte("x"))
	wantCode(t, get(t, s.client, "a"), anser.Unimplemented)
	wantCode(t, stat(t, s.client, "a"), anser.Unimplemented)
	_, err := list(t, s.client, "")
	wantCode(t, err, anser.Unimplemented)
	if err := put(t, s.client, "b"); err != nil {
		t.Error(err)
	}
}

func TestRemove(t *testing.T) {
	s := newSite(t)
	s.write("a", []byte("x"))
	wantCode(t, filetransfer.Remove(within(t), s.client, "a"), anser.Unimplemented)
	s.want("a", []byte("x"))
	s = newSite(t, filetransfer.AllowRemove())
	if err := put(t, s.client, "d/a", filetransfer.Parents()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, filetransfer.Remove(within(t), s.client, "d"), anser.AlreadyExists, "not empty")
	wantCode(t, filetransfer.Remove(within(t), s.client, "nothing"), anser.NotFound)
	wantCode(t, filetransfer.Remove(within(t), s.client, "."), anser.InvalidArgument)
	for _, p := range []string{"d/a", "d"} {
		if err := filetransfer.Remove(within(t), s.client, p); err != nil {
			t.Error(err)
		}
	}
	missing(t, filepath.Join(s.dir, "d"))
}

func TestMaxSize(t *testing.T) {
	s := newSite(t, filetransfer.MaxSize(4))
	wantCode(t, put(t, s.client, "a"), anser.ResourceExhausted, "filetransfer.MaxSize")
	missing(t, filepath.Join(s.dir, "a"))
	if _, err := filetransfer.PutFrom(within(t), s.client, strings.NewReader("four"), 4, "a"); err != nil {
		t.Error(err)
	}
}

func TestAuthorize(t *testing.T) {
	type asked struct {
		op   filetransfer.Op
		path string
	}
	var mu sync.Mutex
	var all []asked
	s := newSite(t, filetransfer.AllowRemove(), filetransfer.Authorize(func(ctx context.Context, op filetransfer.Op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, asked{op, path})
		if _, ok := anser.PeerFrom(ctx); !ok {
			t.Error("the peer is not known")
		}
		switch {
		case path == "coded":
			return anser.Errorf(anser.Unauthenticated, "who are you")
		case path != "open" && path != ".":
			return errors.New("closed on Sundays")
		}
		return nil
	}))
	for op, err := range everything(t, s.client, "closed") {
		wantCode(t, err, anser.PermissionDenied, "closed on Sundays")
		if !slices.Contains(all, asked{op, "closed"}) {
			t.Errorf("%v was not asked about: %v", op, all)
		}
	}
	for _, err := range everything(t, s.client, "coded") {
		wantCode(t, err, anser.Unauthenticated, "who are you")
	}
	if err := put(t, s.client, "open"); err != nil {
		t.Error(err)
	}
	if names, err := list(t, s.client, ""); err != nil || !slices.Equal(names, []string{"open"}) {
		t.Errorf("%q, %v", names, err)
	}
}

func TestOnComplete(t *testing.T) {
	done := make(chan filetransfer.Result, 1)
	s := &site{t: t, dir: t.TempDir()}
	s.start(listen(t, "127.0.0.1:0"), filetransfer.OnComplete(func(_ context.Context, r filetransfer.Result) {
		s.want("a", []byte("bytes"))
		done <- r
	}))
	c := s.dial()
	if err := put(t, c, "a"); err != nil {
		t.Fatal(err)
	}
	if r := <-done; r.Path != "a" || r.Size != 5 || len(r.Sum) != 64 || r.Checksum != filetransfer.SHA256 {
		t.Errorf("%+v", r)
	}
}

func TestOnCompletePanics(t *testing.T) {
	s := newSite(t, filetransfer.OnComplete(func(context.Context, filetransfer.Result) { panic("secret") }))
	err := put(t, s.client, "a")
	wantCode(t, err, anser.Internal)
	if strings.Contains(fmt.Sprint(err), "secret") {
		t.Errorf("the client is told: %v", err)
	}
	if err := get(t, s.client, "a"); err != nil { // the server continues
		t.Error(err)
	}
}

func TestMaxTransfers(t *testing.T) {
	s := newSite(t, filetransfer.MaxTransfers(1))
	data := content(1 << 20)
	waits, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := filetransfer.PutFrom(within(t), s.client, newSource(data, 1<<19, func() {
			close(waits)
			<-goOn
		}), int64(len(data)), "a")
		first <- err
	}()
	<-waits
	_, err := filetransfer.PutFrom(within(t), s.client, bytes.NewReader(data), 1<<20, "b", filetransfer.Patience(time.Nanosecond))
	wantCode(t, err, anser.ResourceExhausted, "filetransfer.MaxTransfers")
	second := make(chan error, 1)
	go func() { second <- put(t, s.client, "b") }()
	close(goOn)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
	s.want("a", data)
	s.want("b", []byte("bytes"))
}

func TestListAndStat(t *testing.T) {
	s := newSite(t)
	var names []string
	for i := range 1000 {
		name := fmt.Sprintf("d%03d", i)
		names = append(names, name)
		s.write(name, make([]byte, i))
	}
	if err := os.Mkdir(filepath.Join(s.dir, "e"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("e/f", []byte("x"))
	s.write(".anser-0.part", []byte("x"))
	for _, root := range []string{"", "."} {
		if got, err := list(t, s.client, root); err != nil || !slices.Equal(got, append(names, "e")) {
			t.Errorf("%d names, %v", len(got), err)
		}
	}
	for _, dir := range []string{"e", "e/"} {
		if got, err := list(t, s.client, dir); err != nil || !slices.Equal(got, []string{"e/f"}) {
			t.Errorf("%q, %v", got, err)
		}
	}
	_, err := list(t, s.client, "d000")
	wantCode(t, err, anser.FailedPrecondition)
	_, err = list(t, s.client, "x")
	wantCode(t, err, anser.NotFound)
	for range filetransfer.List(within(t), s.client, "") {
		break // leaves nothing behind
	}
	info, err := filetransfer.Stat(within(t), s.client, "d007")
	if err != nil || info.Size != 7 || info.Dir || info.Other || info.Path != "d007" || time.Since(info.ModTime) > time.Hour {
		t.Errorf("%+v, %v", info, err)
	}
	if info, err := filetransfer.Stat(within(t), s.client, ""); err != nil || !info.Dir {
		t.Errorf("%+v, %v", info, err)
	}
}

func TestUnfinishedFilesAreCleaned(t *testing.T) {
	s := newSite(t, filetransfer.KeepPartial(time.Hour))
	if err := os.Mkdir(filepath.Join(s.dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	const stale, fresh, deep = ".anser-1.part", ".anser-2.part", "d/.anser-3.part"
	for name, age := range map[string]time.Duration{stale: 2 * time.Hour, fresh: time.Minute, deep: 3 * time.Hour} {
		s.write(name, []byte("part"))
		at := time.Now().Add(-age)
		if err := os.Chtimes(filepath.Join(s.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	partials := func() (names []string) {
		list, err := s.service.Partials(t.Context())
		if err != nil {
			t.Error(err)
		}
		for _, p := range list {
			if p.Size != 4 || p.Active {
				t.Errorf("%+v", p)
			}
			names = append(names, p.Path)
		}
		slices.Sort(names)
		return names
	}
	if got := partials(); !slices.Equal(got, []string{stale, fresh, deep}) {
		t.Errorf("unfinished are %q", got)
	}
	if err := put(t, s.client, "a"); err != nil { // this cleans its folder
		t.Fatal(err)
	}
	if got := partials(); !slices.Equal(got, []string{fresh, deep}) {
		t.Errorf("unfinished are %q", got)
	}
	if n, err := s.service.Clean(t.Context(), time.Hour); n != 1 || err != nil {
		t.Errorf("%d were removed, %v", n, err)
	}
	if got := partials(); !slices.Equal(got, []string{fresh}) {
		t.Errorf("unfinished are %q", got)
	}
}

func TestTwoFoldersOnOneServer(t *testing.T) {
	var served atomic.Int64
	s := newSite(t, filetransfer.Named("Public"), filetransfer.OnComplete(func(context.Context, filetransfer.Result) { served.Add(1) }))
	if err := put(t, s.client, "a", filetransfer.Named("Public")); err != nil {
		t.Error(err)
	}
	wantCode(t, put(t, s.client, "a"), anser.Unimplemented)
	if served.Load() != 1 {
		t.Errorf("%d were completed", served.Load())
	}
}

func TestOptionsThatCannotWork(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, opts := range map[string][]filetransfer.ServeOption{
		"sizes":     {filetransfer.MaxSize(0)},
		"transfers": {filetransfer.MaxTransfers(0)},
		"age":       {filetransfer.KeepPartial(-1)},
		"name":      {filetransfer.Named("")},
		"store":     {filetransfer.Store("")},
		"both":      {filetransfer.ReadOnly(), filetransfer.WriteOnly()},
		"remove":    {filetransfer.ReadOnly(), filetransfer.AllowRemove()},
	} {
		if _, err := filetransfer.Serve(anser.NewServer(silent), root, opts...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := filetransfer.Serve(anser.NewServer(silent), nil); err == nil {
		t.Error("no root: accepted")
	}
	s := anser.NewServer(silent)
	if _, err := filetransfer.Serve(s, root); err != nil {
		t.Error(err)
	}
	if _, err := filetransfer.Serve(s, root); err == nil {
		t.Error("the methods were registered twice")
	}
	site := newSite(t)
	for name, opt := range map[string]filetransfer.Option{"patience": filetransfer.Patience(-1), "checksum": filetransfer.Checksum(9), "name": filetransfer.Named("")} {
		if put(t, site.client, "a", opt) == nil || get(t, site.client, "a", opt) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
