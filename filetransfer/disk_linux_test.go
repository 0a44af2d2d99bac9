package filetransfer_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/filetransfer"
)

func TestDiskIsFull(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=1m"); err != nil {
		if !isAgain() { // as root of its own user namespace
			again(t, &syscall.SysProcAttr{
				Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
				GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
			})
			return
		}
		t.Fatalf("a small disk cannot be mounted: run this as root, or allow user namespaces: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(disk, syscall.MNT_DETACH) })
	s := &site{t: t, dir: disk}
	s.start(listen(t, "127.0.0.1:0"))
	c := s.dial()
	s.write("a", []byte("old"))
	local := filepath.Join(t.TempDir(), "local")
	data := content(4 << 20)
	write(t, local, data)
	_, err := filetransfer.Put(within(t), c, local, "a")
	wantCode(t, err, anser.ResourceExhausted, "no space left", `"a"`)
	s.want("a", []byte("old"))
	if left := s.parts(); len(left) > 0 {
		t.Errorf("unfinished files fill the disk: %q", left)
	}
	// The disk of the client may be full as well.
	s2 := newSite(t)
	s2.write("b", data)
	_, err = filetransfer.Get(within(t), s2.client, "b", filepath.Join(disk, "b"))
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
	wantCode(t, get(t, s.client, "pipe"), anser.FailedPrecondition, "not a file")
}

func TestPermission(t *testing.T) {
	if os.Getuid() == 0 { // root may do everything
		again(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged, Gid: unprivileged}})
		return
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

// unprivileged is a user without files.
const unprivileged = 65534

// againVariable is set in a test started by another one.
const againVariable = "ANSER_FILE_TEST_AGAIN"

func isAgain() bool { return os.Getenv(againVariable) != "" }

// again runs the test in a process of its own, with the attributes attr.
func again(t *testing.T, attr *syscall.SysProcAttr) {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "again") // not t.TempDir, which only its own user can access
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	program := filepath.Join(dir, "test")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(program, self, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir, cmd.SysProcAttr = dir, attr
	cmd.Env = append(os.Environ(), againVariable+"=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("in a process of its own: %v\n%s", err, out)
	}
}
