package record

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anser-rpc/anser/internal/mono"
)

// The files of a folder: "calls-00000001.anrec" and so on.
const (
	filePrefix = "calls-"
	fileSuffix = ".anrec"
	files      = 8 // of which the oldest is removed for a new one
	// After an error nothing is written for this time.
	pause = time.Second
)

// ring writes blocks into files, and removes the oldest ones. One goroutine uses it.
type ring struct {
	dir    string
	most   int64 // bytes of all files
	create func(name string) (io.WriteCloser, error)
	number int // of the last file
	size   int64
	old    []ringFile // oldest first
	file   io.WriteCloser
	name   string
	failed bool      // the last write
	until  mono.Time // nothing is written before
}

type ringFile struct {
	name string
	size int64
}

// openRing makes the folder, and finds out what is in it.
func openRing(dir string, most int64) (*ring, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of a recording: %w", err)
	}
	g := &ring{dir: dir, most: most, create: createFile}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the folder of a recording: %w", err)
	}
	for _, e := range list {
		n, ok := fileNumber(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it was removed
		}
		g.old = append(g.old, ringFile{filepath.Join(dir, e.Name()), info.Size()})
		g.number = max(g.number, n)
	}
	slices.SortFunc(g.old, func(a, b ringFile) int { // by length first: a number may have more digits
		if d := len(a.name) - len(b.name); d != 0 {
			return d
		}
		return strings.Compare(a.name, b.name)
	})
	return g, nil
}

// createFile makes a file that only its owner reads, and fails if there is one.
func createFile(name string) (io.WriteCloser, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err // no *os.File that is nil
	}
	return f, nil
}

// fileNumber returns the number in the name of a file.
func fileNumber(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, filePrefix)
	digits, end := strings.CutSuffix(digits, fileSuffix)
	n, err := strconv.Atoi(digits)
	return n, ok && end && err == nil && n > 0
}

var errPause = errors.New("the last write failed a moment ago")

// write writes a block. After an error the file ends, and the next one begins a second later.
func (g *ring) write(block []byte) error {
	if mono.Now() < g.until {
		return errPause
	}
	err := g.append(block)
	if err != nil {
		g.end()
		g.until = mono.Now().Add(pause)
	}
	return err
}

func (g *ring) append(block []byte) error {
	if g.file != nil && g.size+int64(len(block)) > g.most/files {
		if err := g.end(); err != nil {
			return err
		}
	}
	if g.file == nil {
		if err := g.begin(int64(len(block))); err != nil {
			return err
		}
	}
	n, err := g.file.Write(block)
	g.size += int64(n)
	return err
}

// begin makes room for a file with a first block of n bytes, and creates it.
func (g *ring) begin(n int64) error {
	total := max(g.most/files, n+int64(len(fileMagic)))
	for _, f := range g.old {
		total += f.size
	}
	for len(g.old) > 0 && total > g.most {
		if err := os.Remove(g.old[0].name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= g.old[0].size
		g.old = g.old[1:]
	}
	g.number++
	g.name = filepath.Join(g.dir, fmt.Sprintf("%s%08d%s", filePrefix, g.number, fileSuffix))
	file, err := g.create(g.name)
	if err != nil {
		return err
	}
	g.file = file
	size, err := io.WriteString(file, fileMagic)
	g.size = int64(size)
	return err
}

// end closes the file.
func (g *ring) end() error {
	if g.file == nil {
		return nil
	}
	err := g.file.Close()
	if g.size > int64(len(fileMagic)) {
		g.old = append(g.old, ringFile{g.name, g.size})
	} else if rm := os.Remove(g.name); rm != nil && err == nil && !errors.Is(rm, fs.ErrNotExist) {
		err = rm
	}
	g.file = nil
	return err
}
