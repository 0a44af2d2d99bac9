// Package audit keeps the record of what users of the console change: a file of JSON lines that
// only grows. Each line has the hash of the one before it, so that a line that is changed,
// removed or put in between is noticed by [Verify].
package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/anser-rpc/anser/internal/filelock"
)

// Entry is an entry of the log. Sequence, time and hashes are set by [Log.Add].
type Entry struct {
	Sequence uint64    `json:"sequence"` // from 1, without gaps
	Time     time.Time `json:"time"`
	User     string    `json:"user"`
	Self     bool      `json:"self,omitempty"` // the console has made the change on its own
	Role     string    `json:"role,omitempty"`
	Remote   string    `json:"remote,omitempty"` // address of the user
	Action   string    `json:"action"`           // such as "rules" or "canary"
	Service  string    `json:"service,omitempty"`
	Subject  string    `json:"subject,omitempty"` // an instance, a method or a file
	Text     string    `json:"text,omitempty"`
	Reason   string    `json:"reason,omitempty"` // that the user gave
	Outcome  string    `json:"outcome"`          // "begun", "done" or "failed"
	Of       uint64    `json:"of,omitempty"`     // sequence of the entry with the outcome "begun"
	Before   string    `json:"before"`           // hash of the entry before; empty for the first one
	Hash     string    `json:"hash"`
}

// The outcomes. An entry is written before a change, and another one after it. A change that began
// and has no other entry may have been made: the console ended meanwhile.
const (
	Begun  = "begun"
	Done   = "done"
	Failed = "failed"
)

// Limits of a log.
const (
	maxText = 4 << 10  // bytes of a text of an entry, as JSON
	maxLine = 64 << 10 // bytes of a line
	// MaxRead is the maximum number of entries that Read returns.
	MaxRead = 500
)

// file is what a Log needs of an *os.File.
type file interface {
	io.WriteCloser
	Sync() error
	Truncate(size int64) error
	Stat() (os.FileInfo, error)
}

// Log is an open log. Its methods are safe for concurrent use.
type Log struct {
	path string

	mu       sync.Mutex // guards the fields below
	file     file
	size     int64
	sequence uint64
	last     string // hash
	broken   error  // why nothing more can be written
}

// Open opens the log in a file, which it creates if there is none, and locks it. It reads all of
// it, and fails if an entry was changed, or if another program has the log open. A last line that
// is incomplete, because the machine failed while it was written, is removed.
func Open(path string) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("the audit log: %w", err)
	}
	l := &Log{path: path, file: f}
	if ok, err := filelock.Try(f); err != nil || !ok {
		f.Close()
		if err == nil {
			err = fmt.Errorf("the audit log %s is in use by another console: give each console a file of its own", path)
		}
		return nil, err
	}
	chain, err := verify(f)
	if err == nil && chain.rest > 0 {
		err = f.Truncate(chain.size)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("the audit log %s: %w", path, err)
	}
	l.size, l.sequence, l.last = chain.size, chain.sequence, chain.hash
	return l, nil
}

// Close closes the file.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = errors.New("the audit log is closed")
	}
	return l.file.Close()
}

// Add writes an entry and returns it. When Add returns without an error, the entry is on disk. A
// part of an entry that could not be written is removed again.
func (l *Log) Add(e Entry) (Entry, error) {
	for _, text := range []*string{&e.User, &e.Role, &e.Remote, &e.Action, &e.Service, &e.Subject, &e.Text, &e.Reason, &e.Outcome} {
		*text = fit(*text)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.readyLocked(); err != nil {
		return e, err
	}
	e.Sequence, e.Before, e.Time = l.sequence+1, l.last, time.Now().UTC()
	e.Hash = e.hash()
	line, err := json.Marshal(e)
	if err != nil {
		return e, err
	}
	line = append(line, '\n')
	if _, err = l.file.Write(line); err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		if cut := l.file.Truncate(l.size); cut != nil {
			l.broken = fmt.Errorf("the end of the audit log %s cannot be repaired: %w", l.path, cut)
		}
		return e, fmt.Errorf("the audit log: %w", err)
	}
	l.size, l.sequence, l.last = l.size+int64(len(line)), e.Sequence, e.Hash
	return e, nil
}

// fit returns a text that reads back as it was written, and that leaves room for the others of a
// line: JSON replaces what is no UTF-8, and writes some characters as six.
func fit(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	size := 0
	for i, r := range text {
		switch {
		case r < ' ', strings.ContainsRune("<>&\u2028\u2029", r):
			size += len(`\u0000`)
		case r == '"', r == '\\':
			size += 2
		default:
			size += utf8.RuneLen(r)
		}
		if size > maxText {
			return text[:i] + "…"
		}
	}
	return text
}

// readyLocked returns why nothing can be written.
func (l *Log) readyLocked() error {
	if l.broken != nil {
		return l.broken
	}
	stat, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("the audit log: %w", err)
	}
	if stat.Size() != l.size {
		return fmt.Errorf("another program has written to the audit log %s: give each console a file of its own, and start this one again", l.path)
	}
	return nil
}

// hash returns the hash of the entry, which covers all of its fields and the entries before it.
func (e Entry) hash() string {
	e.Hash = ""
	data, err := json.Marshal(e)
	if err != nil {
		return "" // texts, numbers and a time can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// entries calls f for each line, and returns the size of the rest without an end of line.
func entries(r io.Reader, f func(Entry) error) (rest int, err error) {
	b := bufio.NewReaderSize(r, maxLine)
	for n := uint64(1); ; n++ {
		line, err := b.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return len(line), nil
		case errors.Is(err, bufio.ErrBufferFull):
			return 0, fmt.Errorf("line %d is longer than %d bytes: it is no entry", n, maxLine)
		case err != nil:
			return 0, err
		}
		e, err := parse(line)
		if err != nil {
			return 0, fmt.Errorf("line %d is no entry: %w", n, err)
		}
		if err := f(e); err != nil {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
	}
}

// parse returns the entry in a line with its end.
func parse(line []byte) (e Entry, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return e, err
	}
	if written, err := json.Marshal(e); err != nil || !bytes.Equal(append(written, '\n'), line) {
		return e, errors.New("Add writes it in another way")
	}
	return e, nil
}
