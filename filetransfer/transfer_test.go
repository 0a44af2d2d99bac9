package filetransfer_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

func TestThereAndBack(t *testing.T) {
	s := newSite(t)
	const piece, block = 16 << 10, 256 << 10
	for _, size := range []int{0, 1, piece - 1, piece, piece + 1, block - 1, block, block + 1, 3<<20 + 7} {
		for _, sum := range []filetransfer.Checksum{filetransfer.SHA256, filetransfer.CRC32C} {
			t.Run(fmt.Sprintf("%d/%v", size, sum), func(t *testing.T) {
				data := content(size)
				var told filetransfer.Progress
				put, err := filetransfer.PutFrom(within(t), s.client, bytes.NewReader(data), int64(size), "a", sum,
					filetransfer.OnProgress(func(p filetransfer.Progress) { told = p }))
				if err != nil {
					t.Fatal(err)
				}
				s.want("a", data)
				if told.Done != int64(size) || told.Total != int64(size) {
					t.Errorf("the last progress is %+v", told)
				}
				told = filetransfer.Progress{}
				local := filepath.Join(t.TempDir(), "b")
				got, err := filetransfer.Get(within(t), s.client, "a", local, sum, filetransfer.OnProgress(func(p filetransfer.Progress) { told = p }))
				if err != nil {
					t.Fatal(err)
				}
				want(t, local, data)
				if told.Done != int64(size) || told.Total != int64(size) {
					t.Errorf("the last progress is %+v", told)
				}
				if got != put || got.Size != int64(size) || got.Resumed != 0 || got.Breaks != 0 {
					t.Errorf("put %+v, got %+v", put, got)
				}
				if whole := sha256.Sum256(data); sum == filetransfer.SHA256 && got.Sum != hex.EncodeToString(whole[:]) {
					t.Errorf("the sum is %s: want %x", got.Sum, whole)
				}
				if left := append(s.parts(), parts(t, filepath.Dir(local))...); len(left) > 0 {
					t.Errorf("unfinished files are left: %q", left)
				}
			})
		}
	}
}

func TestPutReplacesUnlessTold(t *testing.T) {
	s := newSite(t)
	s.write("a", []byte("old"))
	local := filepath.Join(t.TempDir(), "local")
	write(t, local, []byte("new"))
	_, err := filetransfer.Put(within(t), s.client, local, "a", filetransfer.NoReplace())
	wantCode(t, err, anser.AlreadyExists, `"a"`)
	s.want("a", []byte("old"))
	if _, err := filetransfer.Put(within(t), s.client, local, "a"); err != nil {
		t.Fatal(err)
	}
	s.want("a", []byte("new"))
	if _, err := filetransfer.Put(within(t), s.client, local, "b", filetransfer.NoReplace()); err != nil {
		t.Fatal(err)
	}
	s.want("b", []byte("new"))
	// It may be created during the transfer.
	data := content(1 << 20)
	_, err = filetransfer.PutFrom(within(t), s.client, newSource(data, 1<<19, func() { s.write("c", []byte("other")) }), 1<<20, "c", filetransfer.NoReplace())
	wantCode(t, err, anser.AlreadyExists)
	s.want("c", []byte("other"))
	if left := s.parts(); len(left) > 0 {
		t.Errorf("unfinished files are left: %q", left)
	}
}

func TestGetReplacesUnlessTold(t *testing.T) {
	s := newSite(t)
	s.write("a", []byte("new"))
	local := filepath.Join(t.TempDir(), "local")
	write(t, local, []byte("old"))
	_, err := filetransfer.Get(within(t), s.client, "a", local, filetransfer.NoReplace())
	wantCode(t, err, anser.AlreadyExists)
	want(t, local, []byte("old"))
	if _, err := filetransfer.Get(within(t), s.client, "a", local); err != nil {
		t.Fatal(err)
	}
	want(t, local, []byte("new"))
	if _, err := filetransfer.Get(within(t), s.client, "a", local+"2", filetransfer.NoReplace()); err != nil {
		t.Fatal(err)
	}
	want(t, local+"2", []byte("new"))
}

