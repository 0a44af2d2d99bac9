// Package record keeps a sample of a server's calls in files: requests, replies, outcomes and
// times. Command "anser replay" sends them again, to one server or to two, and tells how the
// replies differ: a new version is compared with the old one on yesterday's traffic.
//
// A recording cannot disturb the calls. What a call costs is the JSON of its messages, if it is
// chosen; everything else happens on a goroutine of the recorder, behind a queue of bounded size.
// If that is full, because the disk is slow or full, calls are not recorded, and counted.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/mono"
)

// The defaults of Options.
const (
	DefaultShare      = 0.01
	DefaultPerSecond  = 1000
	DefaultMaxBytes   = 256 << 20
	DefaultMaxMessage = 1 << 20
)

// Bounds of what waits in memory, and of Options.
const (
	maxQueued      = 4096     // calls
	maxQueuedBytes = 16 << 20 // of their messages, and of those of calls that run
	maxMessages    = 1000     // of a stream
	leastBytes     = 1 << 20
	mostMessage    = 4 << 20
)

// Options say what is recorded.
type Options struct {
	// Dir is the folder of the files, which is made if it does not exist. It belongs to one
	// recorder at a time.
	Dir string
	// Share is the fraction of calls that are recorded, above 0 and up to 1; 0 means DefaultShare.
	Share float64
	// PerSecond bounds the calls that are recorded in a second; 0 means DefaultPerSecond.
	PerSecond int
	// Methods tells which methods are recorded, by their full names; nil means all. It is called
	// for each call of the server, concurrently, and must be fast.
	Methods func(method string) bool
	// MaxBytes bounds the size of all files together: the oldest one is removed when a new one is
	// begun. 0 means DefaultMaxBytes; the least is 1 MiB.
	MaxBytes int64
	// MaxMessage is the largest message, in bytes of JSON; a call with a larger one is not
	// recorded, and a stream up to that message. 0 means DefaultMaxMessage; the most is 4 MiB.
	MaxMessage int
	// Metadata are the keys of metadata that are recorded; nil means none. A key that looks secret
	// must be in Public too.
	Metadata []string
	// Decode returns the decoded message of a method whose messages stay encoded, as in a program
	// that forwards calls: a request, or with reply set a reply or a message of the server. nil
	// means that only the ones in JSON are recorded. It is called concurrently, on the goroutines
	// of the calls, and must not keep m.
	Decode func(method string, reply bool, m *codec.Encoded) (any, error)
	// Secret names further fields whose values are not recorded, and Public fields that are,
	// although their names look secret: see [Recorder].
	Secret, Public []string
	// Logger gets the troubles with the files, once each time that they begin and end; nil means
	// slog.Default().
	Logger *slog.Logger
}

// Recorder records calls of servers. Its methods are safe for concurrent use.
//
// Messages are recorded as JSON, whatever codec the call has. Before they are written, values that
// are secret are replaced by others of the same type of JSON: "redacted", "0", 0, false, [] or an
// object without secrets. These are the fields
//
//   - that the schema marks: with debug_redact in protobuf, or the tag `anser:"secret"` in Go;
//   - whose names contain password, passwd, passphrase, passcode, pwd, secret, token, bearer, jwt,
//     authorization, credential, apikey, accesskey, privatekey or cookie, in upper or lower case
//     and with or without "_", "-" and ".", unless they are in Options.Public;
//   - in Options.Secret, by name ("pin") or by the end of a path ("card.number").
//
// They are found in any message in a google.protobuf.Any, in Go's interfaces, in texts that are
// JSON themselves, and as {"name": "password", "value": "x"}. The contents of other texts and of
// bytes are recorded as they are.
//
// Of an error its code is recorded and its text is not: it may contain parts of the request. Calls
// whose messages have no JSON or are bytes (codec raw) are not recorded, as nothing could be
// replaced in them.
type Recorder struct {
	o       Options
	log     *slog.Logger
	hides   *hider
	json    *protobuf.JSON
	methods sync.Map // the schemas of the messages' types: see schemaOf
	began   mono.Time
	run     int64 // wall clock at began, in nanoseconds since 1970
	second  atomic.Int64
	left    atomic.Int64 // how many calls may still be recorded in this second
	pending atomic.Int64 // bytes of messages in memory
	queue   chan *entry
	closing chan struct{}
	closed  chan struct{} // closed when the goroutine has ended
	once    sync.Once
	files   *ring
	counts  counts
}

// counts are the counters of Stats.
type counts struct{ recorded, dropped, failed, tooLarge, unreadable, bytes atomic.Int64 }

// Stats are counters since the beginning.
type Stats struct {
	// Recorded are the calls in files, removed ones included.
	Recorded int64
	// Dropped are chosen calls for which the queue had no room.
	Dropped int64
	// Failed are chosen calls that could not be written.
	Failed int64
	// TooLarge are chosen calls with a message over the limit, Unreadable ones with a message that
	// has no JSON.
	TooLarge, Unreadable int64
	// Bytes is the size of what was written.
	Bytes int64
}

