package registry

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fileCloseTimeout bounds how long Close waits for other processes to release the file.
const fileCloseTimeout = 5 * time.Second

// fileChange is one change that waits to be written. The goroutine that becomes the writer takes
// all of them, so a thousand concurrent registrations cost a few writes of the file.
type fileChange struct {
	apply func([]fileRecord) []fileRecord
	done  chan error // receives the result; capacity 1
}

// Register implements Registrar. It writes the file, after waiting for other processes that write
// it, and fails if the file is invalid: a write would lose the part that cannot be parsed.
func (f *File) Register(ctx context.Context, in Instance) error {
	if err := in.Validate(); err != nil {
		return err
	}
	r := fileRecord{in.Clone(), f.owner}
	return f.change(ctx, func(records []fileRecord) []fileRecord {
		if i := indexRecord(records, in); i >= 0 {
			records[i] = r
			return records
		}
		return append(records, r)
	})
}

// Deregister implements Registrar.
func (f *File) Deregister(ctx context.Context, in Instance) error {
	return f.change(ctx, func(records []fileRecord) []fileRecord {
		if i := indexRecord(records, in); i >= 0 && records[i].Owner == f.owner {
			return slices.Delete(records, i, i+1)
		}
		return records
	})
}

// Close implements Registry. It fails if the file cannot be changed; the records of this registry
// are then still in it.
func (f *File) Close() (err error) {
	f.closing.Do(func() { err = f.close() })
	return err
}

func (f *File) close() error {
	withdraw := &fileChange{
		apply: func(records []fileRecord) []fileRecord {
			return slices.DeleteFunc(records, func(r fileRecord) bool { return r.Owner == f.owner })
		},
		done: make(chan error, 1),
	}
	f.mu.Lock()
	f.closed = true // under the lock of the queue: no change is queued after this one
	wrote := f.wrote
	if wrote {
		f.pending = append(f.pending, withdraw)
	}
	f.mu.Unlock()
	close(f.done)
	if !wrote {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), fileCloseTimeout)
	defer cancel()
	return f.await(ctx, withdraw)
}

func indexRecord(records []fileRecord, in Instance) int {
	return slices.IndexFunc(records, func(r fileRecord) bool {
		return r.Service == in.Service && r.Key() == in.Key()
	})
}

func (f *File) change(ctx context.Context, apply func([]fileRecord) []fileRecord) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := &fileChange{apply: apply, done: make(chan error, 1)}
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return ErrClosed
	}
	f.wrote = true
	f.pending = append(f.pending, c)
	f.mu.Unlock()
	return f.await(ctx, c)
}

// await waits until the queued change is written, by this goroutine or another.
func (f *File) await(ctx context.Context, c *fileChange) error {
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		return f.giveUp(c, ctx.Err())
	case f.writer <- struct{}{}:
	}
	err := f.writePending(ctx)
	<-f.writer
	if err != nil {
		return f.giveUp(c, err)
	}
	return <-c.done
}

// giveUp removes a change from the queue and returns err, or the result of the change if a writer
// has already taken it.
func (f *File) giveUp(c *fileChange, err error) error {
	f.mu.Lock()
	i := slices.Index(f.pending, c)
	if i >= 0 {
		f.pending = slices.Delete(f.pending, i, i+1)
	}
	f.mu.Unlock()
	if i < 0 {
		return <-c.done
	}
	return err
}

// writePending writes all queued changes. If it fails, they stay in the queue for the next writer.
func (f *File) writePending(ctx context.Context) error {
	path, err := filepath.EvalSymlinks(f.path) // the link stays, its target is replaced
	if errors.Is(err, fs.ErrNotExist) {
		path = f.path
	} else if err != nil {
		return f.explain(err)
	}
	unlock, err := lockFile(ctx, path+".lock")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("registry file %s cannot be written: make its directory: %w", f.path, err)
	} else if err != nil {
		return err
	}
	defer unlock()
	f.disk.Lock()
	defer f.disk.Unlock()
	f.mu.Lock()
	before, changes := f.state, f.pending
	f.pending = nil
	f.mu.Unlock()
	if len(changes) == 0 {
		return nil
	}
	after, err := f.rewrite(path, f.read(before), changes)
	f.publish(after) // this registry's watchers need not wait for the next poll
	for _, c := range changes {
		c.done <- err
	}
	return nil
}

// rewrite applies the changes to the current content of the file, and returns its new state.
func (f *File) rewrite(path string, now fileState, changes []*fileChange) (fileState, error) {
	missing := errors.Is(now.err, fs.ErrNotExist)
	if now.err != nil && !missing {
		return now, now.err
	}
	records := slices.Clone(now.records)
	if missing {
		records = nil
	}
	for _, c := range changes {
		records = c.apply(records)
	}
	slices.SortFunc(records, func(a, b fileRecord) int {
		if c := strings.Compare(a.Service, b.Service); c != 0 {
			return c
		}
		return strings.Compare(a.Key(), b.Key())
	})
	data, err := formatFile(records)
	if err != nil {
		return now, err
	}
	sum := sha256.Sum256(data)
	if missing && len(records) == 0 || !missing && sum == now.sum {
		return now, nil
	}
	if err := replaceFile(path, data); err != nil {
		return now, err
	}
	now.sum, now.err = sum, nil
	now.set(records)
	return now, nil
}

// replaceFile writes the file atomically: a reader sees the old content or the new one.
func replaceFile(path string, data []byte) (err error) {
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return fmt.Errorf("registry file %s cannot be written: %w", path, err)
	}
	defer func() {
		if err != nil {
			temp.Close()
			os.Remove(temp.Name())
			err = fmt.Errorf("registry file %s cannot be written: %w", path, err)
		}
	}()
	if _, err := temp.Write(data); err != nil {
		return err
	}
	if err := temp.Chmod(mode); err != nil {
		return err
	}
	// Otherwise a crash of the machine may leave an empty file under the new name.
	if err := temp.Sync(); err != nil {
		return err
	}
	if err := temp.Close(); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
