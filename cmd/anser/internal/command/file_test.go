package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

// serveFiles serves a new folder and returns both.
func serveFiles(t *testing.T, opts ...filetransfer.ServeOption) (address, dir string) {
	t.Helper()
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	s := anser.NewServer()
	if _, err := filetransfer.Serve(s, root, opts...); err != nil {
		t.Fatal(err)
	}
	return listen(t, s), dir
}

func TestFile(t *testing.T) {
	addr, dir := serveFiles(t, filetransfer.AllowRemove())
	here := t.TempDir()
	local := filepath.Join(here, "report.txt")
	if err := os.WriteFile(local, []byte("honk"), 0o644); err != nil {
		t.Fatal(err)
	}
	run(t, "file", "put", addr, local, "2026/").expect(t, 6, "send with --parents")
	run(t, "file", "put", addr, local, "2026/", "--parents").expect(t, 0, "2026/report.txt", "4 B", "sha256")
	run(t, "file", "put", addr, local, "2026/report.txt", "--no-replace").expect(t, 6, "it exists already")
	if b, err := os.ReadFile(filepath.Join(dir, "2026", "report.txt")); err != nil || string(b) != "honk" {
		t.Errorf("%q, %v", b, err)
	}
	run(t, "file", "ls", addr).expect(t, 0, "NAME", "2026/")
	run(t, "file", "ls", addr, "2026").expect(t, 0, "report.txt", "4 B")
	run(t, "file", "ls", addr, "nothing").expect(t, 6, "no such file")

	var listed []filetransfer.Info
	run(t, "file", "ls", addr, "2026", "--json").decode(t, &listed)
	if len(listed) != 1 || listed[0].Path != "2026/report.txt" || listed[0].Size != 4 {
		t.Errorf("%+v", listed)
	}
	var got struct {
		Path, Sum, Checksum string
		Size                int64
	}
	r := run(t, "file", "get", addr, "2026/report.txt", filepath.Join(here, "copy"), "--json", "--crc32c", "--resume")
	r.expect(t, 0)
	r.decode(t, &got)
	if got.Path != "2026/report.txt" || got.Size != 4 || got.Checksum != "crc32c" || len(got.Sum) != 8 {
		t.Errorf("%+v", got)
	}
	if b, err := os.ReadFile(filepath.Join(here, "copy")); err != nil || string(b) != "honk" {
		t.Errorf("%q, %v", b, err)
	}
	if r := run(t, "file", "get", addr, "2026/report.txt", "-"); r.code != 0 || r.out != "honk" {
		t.Errorf("%+v", r)
	}
	into := t.TempDir() // a folder: the file keeps its name
	run(t, "file", "get", addr, "2026/report.txt", into).expect(t, 0)
	if _, err := os.Stat(filepath.Join(into, "report.txt")); err != nil {
		t.Error(err)
	}
	run(t, "file", "get", addr, "../report.txt", into).expect(t, 6, "cannot be used")
	run(t, "file", "rm", addr, "2026").expect(t, 6, "not empty")
	run(t, "file", "rm", addr, "2026/report.txt", "2026", "--json").expect(t, 0, `"removed"`)
	if list, _ := os.ReadDir(dir); len(list) > 0 {
		t.Errorf("left: %v", list)
	}
}

func TestFileSaysWhatIsWrong(t *testing.T) {
	addr, _ := serveFiles(t)
	run(t, "file", "rm", addr, "a").expect(t, 4, "--service", "anser describe")
	run(t, "file", "ls", addr, "--service", "Other").expect(t, 4, "--service")
	run(t, "file", "ls", addr, "--service", "").expect(t, 2, "--service")
	run(t, "file", "put", addr).expect(t, 2, "missing")
	run(t, "file", "put", addr, filepath.Join(t.TempDir(), "nothing")).expect(t, 1, "no such file")
	run(t, "file", "get", addr, "a", "-", "--json").expect(t, 2, "standard output")
	run(t, "file", "get", addr, "a", "--patience", "-1s").expect(t, 2, "negative")
	if r := run(t, "file", "--help"); !strings.Contains(r.out, "put") || !strings.Contains(r.out, "rm") {
		t.Errorf("%+v", r)
	}
}