// Check returns why New would refuse the options, or nil. It does not look at the folder.
func (o Options) Check() error {
	switch {
	case o.Dir == "":
		return errors.New("no Dir: name the folder of the files")
	case !(o.Share >= 0 && o.Share <= 1):
		return fmt.Errorf("a Share of %v: use one above 0, up to 1", o.Share)
	case o.PerSecond < 0:
		return fmt.Errorf("a PerSecond of %d: use a number above 0", o.PerSecond)
	case o.MaxBytes != 0 && o.MaxBytes < leastBytes:
		return fmt.Errorf("a MaxBytes of %d: use %d or more", o.MaxBytes, leastBytes)
	case o.MaxMessage < 0 || o.MaxMessage > mostMessage:
		return fmt.Errorf("a MaxMessage of %d: use 1 to %d", o.MaxMessage, mostMessage)
	case slices.Contains(o.Metadata, ""):
		return errors.New("an empty key in Metadata: leave it out")
	}
	for _, name := range o.Secret {
		if slices.Contains(newPathEnd(name), "") {
			return fmt.Errorf("the name %q in Secret has an empty part: use names of fields, such as pin or card.number", name)
		}
	}
	for _, name := range o.Public {
		if plainName(name) == "" {
			return fmt.Errorf("the name %q in Public is empty: use names of fields, such as next_page_token", name)
		}
	}
	hides := newHider(o.Secret, o.Public)
	for _, key := range o.Metadata {
		if hides.hidesName(key) {
			return fmt.Errorf("the key %q of Metadata looks secret, and its values would be in the files: leave it out, or add it to Public if it is not", key)
		}
	}
	return nil
}

// New returns a recorder, which makes its first file with the first call. Close ends it.
func New(o Options) (*Recorder, error) {
	if err := o.Check(); err != nil {
		return nil, fmt.Errorf("record.New: %w", err)
	}
	o.Share = cmp.Or(o.Share, DefaultShare)
	o.PerSecond = cmp.Or(o.PerSecond, DefaultPerSecond)
	o.MaxBytes = cmp.Or(o.MaxBytes, DefaultMaxBytes)
	o.MaxMessage = cmp.Or(o.MaxMessage, DefaultMaxMessage)
	files, err := openRing(o.Dir, o.MaxBytes)
	if err != nil {
		return nil, err
	}
	return start(o, files), nil
}

// start starts the goroutine of a recorder, which ends with Close.
func start(o Options, files *ring) *Recorder {
	r := &Recorder{
		o: o, log: cmp.Or(o.Logger, slog.Default()), hides: newHider(o.Secret, o.Public), json: protobuf.NewJSON(),
		began: mono.Now(), run: time.Now().UnixNano(), files: files,
		queue: make(chan *entry, maxQueued), closing: make(chan struct{}), closed: make(chan struct{}),
	}
	r.hides.packed = r.packedSchema
	r.left.Store(int64(o.PerSecond))
	go r.write()
	return r
}

// Option makes a server offer its calls to the recorder. Several servers may share one.
func (r *Recorder) Option() anser.ServerOption {
	if !r.made() {
		return anser.Sampled(nil, nil) // the server returns the error
	}
	return anser.Sampled(r.choose, r.intercept)
}

// made reports whether the recorder comes from New.
func (r *Recorder) made() bool { return r != nil && r.closing != nil }

// Stats returns the counters.
func (r *Recorder) Stats() Stats {
	if !r.made() {
		return Stats{}
	}
	return Stats{
		Recorded: r.counts.recorded.Load(), Dropped: r.counts.dropped.Load(), Failed: r.counts.failed.Load(),
		TooLarge: r.counts.tooLarge.Load(), Unreadable: r.counts.unreadable.Load(), Bytes: r.counts.bytes.Load(),
	}
}

// Close writes what waits, and ends the recorder. Close it after the servers: calls that end later
// are not recorded. It blocks until the files are written, or ctx ends, whose error it returns
// then; the files end when the disk answers.
func (r *Recorder) Close(ctx context.Context) error {
	switch {
	case !r.made():
		return errors.New("record: the recorder was not made by record.New")
	case ctx == nil:
		return errors.New("record: the context of Close is nil")
	}
	r.once.Do(func() { close(r.closing) })
	select {
	case <-r.closed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the recording in %s is not written yet: %w", r.o.Dir, context.Cause(ctx))
	}
}

// choose reports whether a call of the method is recorded.
func (r *Recorder) choose(method string) bool {
	if r.o.Share < 1 && rand.Float64() >= r.o.Share {
		return false
	}
	if r.o.Methods != nil && !r.o.Methods(method) {
		return false
	}
	now := int64(mono.Since(r.began) / time.Second)
	if was := r.second.Load(); now != was && r.second.CompareAndSwap(was, now) {
		r.left.Store(int64(r.o.PerSecond))
	}
	return r.left.Add(-1) >= 0
}
