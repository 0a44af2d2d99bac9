package filetransfer

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/filelock"
)

// upload is a Put on the server.
type upload struct {
	*Service
	ctx  context.Context // of the handler
	st   *stream
	head putHead
	sums Checksum
	part string
	file *os.File
	hash hash.Hash // of the data in the file
	have int64     // number of bytes in the file
}

func (v *Service) put(ctx context.Context, st *stream) error {
	u := &upload{Service: v, ctx: ctx, st: st}
	if err := u.open(); err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		return err
	}
	defer v.running.Add(-1)
	v.cleanFolder(path.Dir(u.head.Path))
	mine, err := v.claim(ctx, u.part)
	if err != nil {
		return err
	}
	// The work has a goroutine of its own: Recv ends only when the handler returns, so this one
	// returns when the claim is lost. The next owner waits for the end of the other one.
	done := make(chan upshot, 1)
	go func() {
		o := upshot{err: anser.Errorf(anser.Internal, "put %q: the function given to OnComplete ended its goroutine", u.head.Path)}
		defer func() {
			if o.panicked = recover(); o.panicked != nil {
				o.stack = debug.Stack()
			}
			v.release(u.part, mine)
			done <- o
		}()
		o.err = u.run()
	}()
	select {
	case o := <-done:
		if o.panicked != nil {
			panic(fmt.Sprintf("%v\n%s", o.panicked, o.stack)) // the server logs it and fails this stream
		}
		return o.err
	case <-mine.lost:
		return anser.Errorf(anser.Aborted, "put %q: the same transfer was begun again, which ends this one", u.head.Path)
	}
}

// upshot is the result of an upload's goroutine.
type upshot struct {
	err      error
	panicked any
	stack    []byte
}

// open receives the head, and checks everything that can be checked without the file.
func (u *upload) open() error {
	h := &u.head
	if err := recvJSON(u.st, h); err != nil {
		return refuseEmpty(err)
	}
	if err := checkPath(h.Path); err != nil {
		return err
	}
	if err := checkID(h.ID); err != nil {
		return err
	}
	var err error
	if u.sums, err = parseChecksum(h.Checksum); err != nil {
		return err
	}
	switch {
	case h.Size < 0:
		return anser.Errorf(anser.InvalidArgument, "the size %d of %q is negative", h.Size, h.Path)
	case u.maxSize > 0 && h.Size > u.maxSize:
		return anser.Errorf(anser.ResourceExhausted, "%q of %d bytes is over the limit of %d: raise it with filetransfer.MaxSize, or send less",
			h.Path, h.Size, u.maxSize)
	}
	if err := u.admit(u.ctx, OpPut, h.Path); err != nil {
		return err
	}
	u.part = partOf(h.Path, h.ID)
	return u.sameStore(h.Store)
}

// run receives the file. When it returns, the unfinished file is closed; it exists only if the
// transfer may be continued.
func (u *upload) run() (err error) {
	done, err := u.prepare()
	switch {
	case err != nil:
		return err
	case done:
		return sendJSON(u.st, putState{Store: u.store, Have: u.head.Size, Sum: u.head.Sum, Done: true})
	}
	defer func() { u.letGo(err == nil || u.resumable(err)) }()
	if err := u.resume(); err != nil {
		return err
	}
	if err := u.receive(); err != nil {
		return err
	}
	if err := u.commit(); err != nil {
		return err
	}
	r := Result{Path: u.head.Path, Size: u.head.Size, Checksum: u.sums, Sum: sumOf(u.hash)}
	if u.complete != nil {
		u.complete(u.ctx, r)
	}
	return sendJSON(u.st, ending{r.Sum})
}

// resumable reports whether the unfinished file is useful after err. The client continues by
// itself after its connection was lost; after other errors only if it said so, and never if the
// bytes are wrong.
func (u *upload) resumable(err error) bool {
	code := anser.CodeOf(err)
	return code == anser.Unavailable || u.head.Keep && code != anser.DataLoss && code != anser.AlreadyExists
}

// letGo closes the unfinished file, and removes it unless the transfer may be continued. It holds
// the lock until then, because the next owner may rename the file to its target.
func (u *upload) letGo(keep bool) {
	if !keep && filelock.Works {
		u.root.Remove(u.part)
	}
	u.file.Close()
	if !keep && !filelock.Works { // Windows cannot remove an open file
		u.root.Remove(u.part)
	}
}

