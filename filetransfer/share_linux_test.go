package filetransfer_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser/filetransfer"
)

// neighbour is another server of the same folder, in the middle of a transfer whose data it has
// received completely.
type neighbour struct {
	t    *testing.T
	part string
	file *os.File
	// complete puts the file in place and ends the transfer, once.
	complete func()
}

func newNeighbour(s *site, name, id string, data []byte) *neighbour {
	s.t.Helper()
	n := &neighbour{t: s.t, part: filepath.Join(s.dir, filetransfer.PartOf(name, id))}
	write(s.t, n.part, data)
	var err error
	if n.file, err = os.OpenFile(n.part, os.O_RDWR, 0); err != nil {
		s.t.Fatal(err)
	}
	if err := syscall.Flock(int(n.file.Fd()), syscall.LOCK_EX); err != nil {
		s.t.Fatal(err)
	}
	n.complete = sync.OnceFunc(func() {
		if err := errors.Join(os.Rename(n.part, filepath.Join(s.dir, name)), n.file.Close()); err != nil {
			s.t.Error(err)
		}
	})
	s.t.Cleanup(func() { n.file.Close() })
	return n
}

// awaitTransfer waits until the site's server has a transfer.
func (s *site) awaitTransfer() {
	s.t.Helper()
	active := func(p filetransfer.Partial) bool { return p.Active }
	for ctx := within(s.t); ; time.Sleep(time.Millisecond) {
		list, err := s.service.Partials(ctx)
		if err != nil {
			s.t.Fatal(err)
		}
		if slices.ContainsFunc(list, active) {
			return
		}
	}
}

// The neighbour is about to put the file in place when the client, whose connection is lost,
// continues with this server.
func TestServersThatShareTheirFiles(t *testing.T) {
	for _, opts := range [][]filetransfer.Option{nil, {filetransfer.NoReplace()}} {
		s := newSite(t)
		id, data := strings.Repeat("0a", 16), content(1<<20)
		sum := sha256.Sum256(data)
		n := newNeighbour(s, "a", id, data)
		ended := make(chan error, 1)
		go func() {
			// The file is in place before this server receives the client's request.
			_, err := filetransfer.PutAgain(within(t), s.client, newSource(data, 0, n.complete), int64(len(data)), "a", id, hex.EncodeToString(sum[:]), opts...)
			ended <- err
		}()
		s.awaitTransfer()
		n.complete()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		s.want("a", data)
		if left := s.parts(); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
	}
}

// This server does not write a file that the neighbour is still writing, either.
func TestUnfinishedFileOfANeighbour(t *testing.T) {
	s := newSite(t)
	id, data := strings.Repeat("0b", 16), content(100)
	n := newNeighbour(s, "a", id, data[:50])
	if removed, err := s.service.Clean(within(t), 0); removed != 0 || err != nil {
		t.Errorf("Clean removed %d, %v", removed, err)
	}
	n.file.Close() // it has died: its data can be used
	r, err := filetransfer.PutAgain(within(t), s.client, newSource(data, 0, nil), int64(len(data)), "a", id, "")
	if err != nil {
		t.Fatal(err)
	}
	if r.Sum == "" {
		t.Errorf("%+v", r)
	}
	s.want("a", data)
}
