package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// DefaultPoll is how often a File is read while it is watched.
const DefaultPoll = time.Second

// MaxFileBytes is the largest file that a File reads.
const MaxFileBytes = 32 << 20

// File is a registry in a JSON file: a list of instance records, written by people, by programs
// that register themselves, or both. Several processes may share it. All methods are safe for
// concurrent use.
//
// The file is polled and compared by content: inotify misses a file that is replaced through a
// symbolic link, as Kubernetes does it. A file that is missing or invalid is trouble, and watchers
// keep the last valid list. Nothing renews the records: those of a killed process stay until it
// comes back with the same keys, or until they are removed by hand.
type File struct {
	path   string
	owner  string // marks the records announced by this registry
	poll   time.Duration
	done   chan struct{} // closed by Close
	writer chan struct{} // holds one token while a goroutine writes the file

	closing sync.Once

	disk sync.Mutex // held while the file is read or written, so that no read overtakes a newer one

	mu      sync.Mutex // guards the fields below; taken under disk, never the other way round
	closed  bool
	wrote   bool // the file may hold records of this registry
	state   fileState
	changed chan struct{} // closed and replaced when state changed
	saved   chan struct{} // closed and replaced when a document was saved here
	pending []*fileChange // waiting to be written
}

// fileState is the result of the last read.
type fileState struct {
	at      time.Time // when it was read
	sum     [sha256.Size]byte
	err     error // why the file is invalid; the other fields are then the last valid state
	records []fileRecord
	lists   map[string][]Instance // by service, sorted
}

// A FileOption configures a File.
type FileOption func(*File)

// PollEvery sets how often the file is read while it is watched, DefaultPoll by default.
func PollEvery(d time.Duration) FileOption {
	return func(f *File) { f.poll = d }
}

// NewFile returns a registry in the file at path. It neither reads nor writes the file: the first
// Register creates it if necessary. It starts no goroutine.
func NewFile(path string, opts ...FileOption) (*File, error) {
	if path == "" {
		return nil, errors.New("the registry file has no path: give one, for example \"services.json\"")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("registry file: %w", err)
	}
	f := &File{
		path: path, owner: rand.Text(), poll: DefaultPoll,
		done: make(chan struct{}), writer: make(chan struct{}, 1),
		changed: make(chan struct{}), saved: make(chan struct{}),
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("registry.NewFile: an option is nil")
		}
		opt(f)
	}
	if f.poll <= 0 {
		return nil, fmt.Errorf("registry.PollEvery(%v): want a time above 0", f.poll)
	}
	return f, nil
}

// Watch implements Resolver. It reports trouble with the path and, if known, the line, once per
// state of the file.
func (f *File) Watch(ctx context.Context, service string, update func([]Instance), trouble func(error)) error {
	if err := CheckService(service); err != nil {
		return err
	}
	var last []Instance
	var told string
	tick := time.NewTimer(f.poll)
	defer tick.Stop()
	// The first read is always fresh; later ones share what another watcher has just read.
	for current, maxAge := false, time.Duration(0); ; maxAge = f.poll / 2 {
		if err := ctx.Err(); err != nil {
			return err
		}
		state, changed, err := f.look(maxAge)
		if err != nil {
			return err
		}
		switch list := state.lists[service]; {
		case state.err != nil:
			if told != state.err.Error() && trouble != nil {
				trouble(state.err)
			}
			current, told = false, state.err.Error()
		case !current || !Equal(list, last):
			update(list)
			current, told, last = true, "", list
		}
		tick.Reset(f.poll)
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
		case <-f.done:
		}
	}
}

// Services implements Lister. It fails at once if the file cannot be read.
func (f *File) Services(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	state, _, err := f.look(0)
	if err != nil {
		return nil, err
	}
	if state.err != nil {
		return nil, state.err
	}
	var names []string
	for name := range state.lists {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// look returns the state of the file, at most maxAge old, and a channel that is closed when the
// state changes.
func (f *File) look(maxAge time.Duration) (fileState, <-chan struct{}, error) {
	f.disk.Lock()
	defer f.disk.Unlock()
	state, changed, err := f.current()
	if err != nil || maxAge > 0 && time.Since(state.at) < maxAge {
		return state, changed, err
	}
	fresh := f.read(state)
	return fresh, f.publish(fresh), nil
}

func (f *File) current() (fileState, <-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fileState{}, nil, ErrClosed
	}
	return f.state, f.changed, nil
}

// publish sets the current state and returns the channel that is closed when it changes.
func (f *File) publish(fresh fileState) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fresh.sum != f.state.sum || (fresh.err == nil) != (f.state.err == nil) {
		close(f.changed)
		f.changed = make(chan struct{})
	}
	f.state = fresh
	return f.changed
}

// read returns the state of the file, and reuses the state before if possible.
func (f *File) read(before fileState) fileState {
	now := before
	now.at = time.Now()
	data, err := readAtMost(f.path, MaxFileBytes)
	if err != nil {
		now.err = f.explain(err)
		return now
	}
	now.sum = sha256.Sum256(data)
	if now.sum == before.sum && (before.err == nil || errors.As(before.err, new(*fileError))) {
		return now // parsed before, with the same result
	}
	records, err := parseFile(f.path, data)
	if now.err = err; err == nil {
		now.set(records)
	}
	return now
}

func (s *fileState) set(records []fileRecord) {
	s.records, s.lists = records, make(map[string][]Instance)
	for _, r := range records {
		s.lists[r.Service] = append(s.lists[r.Service], r.Instance)
	}
	for _, list := range s.lists {
		Sort(list)
	}
}

// explain adds advice to an error of the file system.
func (f *File) explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("registry file %s does not exist yet: write [] into it, or register an instance: %w", f.path, err)
	}
	return fmt.Errorf("registry file %s cannot be read: %w", f.path, err)
}

func readAtMost(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes: split the services among several files", limit)
	}
	return data, err
}

// Leases implements [LeaseReader]: no record of a file expires.
func (f *File) Leases(ctx context.Context, service string) ([]Lease, error) {
	list, err := List(ctx, f, service)
	leases := make([]Lease, len(list))
	for i := range list {
		leases[i].Key = list[i].Key()
	}
	return leases, err
}
