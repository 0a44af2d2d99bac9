package filetransfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/filelock"
)

const (
	partSuffix = ".part"
	idLength   = 32 // hexadecimal digits
	// cleanEvery is how often a folder to which files are sent is searched for old unfinished
	// files, and maxCleaned the number of folders for which that is tracked.
	cleanEvery = time.Hour
	maxCleaned = 1000
)

// partOf returns the path of the unfinished file of a transfer. It also depends on the target's
// name, so that an ID has no meaning for another target.
func partOf(target, id string) string {
	sum := sha256.Sum256([]byte(id + "\x00" + path.Base(target)))
	return sibling(target, partPrefix+hex.EncodeToString(sum[:idLength/2])+partSuffix)
}

func isPart(name string) bool {
	return strings.HasPrefix(name, partPrefix) && strings.HasSuffix(name, partSuffix)
}

func checkID(id string) error {
	if b, err := hex.DecodeString(id); err != nil || len(b) != idLength/2 {
		return anser.Errorf(anser.InvalidArgument, "the id %.40q of the transfer is not one of %d hexadecimal digits", id, idLength)
	}
	return nil
}

// claim is the right of one handler to write an unfinished file.
type claim struct {
	lost chan struct{} // another handler wants it
	over chan struct{} // the file was closed
}

// claim returns the right to write a part. A transfer whose lost connection this side has not
// noticed yet still has it when the client comes back, so the newer handler gets it, after the
// older one has released it.
func (v *Service) claim(ctx context.Context, part string) (*claim, error) {
	mine := &claim{make(chan struct{}), make(chan struct{})}
	for {
		v.mu.Lock()
		other := v.puts[part]
		if other == nil {
			v.puts[part] = mine
			v.mu.Unlock()
			return mine, nil
		}
		select {
		case <-other.lost:
		default:
			close(other.lost)
		}
		v.mu.Unlock()
		select {
		case <-other.over:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// release ends a claim.
func (v *Service) release(part string, c *claim) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.puts, part)
	close(c.over)
}

// Partial is the file of an incomplete transfer.
type Partial struct {
	Path   string    // below the root
	Size   int64     // in bytes
	Time   time.Time // time of the last write
	Active bool      // a transfer is writing it
}

// Partials returns the unfinished files of the whole tree, which it walks. Entries that cannot be
// read are left out and reported by the error, which may accompany a result.
func (v *Service) Partials(ctx context.Context) ([]Partial, error) {
	var list []Partial
	var failed error
	err := fs.WalkDir(v.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = errors.Join(failed, err)
			return nil
		}
		if part, ok := v.partial(p, d); ok {
			list = append(list, part)
		}
		return nil
	})
	return list, errors.Join(failed, err)
}

func (v *Service) partial(p string, d fs.DirEntry) (Partial, bool) {
	if !isPart(d.Name()) || !d.Type().IsRegular() {
		return Partial{}, false
	}
	info, err := v.root.Lstat(p)
	if err != nil || !info.Mode().IsRegular() {
		return Partial{}, false // completed meanwhile
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return Partial{p, info.Size(), info.ModTime(), v.puts[p] != nil}, true
}

// Clean removes the unfinished files of the whole tree whose last write was at least age ago,
// except those of running transfers, and returns their number.
func (v *Service) Clean(ctx context.Context, age time.Duration) (int, error) {
	list, err := v.Partials(ctx)
	n := 0
	for _, p := range list {
		if removed, failed := v.dropStale(p, age); failed != nil {
			err = errors.Join(err, failed)
		} else if removed {
			n++
		}
	}
	return n, err
}

// dropStale removes an unfinished file if it is old and not in use. The locks keep a transfer from
// claiming it, here and in another process.
func (v *Service) dropStale(p Partial, age time.Duration) (bool, error) {
	if time.Since(p.Time) < age {
		return false, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.puts[p.Path] != nil {
		return false, nil
	}
	if filelock.Works {
		f, err := v.root.OpenFile(p.Path, os.O_RDWR|openFlags, 0)
		if err != nil {
			return false, absent(err)
		}
		defer f.Close()
		if got, err := filelock.Try(f); !got || err != nil {
			return false, err
		}
	}
	err := v.root.Remove(p.Path)
	return err == nil, absent(err)
}

// absent turns the error that a file does not exist into nil.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// cleanFolder removes old unfinished files in one folder, now and then. Errors do not concern the
// transfer that triggers it.
func (v *Service) cleanFolder(dir string) {
	v.mu.Lock()
	if time.Since(v.cleaned[dir]) < cleanEvery {
		v.mu.Unlock()
		return
	}
	if len(v.cleaned) >= maxCleaned {
		clear(v.cleaned)
	}
	v.cleaned[dir] = time.Now()
	v.mu.Unlock()
	f, err := v.root.Open(dir)
	if err != nil {
		return
	}
	defer f.Close()
	for {
		list, err := f.ReadDir(pageSize)
		for _, d := range list {
			if p, ok := v.partial(path.Join(dir, d.Name()), d); ok {
				v.dropStale(p, v.keep)
			}
		}
		if err != nil || len(list) == 0 {
			return
		}
	}
}
