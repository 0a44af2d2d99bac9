package filetransfer

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"

	"github.com/anser-rpc/anser"
)

// errChanged is the error of a transfer whose source changes.
var errChanged = errors.New("the file was changed while it was sent: send it again when it is no longer written to")

// Put sends the file local to the path remote below the folder of the server. The file appears
// there when it is complete, its checksum matches and it is synced to the disk; until then a
// previous file stays in place. Of two concurrent transfers to the same path, the one that
// completes last wins, as a whole.
//
// Put returns when the server has confirmed that, on a permanent error, or when ctx ends. While
// ctx lives it continues after a broken connection; see [Patience]. If the outcome is unknown, the
// file may or may not have arrived: sending it again is safe.
func Put(ctx context.Context, c *anser.Client, local, remote string, opts ...Option) (Result, error) {
	f, err := os.Open(local)
	if err != nil {
		return Result{}, fmt.Errorf("filetransfer: put %q: %w", local, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return Result{}, fmt.Errorf("filetransfer: put %q: %w", local, err)
	case !info.Mode().IsRegular():
		return Result{}, fmt.Errorf("filetransfer: put %q: it is not a file: name one", local)
	}
	p, err := newPutting(c, f, info.Size(), remote, opts)
	if err != nil {
		return Result{}, err
	}
	tag := tagOf(info)
	p.unchanged = func() error {
		if now, err := f.Stat(); err != nil || tagOf(now) != tag {
			return errors.Join(errChanged, err)
		}
		return nil
	}
	if p.resume {
		where, err := filepath.Abs(local)
		if err != nil {
			where = local
		}
		host, _ := os.Hostname()
		p.head.ID = idOf("put", host, where, tag)
	}
	return p.run(ctx)
}

// PutFrom is [Put] for size bytes of src. With [Resume] it continues an earlier transfer of that
// size to the same path. src may be read at any position several times, and must return the same
// bytes each time.
func PutFrom(ctx context.Context, c *anser.Client, src io.ReaderAt, size int64, remote string, opts ...Option) (Result, error) {
	p, err := newPutting(c, src, size, remote, opts)
	if err != nil {
		return Result{}, err
	}
	if p.resume {
		p.head.ID = idOf("put", fmt.Sprint(size))
	}
	return p.run(ctx)
}

// newID returns the ID of a transfer that no other process will continue.
func newID() string {
	id := make([]byte, idLength/2)
	rand.Read(id)
	return hex.EncodeToString(id)
}

// idOf returns the ID of a transfer that another process can continue.
func idOf(parts ...string) string {
	b, _ := json.Marshal(parts) // strings can always be encoded
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:idLength/2])
}

// putting is a Put on the client.
type putting struct {
	options
	persistence
	meter
	client    *anser.Client
	src       io.ReaderAt
	unchanged func() error
	head      putHead
	result    Result
}

func newPutting(c *anser.Client, src io.ReaderAt, size int64, remote string, opts []Option) (*putting, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	if err := checkText(remote); err != nil {
		return nil, fmt.Errorf("filetransfer: put %q: %w", remote, err)
	}
	if size < 0 {
		return nil, fmt.Errorf("filetransfer: put %q: the size %d is negative", remote, size)
	}
	return &putting{
		options: o, persistence: persistence{patience: o.patience}, meter: meter{tell: o.progress}, client: c, src: src,
		unchanged: func() error { return nil },
		head: putHead{
			Path: remote, ID: newID(), Size: size, Checksum: o.checksum.String(),
			Parents: o.parents, New: o.noReplace, Keep: o.resume,
		},
		result: Result{Path: remote, Size: size, Checksum: o.checksum},
	}, nil
}

func (p *putting) run(ctx context.Context) (Result, error) {
	for {
		err := p.attempt(ctx)
		if err == nil {
			p.finish(p.head.Size)
			p.result.Breaks = p.breaks
			return p.result, nil
		}
		if err := p.again(ctx, err); err != nil {
			return Result{}, fmt.Errorf("filetransfer: put %q: %w", p.head.Path, err)
		}
	}
}

// attempt sends the missing data over one stream.
func (p *putting) attempt(ctx context.Context) error {
	first, err := json.Marshal(&p.head)
	if err != nil {
		return err
	}
	st, err := anser.OpenWith[[]byte, []byte](ctx, p.client, methodOf(p.name, OpPut), &first, anser.StreamSides(true, true))
	if err != nil {
		return err
	}
	defer st.Close()
	var state putState
	if err := recvJSON(st, &state); err != nil {
		return missing(err)
	}
	if !p.begun {
		p.result.Resumed = state.Have
	}
	p.begun = true
	if !p.anyStore {
		p.head.Store = state.Store
	}
	if state.Done {
		p.result.Sum = state.Sum
		return nil
	}
	sum, from, err := p.agree(&state)
	if err != nil {
		return err
	}
	return p.send(ctx, st, sum, from)
}

// agree compares the server's data with the source. It returns the checksum of the data that need
// not be sent.
func (p *putting) agree(state *putState) (hash.Hash, int64, error) {
	sum := p.checksum.new()
	if state.Have < 0 || state.Have > p.head.Size {
		return nil, 0, anser.Errorf(anser.Internal, "the server has %d bytes of a file of %d", state.Have, p.head.Size)
	}
	if err := hashPrefix(sum, p.src, state.Have); err != nil {
		return nil, 0, sourceFailed(err)
	}
	if sumOf(sum) == state.Sum {
		return sum, state.Have, nil
	}
	sum.Reset()
	if p.breaks == 0 {
		p.result.Resumed = 0
	}
	return sum, 0, nil
}

func sourceFailed(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.Join(errChanged, err)
	}
	return err
}

func (p *putting) send(ctx context.Context, st *stream, sum hash.Hash, from int64) error {
	if err := sendJSON(st, putFrom{from}); err != nil {
		return explainSend(st, err)
	}
	p.start(from, p.head.Size)
	err := sendBytes(ctx, st, p.src, from, p.head.Size, sum, func(n int) {
		p.add(n)
		p.moved()
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.ErrUnexpectedEOF):
		return sourceFailed(err)
	case err != nil:
		return explainSend(st, err)
	}
	if err := p.unchanged(); err != nil {
		return err
	}
	whole := sumOf(sum)
	// From here on the server may have completed the file although its answer is lost.
	p.head.Sum = whole
	if err := sendJSON(st, ending{whole}); err != nil {
		return explainSend(st, err)
	}
	var end ending
	if err := recvJSON(st, &end); err != nil {
		return missing(err)
	}
	if end.Sum != whole {
		return anser.Errorf(anser.DataLoss, "the server's checksum is %s and ours is %s", end.Sum, whole)
	}
	p.result.Sum = whole
	return nil
}

// explainSend returns why a stream ended on which sending failed.
func explainSend(st *stream, err error) error {
	if err != io.EOF {
		return err
	}
	for {
		if _, err := st.Recv(); err != nil {
			return missing(err)
		}
	}
}

// missing replaces the regular end of an incomplete stream by an error.
func missing(err error) error {
	if err == io.EOF {
		return anser.Errorf(anser.Internal, "the server ended the transfer before it was complete")
	}
	return err
}
