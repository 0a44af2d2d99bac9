// Package ledger records what servers executed and what clients were told, and joins the two. A
// call that succeeded was executed exactly once, one that was not sent or was refused never, one
// whose outcome is unknown at most once, and nothing twice, unless it was declared idempotent.
package ledger

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// ID is the number of a call, which no other call has: a UUID of version 4.
type ID [16]byte

// NewID returns an ID that was not there before.
func NewID() (id ID) {
	binary.LittleEndian.PutUint64(id[:], rand.Uint64())
	binary.LittleEndian.PutUint64(id[8:], rand.Uint64())
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	return id
}

// String returns the usual form of a UUID.
func (id ID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Entry is what a call is about.
type Entry struct {
	ID      ID
	Account int64
	Amount  int64
}

const entryBytes = 16 + 8 + 8

func (e *Entry) append(b []byte) []byte {
	b = append(b, e.ID[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Account))
	return binary.LittleEndian.AppendUint64(b, uint64(e.Amount))
}

func (e *Entry) parse(b []byte) {
	copy(e.ID[:], b)
	e.Account = int64(binary.LittleEndian.Uint64(b[16:]))
	e.Amount = int64(binary.LittleEndian.Uint64(b[24:]))
}

// Execution is one run of a handler.
type Execution struct {
	Entry
	At     int64  // Unix time in nanoseconds
	Server string // name of the book; not part of the record
}

const executionBytes = entryBytes + 8

// Book is a file to which a server appends what it executes. Record is safe for concurrent use.
type Book struct{ file *os.File }

// extension is that of a book's file.
const extension = ".book"

// OpenBook opens the book of a server in the folder.
func OpenBook(dir, server string) (*Book, error) {
	f, err := os.OpenFile(filepath.Join(dir, server+extension), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &Book{f}, nil
}

// Record appends one execution with one system call, so that a kill of the process cannot undo or
// cut it.
func (b *Book) Record(e *Execution) error {
	var buf [executionBytes]byte
	_, err := b.file.Write(binary.LittleEndian.AppendUint64(e.Entry.append(buf[:0]), uint64(e.At)))
	return err
}

// Close closes the file.
func (b *Book) Close() error { return b.file.Close() }

// Executions returns what all books of the folder hold.
func Executions(dir string) (all []Execution, err error) {
	books, err := filepath.Glob(filepath.Join(dir, "*"+extension))
	if err != nil {
		return nil, err
	}
	for _, book := range books {
		server := strings.TrimSuffix(filepath.Base(book), extension)
		err := records(book, executionBytes, func(b []byte) {
			e := Execution{At: int64(binary.LittleEndian.Uint64(b[entryBytes:])), Server: server}
			e.parse(b)
			all = append(all, e)
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// records calls f with each record of a file.
func records(name string, size int, f func([]byte)) error {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if n := len(data) % size; n != 0 {
		return fmt.Errorf("%s ends in the middle of a record: %d bytes are left over", name, n)
	}
	for ; len(data) > 0; data = data[size:] {
		f(data[:size])
	}
	return nil
}

// Outcome is the outcome of a call from the client's view.
type Outcome uint8

// The outcomes, as package anser has them. OK is one more: there was a reply.
const (
	Unknown Outcome = iota
	NotSent
	Refused
	Executed // with an error of the handler
	OK
	outcomes
)

var outcomeNames = [...]string{Unknown: "unknown", NotSent: "not sent", Refused: "refused", Executed: "executed", OK: "ok"}

// String returns "ok", "not sent", "refused", "unknown" or "executed".
func (o Outcome) String() string {
	if o < outcomes {
		return outcomeNames[o]
	}
	return fmt.Sprintf("outcome %d", uint8(o))
}

// Call is a call as its client saw it. Times are Unix times in nanoseconds.
type Call struct {
	Entry
	Due, Began, Ended int64 // Due is when the call should begin
	Idempotent        bool  // it may be executed more than once
	Outcome           Outcome
	Code              uint8 // of the error
	Mixed             bool  // the reply was that to another call
}

const callBytes = entryBytes + 3*8 + 4

// WriteCalls writes calls to a file.
func WriteCalls(name string, calls []Call) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	var buf [callBytes]byte
	for i := range calls {
		c := &calls[i]
		b := c.Entry.append(buf[:0])
		for _, t := range []int64{c.Due, c.Began, c.Ended} {
			b = binary.LittleEndian.AppendUint64(b, uint64(t))
		}
		b = append(b, bit(c.Idempotent), byte(c.Outcome), c.Code, bit(c.Mixed))
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return w.Flush()
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// ReadCalls returns what WriteCalls wrote.
func ReadCalls(name string) (all []Call, err error) {
	err = records(name, callBytes, func(b []byte) {
		c := Call{Idempotent: b[56] != 0, Outcome: Outcome(b[57]), Code: b[58], Mixed: b[59] != 0}
		c.parse(b)
		for i, t := range []*int64{&c.Due, &c.Began, &c.Ended} {
			*t = int64(binary.LittleEndian.Uint64(b[entryBytes+8*i:]))
		}
		all = append(all, c)
	})
	return all, err
}