func TestGetTo(t *testing.T) {
	s := newSite(t)
	data := content(1 << 20)
	s.write("a", data)
	var b bytes.Buffer
	if _, err := filetransfer.GetTo(within(t), s.client, "a", &b); err != nil || !bytes.Equal(b.Bytes(), data) {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
}

func TestParents(t *testing.T) {
	s := newSite(t)
	_, err := filetransfer.PutFrom(within(t), s.client, strings.NewReader("x"), 1, "a/b/c")
	wantCode(t, err, anser.NotFound, `"a/b"`, "filetransfer.Parents")
	if _, err := filetransfer.PutFrom(within(t), s.client, strings.NewReader("x"), 1, "a/b/c", filetransfer.Parents()); err != nil {
		t.Fatal(err)
	}
	s.want("a/b/c", []byte("x"))
	local := filepath.Join(t.TempDir(), "d", "e")
	if _, err := filetransfer.Get(within(t), s.client, "a/b/c", local); err == nil {
		t.Error("a file was fetched into a folder that is not there")
	}
	if _, err := filetransfer.Get(within(t), s.client, "a/b/c", local, filetransfer.Parents()); err != nil {
		t.Fatal(err)
	}
	want(t, local, []byte("x"))
}

func TestWhatIsNoFile(t *testing.T) {
	s := newSite(t)
	if err := os.Mkdir(filepath.Join(s.dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.write("file", []byte("x"))
	local := filepath.Join(t.TempDir(), "local")
	_, err := filetransfer.PutFrom(within(t), s.client, strings.NewReader("x"), 1, "folder")
	wantCode(t, err, anser.FailedPrecondition, "folder")
	_, err = filetransfer.Get(within(t), s.client, "folder", local)
	wantCode(t, err, anser.FailedPrecondition, "folder")
	_, err = filetransfer.Get(within(t), s.client, "nothing", local)
	wantCode(t, err, anser.NotFound)
	_, err = filetransfer.Get(within(t), s.client, "file/below", local)
	wantCode(t, err, anser.FailedPrecondition)
	_, err = filetransfer.PutFrom(within(t), s.client, strings.NewReader("x"), 1, "file/below", filetransfer.Parents())
	wantCode(t, err, anser.FailedPrecondition)
	if _, err = filetransfer.Put(within(t), s.client, s.dir, "a"); err == nil {
		t.Error("a folder was sent as a file")
	}
	if _, err = filetransfer.Put(within(t), s.client, local, "a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	missing(t, local)
	s.want("file", []byte("x"))
}

func TestTwoWriters(t *testing.T) {
	s := newSite(t)
	type sent struct {
		data []byte
		err  error
	}
	all := make(chan sent)
	const writers = 4
	for range writers {
		c := s.dial()
		go func() {
			data := content(1 << 20)
			_, err := filetransfer.PutFrom(within(t), c, bytes.NewReader(data), int64(len(data)), "a")
			all <- sent{data, err}
		}()
	}
	var candidates [][]byte
	for range writers {
		w := <-all
		if w.err != nil {
			t.Error(w.err)
		}
		candidates = append(candidates, w.data)
	}
	got, err := os.ReadFile(filepath.Join(s.dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	whole := 0
	for _, c := range candidates {
		if bytes.Equal(c, got) {
			whole++
		}
	}
	if whole != 1 {
		t.Errorf("the file is what %d of the writers sent: want 1", whole)
	}
	if left := s.parts(); len(left) > 0 {
		t.Errorf("unfinished files are left: %q", left)
	}
}

func TestSourceChangesWhileItIsSent(t *testing.T) {
	for name, change := range map[string]func(name string) error{
		"longer": func(name string) error {
			f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString("more")
			return err
		},
		"shorter": func(name string) error { return os.Truncate(name, 1000) },
	} {
		t.Run(name, func(t *testing.T) {
			local := filepath.Join(t.TempDir(), "local")
			write(t, local, content(8<<20))
			// Authorize runs before the first byte is read.
			s := newSite(t, filetransfer.Authorize(func(context.Context, filetransfer.Op, string) error { return change(local) }))
			_, err := filetransfer.Put(within(t), s.client, local, "a")
			if err == nil || !strings.Contains(err.Error(), "was changed while it was sent") {
				t.Errorf("error: %v", err)
			}
			missing(t, filepath.Join(s.dir, "a"))
		})
	}
}

func TestFileChangesWhileItIsFetched(t *testing.T) {
	for name, change := range map[string]func(name string) error{
		"shorter": func(name string) error { return os.Truncate(name, 4<<20) },
		"other content": func(name string) error {
			return os.WriteFile(name, content(8<<20), 0o644)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.write("a", content(8<<20))
			local := filepath.Join(t.TempDir(), "local")
			_, err := filetransfer.GetTo(within(t), s.client, "a", &hookWriter{at: 1 << 20, f: func() {
				if err := change(filepath.Join(s.dir, "a")); err != nil {
					t.Error(err)
				}
			}})
			wantCode(t, err, anser.FailedPrecondition, "changed during the transfer")
			missing(t, local)
		})
	}
}

// hookWriter calls f once, when that number of bytes was written.
type hookWriter struct {
	n, at int
	f     func()
}

func (w *hookWriter) Write(b []byte) (int, error) {
	if w.n += len(b); w.n >= w.at && w.f != nil {
		f := w.f
		w.f = nil
		f()
	}
	return len(b), nil
}