// prepare opens the unfinished file and locks it: servers that share their files may receive the
// transfer one after the other, and the previous one may not know yet that its client has moved
// on. prepare reports true if there is nothing to do, because the file was completed but the
// client does not know.
func (u *upload) prepare() (done bool, err error) {
	for {
		if done, err := u.look(); done || err != nil {
			return done, err
		}
		if err := u.openPart(); err != nil {
			return false, err
		}
		switch ours, err := u.lock(); {
		case err != nil:
			u.file.Close()
			return false, err
		case !ours:
			u.file.Close()
			continue // the previous server has completed or removed it
		}
		// It may have done so before this server created its own.
		if done, err := u.look(); done || err != nil {
			u.letGo(!done && u.resumable(err))
			return done, err
		}
		return false, nil
	}
}

// look reports whether the file is complete, or returns why it cannot be put in place.
func (u *upload) look() (done bool, err error) {
	err = u.checkTarget()
	if u.completed() { // in this order: an existing target may be the result of this transfer
		return true, nil
	}
	return false, err
}

// lock waits until no other process or service writes the unfinished file. It reports false if the
// file is no longer at its path.
func (u *upload) lock() (ours bool, err error) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for began, d := time.Now(), lockPause; ; d = min(2*d, 10*lockPause) {
		select {
		case <-u.ctx.Done():
			return false, context.Cause(u.ctx)
		case <-pause.C:
		}
		switch got, err := filelock.Try(u.file); {
		case err != nil:
			return false, explain(err, "lock", u.part)
		case got:
			return u.inPlace()
		case time.Since(began) > lockPatience:
			return false, anser.Errorf(anser.Unavailable, "put %q: another server that shares the files still receives it", u.head.Path).
				WithRetryAfter(busyPause)
		}
		pause.Reset(d)
	}
}

const (
	lockPause = 10 * time.Millisecond
	// lockPatience is longer than a server takes to detect a dead connection.
	lockPatience = 30 * time.Second
)

func (u *upload) inPlace() (bool, error) {
	mine, err := u.file.Stat()
	if err != nil {
		return false, explain(err, "put", u.head.Path)
	}
	there, err := u.root.Lstat(u.part)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), explain(err, "put", u.head.Path)
}

// openPart opens the unfinished file, or creates it.
func (u *upload) openPart() (err error) {
	h := &u.head
	dir := path.Dir(h.Path)
	if h.Parents && dir != "." {
		if err := u.root.MkdirAll(dir, 0o777); err != nil {
			return explain(err, "make the folder", dir)
		}
	}
	if info, err := u.root.Lstat(u.part); err == nil && !info.Mode().IsRegular() {
		return anser.Errorf(anser.FailedPrecondition, "%q, where the unfinished file belongs, is not a file: remove it", u.part)
	}
	if u.file, err = u.root.OpenFile(u.part, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return anser.Errorf(anser.NotFound, "put %q: there is no folder %q: make it, or send with filetransfer.Parents", h.Path, dir)
		}
		return explain(err, "put", h.Path)
	}
	return nil
}

// completed reports whether an earlier attempt of the transfer put the file in place, and then
// lost its connection. Only a client that has sent everything knows the sum.
func (u *upload) completed() bool {
	h := &u.head
	if h.Sum == "" {
		return false
	}
	f, info, err := u.openFile(h.Path)
	if err != nil {
		return false
	}
	defer f.Close()
	sum := u.sums.new()
	return info.Size() == h.Size && hashPrefix(sum, f, h.Size) == nil && sumOf(sum) == h.Sum
}

func (u *upload) checkTarget() error {
	info, err := u.root.Lstat(u.head.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil // its folder may also be missing
	case err != nil:
		return explain(err, "put", u.head.Path)
	case info.IsDir():
		return anser.Errorf(anser.FailedPrecondition, "put %q: there is a folder of that name", u.head.Path)
	case u.head.New:
		return u.exists()
	}
	return nil
}

func (u *upload) exists() error {
	return anser.Errorf(anser.AlreadyExists, "put %q: it exists already, and must not be replaced", u.head.Path)
}

