package file_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/file"
)

func TestDiskIsFull(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Skip("only root may mount a small disk: ", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	s := &site{t: t, dir: disk}
	s.start(listen(t, "127.0.0.1:0"))
	c := s.dial()
	s.write("a", []byte("old"))
	local := filepath.Join(t.TempDir(), "local")
	data := content(4 << 20)
	write(t, local, data)
	_, err := file.Put(within(t), c, local, "a")
	wantCode(t, err, anser.ResourceExhausted, "no space left", `"a"`)
	s.want("a", []byte("old"))
	if left := s.parts(); len(left) > 0 {
		t.Errorf("unfinished files fill the disk: %q", left)
	}
	// The disk of the client may be full as well.
	s2 := newSite(t)
	s2.write("b", data)
	_, err = file.Get(within(t), s2.client, "b", filepath.Join(disk, "b"))
	if err == nil {
		t.Error("4 MiB were fetched to a disk of 1 MiB")
	}
	missing(t, filepath.Join(disk, "b"))
	if left := s.parts(); len(left) > 0 {
		t.Errorf("unfinished files fill the disk: %q", left)
	}
	if err := put(t, c, "small"); err != nil {
		t.Errorf("after that: %v", err)
	}
}

func TestPipeIsNoFile(t *testing.T) {
	s := newSite(t)
	if err := syscall.Mkfifo(filepath.Join(s.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantCode(t, get(t, s.client, "pipe"), anser.FailedPrecondition, "no file")
}

func TestPermission(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root may do everything")
	}
	s := newSite(t)
	s.write("a", []byte("x"))
	if err := os.Chmod(filepath.Join(s.dir, "a"), 0); err != nil {
		t.Fatal(err)
	}
	wantCode(t, get(t, s.client, "a"), anser.PermissionDenied)
	if err := os.Chmod(s.dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(s.dir, 0o755)
	wantCode(t, put(t, s.client, "b"), anser.PermissionDenied)
}
