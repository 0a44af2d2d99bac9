package auth

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"
)

// FollowOption configures what follows files on disk.
type FollowOption func(*followOptions)

type followOptions struct {
	poll time.Duration
	log  *slog.Logger
}

// Poll sets how often the files are read; the default is 5 s.
func Poll(every time.Duration) FollowOption { return func(o *followOptions) { o.poll = every } }

// Logger sets where changes and mistakes are logged; the default is slog.Default(). Secrets are never logged.
func Logger(l *slog.Logger) FollowOption { return func(o *followOptions) { o.log = l } }

// follower reads files again and again. Files are found changed by what is in them, as events of the file system
// miss the swap of a symbolic link.
type follower struct {
	files []string
	o     followOptions
	take  func(contents [][]byte) error // is told of a change; after an error the old content stays

	mu  sync.Mutex // held while files are read; guards what follows
	sum [sha256.Size]byte
	err string // logged last

	closing sync.Once
	stop    chan struct{}
	done    chan struct{}
}

// follow reads the files and follows them until close. It fails if they cannot be used now.
func follow(files []string, opts []FollowOption, take func([][]byte) error) (*follower, error) {
	f := &follower{files: files, o: followOptions{poll: 5 * time.Second, log: slog.Default()}, take: take, stop: make(chan struct{}), done: make(chan struct{})}
	for _, opt := range opts {
		opt(&f.o)
	}
	switch {
	case len(files) == 0:
		return nil, errors.New("auth: no file is named")
	case f.o.poll <= 0:
		return nil, fmt.Errorf("auth.Poll(%v): want a time above 0", f.o.poll)
	case f.o.log == nil:
		return nil, errors.New("auth.Logger: the logger is nil: leave the option out, or give it slog.New(slog.DiscardHandler)")
	}
	if err := f.look(); err != nil {
		return nil, err
	}
	go f.run()
	return f, nil
}

func (f *follower) run() {
	defer close(f.done)
	tick := time.NewTicker(f.o.poll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f.relook()
		case <-f.stop:
			return
		}
	}
}

// relook looks, and logs a mistake once.
func (f *follower) relook() {
	before := f.sum
	err := f.look()
	switch text := fmt.Sprint(err); {
	case err == nil && f.sum != before:
		f.o.log.Info("auth: the files have changed and are in use", "files", f.files)
		f.err = ""
	case err == nil:
		f.err = ""
	case text != f.err:
		f.err = text
		f.o.log.Error("auth: the files have changed and cannot be used: what they held before stays", "err", err)
	}
}

// look reads the files and takes a change over.
func (f *follower) look() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := sha256.New()
	var contents [][]byte
	for _, name := range f.files {
		b, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("auth: %w", err)
		}
		fmt.Fprintf(h, "%d\n", len(b))
		h.Write(b)
		contents = append(contents, b)
	}
	sum := [sha256.Size]byte(h.Sum(nil))
	if sum == f.sum {
		return nil
	}
	if err := f.take(contents); err != nil {
		return err
	}
	f.sum = sum
	return nil
}

// close ends the following. A nil follower follows nothing.
func (f *follower) close() error {
	if f != nil {
		f.closing.Do(func() { close(f.stop) })
		<-f.done
	}
	return nil
}

// decode reads JSON that has no unknown keys and nothing behind it. Its errors do not hold values.
func decode(name string, b []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if _, more := d.Token(); err == nil && more != io.EOF {
		err = errors.New("there is something behind the document")
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		err = fmt.Errorf("%s cannot be a %s", t.Field, t.Value)
	}
	if err != nil {
		return fmt.Errorf("auth: %s, after %d bytes: %w", name, d.InputOffset(), err)
	}
	return nil
}