// resume agrees with the client on the offset at which the bytes begin.
func (u *upload) resume() error {
	info, err := u.file.Stat()
	if err != nil {
		return explain(err, "put", u.head.Path)
	}
	if u.have = info.Size(); u.have > u.head.Size {
		u.have = 0 // of another file
	}
	u.hash = u.sums.new()
	if err := hashPrefix(u.hash, u.file, u.have); err != nil {
		return explain(err, "read what is there of", u.head.Path)
	}
	if err := sendJSON(u.st, putState{Store: u.store, Have: u.have, Sum: sumOf(u.hash)}); err != nil {
		return err
	}
	var from putFrom
	if err := recvJSON(u.st, &from); err != nil {
		return refuseEmpty(err)
	}
	switch from.From {
	case u.have:
	case 0:
		u.have = 0
		u.hash.Reset()
	default:
		return anser.Errorf(anser.InvalidArgument, "the bytes of %q cannot begin at %d: the server has %d", u.head.Path, from.From, u.have)
	}
	return explain(u.file.Truncate(u.have), "put", u.head.Path)
}

// receive writes the received bytes. After a failure the data received before is also written: the
// client need not send it again.
func (u *upload) receive() error {
	u.st.GrowWindow(widening)
	buf := takeBuffer()
	defer giveBuffer(buf)
	for u.have < u.head.Size {
		n, err := fill(u.st, *buf, u.head.Size-u.have)
		if n > 0 {
			if failed := u.write((*buf)[:n]); failed != nil {
				return failed
			}
		}
		if err != nil {
			return unfinished(err)
		}
	}
	return nil
}

func (u *upload) write(b []byte) error {
	n, err := u.file.WriteAt(b, u.have)
	u.hash.Write(b[:n])
	u.have += int64(n)
	return explain(err, "write", u.head.Path)
}

// commit compares the checksums and puts the file in place.
func (u *upload) commit() error {
	var end ending
	if err := recvJSON(u.st, &end); err != nil {
		return unfinished(err)
	}
	if sum := sumOf(u.hash); sum != end.Sum {
		return anser.Errorf(anser.DataLoss, "put %q: the %s of what arrived is %s and should be %s: send it again", u.head.Path, u.sums, sum, end.Sum)
	}
	if err := u.file.Sync(); err != nil {
		return explain(err, "write", u.head.Path)
	}
	if !filelock.Works {
		if err := u.file.Close(); err != nil { // Windows cannot rename an open file
			return explain(err, "write", u.head.Path)
		}
	}
	if err := u.place(); err != nil {
		return err
	}
	return explain(u.syncFolder(), "write", u.head.Path)
}

func (u *upload) place() error {
	if !u.head.New {
		return explain(u.root.Rename(u.part, u.head.Path), "put", u.head.Path)
	}
	// A link, unlike a rename, fails if the name exists.
	if err := u.root.Link(u.part, u.head.Path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return u.exists()
		}
		return explain(err, "put without replacing", u.head.Path)
	}
	return explain(u.root.Remove(u.part), "put", u.head.Path)
}

// syncFolder syncs the folder, so that the name is as durable as the bytes. Windows does not
// support that.
func (u *upload) syncFolder() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := u.root.Open(path.Dir(u.head.Path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// fill receives messages into buf while another one fits, and until left bytes were received. Data
// received before an error counts.
func fill(st *stream, buf []byte, left int64) (n int, err error) {
	for n+piece <= len(buf) && int64(n) < left {
		room := buf[n:n:min(n+piece, len(buf))]
		msg := room
		if err := st.RecvInto(&msg); err != nil {
			return n, err
		}
		if err := checkPiece(len(msg), left-int64(n)); err != nil {
			return n, err
		}
		n += len(msg) // it is in buf: there was enough space
	}
	return n, nil
}

func checkPiece(size int, left int64) error {
	switch {
	case size == 0:
		return anser.Errorf(anser.InvalidArgument, "an empty message arrived instead of bytes of the file")
	case size > piece:
		return anser.Errorf(anser.InvalidArgument, "a message has %d bytes of the file: at most %d are allowed", size, piece)
	case int64(size) > left:
		return anser.Errorf(anser.InvalidArgument, "a message has %d bytes of the file, but only %d are left", size, left)
	}
	return nil
}

// unfinished replaces the regular end of a stream by an error if the file is incomplete.
func unfinished(err error) error {
	if err == io.EOF {
		return anser.Errorf(anser.InvalidArgument, "the stream ended before the file did")
	}
	return err
}

// refuseEmpty is unfinished for a stream that ends before its first message.
func refuseEmpty(err error) error {
	if err == io.EOF {
		return anser.Errorf(anser.InvalidArgument, "the stream ended before its first message")
	}
	return err
}

func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}
