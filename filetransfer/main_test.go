package filetransfer_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/filetransfer"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// bound is the timeout of all operations, on a busy machine too.
const bound = 5 * time.Minute

// silent suppresses the logs of expected errors.
var silent = anser.Logger(slog.New(slog.DiscardHandler))

// site is a server with a folder, and a client of it.
type site struct {
	t       *testing.T
	dir     string // the served folder
	address string
	service *filetransfer.Service
	server  *anser.Server
	client  *anser.Client
	served  chan error
}

// newSite serves a new folder over TCP.
func newSite(t *testing.T, opts ...filetransfer.ServeOption) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	s.start(listen(t, "127.0.0.1:0"), opts...)
	s.client = s.dial()
	return s
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// start serves the folder on l, until stop or the end of the test.
func (s *site) start(l net.Listener, opts ...filetransfer.ServeOption) {
	s.t.Helper()
	root, err := os.OpenRoot(s.dir)
	if err != nil {
		s.t.Fatal(err)
	}
	server := anser.NewServer(silent)
	if s.service, err = filetransfer.Serve(server, root, opts...); err != nil {
		s.t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	s.server, s.served, s.address = server, served, l.Addr().String()
	s.t.Cleanup(func() {
		server.Close()
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			s.t.Errorf("Serve: %v", err)
		}
		served <- anser.ErrServerClosed
		root.Close()
	})
}

// dial returns a client with one connection of its own.
func (s *site) dial(opts ...anser.DialOption) *anser.Client {
	s.t.Helper()
	c, err := anser.Dial(s.address, append([]anser.DialOption{silent, anser.NoSnapshot(), anser.Conns(1)}, opts...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// write creates a file in the served folder.
func (s *site) write(name string, content []byte) {
	s.t.Helper()
	write(s.t, filepath.Join(s.dir, name), content)
}

// want checks a file in the served folder.
func (s *site) want(name string, content []byte) {
	s.t.Helper()
	want(s.t, filepath.Join(s.dir, name), content)
}

// parts returns the names of unfinished files.
func (s *site) parts() []string {
	s.t.Helper()
	return parts(s.t, s.dir)
}

func parts(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if strings.HasPrefix(filepath.Base(p), ".anser-") {
			names = append(names, p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(name, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, name string, content []byte) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
	} else if !bytes.Equal(got, content) {
		t.Errorf("%s has %d bytes, not the %d that it should have", filepath.Base(name), len(got), len(content))
	}
}

func missing(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is there: %v", filepath.Base(name), err)
	}
}

// content returns n bytes that differ from call to call.
func content(n int) []byte {
	b := make([]byte, n)
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	rand.NewChaCha8(seed).Read(b)
	return b
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	t.Cleanup(cancel)
	return ctx
}

// wantCode checks the code of an error, and that its text contains the words.
func wantCode(t *testing.T, err error, code anser.Code, words ...string) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("error: %v; want the code %v", err, code)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error %q does not say %q", err, w)
		}
	}
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(bound); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it did not come about that %s", what)
		}
	}
}

// source is a ReaderAt that calls a function when a read passes the position.
type source struct {
	*bytes.Reader
	position int64
	at       func()
}

func newSource(b []byte, position int64, at func()) *source {
	return &source{bytes.NewReader(b), position, at}
}

func (s *source) ReadAt(b []byte, off int64) (int, error) {
	if s.at != nil && off >= s.position {
		at := s.at
		s.at = nil
		at()
	}
	return s.Reader.ReadAt(b, off)
}

// symlink makes a symbolic link.
func symlink(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal("this test needs symbolic links, which Windows allows in its developer mode: ", err)
	}
}
