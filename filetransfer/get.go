package filetransfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anser-rpc/anser"
)

// Get fetches the file at the path remote below the folder of the server to the path local. It
// appears there when it is complete, its checksum matches and it is synced to the disk; until then
// a previous file stays in place.
//
// Get returns when that is done, on a permanent error, or when ctx ends. While ctx lives it
// continues after a broken connection; see [Patience]. A file that changes on the server meanwhile
// is an error with the code FailedPrecondition.
func Get(ctx context.Context, c *anser.Client, remote, local string, opts ...Option) (Result, error) {
	g, err := newGetting(c, remote, opts)
	if err != nil {
		return Result{}, err
	}
	r, err := g.fetchTo(ctx, local)
	if err != nil {
		return Result{}, fmt.Errorf("filetransfer: get %q: %w", remote, err)
	}
	return r, nil
}

// GetTo fetches the file to w, from its beginning to its end. The written data is verified only
// when GetTo returns nil: the checksum comes last. [Resume], [Parents] and [NoReplace] have no
// effect.
func GetTo(ctx context.Context, c *anser.Client, remote string, w io.Writer, opts ...Option) (Result, error) {
	g, err := newGetting(c, remote, opts)
	if err != nil {
		return Result{}, err
	}
	g.dst, g.sum = w, g.checksum.new()
	g.restart = func() error {
		return anser.Errorf(anser.FailedPrecondition, "the file on the server has changed: the data already written cannot be taken back")
	}
	r, err := g.run(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("filetransfer: get %q: %w", remote, err)
	}
	return r, nil
}

// getting is a Get on the client.
type getting struct {
	options
	persistence
	meter
	client  *anser.Client
	head    getHead
	dst     io.Writer
	restart func() error // discards the written data
	sum     hash.Hash    // of the written data
	have    int64        // number of written bytes
	result  Result
}

func newGetting(c *anser.Client, remote string, opts []Option) (*getting, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, err
	}
	if err := checkText(remote); err != nil {
		return nil, fmt.Errorf("filetransfer: get %q: %w", remote, err)
	}
	return &getting{
		options: o, persistence: persistence{patience: o.patience}, meter: meter{tell: o.progress}, client: c,
		head:   getHead{Path: remote, Checksum: o.checksum.String()},
		result: Result{Path: remote, Checksum: o.checksum},
	}, nil
}

// fetchTo fetches to a file next to the target and then renames it.
func (g *getting) fetchTo(ctx context.Context, local string) (r Result, err error) {
	if err := g.checkLocal(local); err != nil {
		return r, err
	}
	f, err := g.openPart(local)
	if err != nil {
		return r, err
	}
	defer func() {
		f.Close()
		if err != nil && (!g.resume || errors.Is(err, anser.DataLoss)) {
			os.Remove(f.Name())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return r, err
	}
	g.sum, g.have = g.checksum.new(), info.Size()
	if err := hashPrefix(g.sum, f, g.have); err != nil {
		return r, err
	}
	if _, err := f.Seek(g.have, io.SeekStart); err != nil {
		return r, err
	}
	g.dst = f
	g.restart = func() error {
		if err := f.Truncate(0); err != nil {
			return err
		}
		_, err := f.Seek(0, io.SeekStart)
		return err
	}
	if r, err = g.run(ctx); err != nil {
		return r, err
	}
	if err := f.Sync(); err != nil {
		return r, err
	}
	if err := f.Close(); err != nil { // Windows cannot rename an open file
		return r, err
	}
	return r, g.place(f.Name(), local)
}

func (g *getting) checkLocal(local string) error {
	info, err := os.Lstat(local)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%q is a folder: name the file in it", local)
	case g.noReplace:
		return fmt.Errorf("%q exists already, and must not be replaced: %w", local, anser.AlreadyExists)
	}
	if g.parents {
		return os.MkdirAll(filepath.Dir(local), 0o777)
	}
	return nil
}

func (g *getting) openPart(local string) (*os.File, error) {
	if !g.resume {
		// The permissions result from the umask, unlike those of a temporary file.
		return os.OpenFile(filepath.Join(filepath.Dir(local), partPrefix+idOf("get", newID())+partSuffix), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	}
	part := filepath.Join(filepath.Dir(local), partPrefix+idOf("get", g.head.Path, filepath.Base(local))+partSuffix)
	if info, err := os.Lstat(part); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q, where the unfinished file belongs, is not a file: remove it", part)
	}
	return os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o666)
}

func (g *getting) place(part, local string) error {
	if !g.noReplace {
		return os.Rename(part, local)
	}
	// A link, unlike a rename, fails if the name exists.
	if err := os.Link(part, local); errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%q was created meanwhile, and must not be replaced: %w", local, anser.AlreadyExists)
	} else if err != nil {
		return err
	}
	return os.Remove(part)
}

func (g *getting) run(ctx context.Context) (Result, error) {
	for {
		err := g.attempt(ctx)
		if err == nil {
			g.finish(g.result.Size)
			g.result.Breaks = g.breaks
			return g.result, nil
		}
		if err := g.again(ctx, err); err != nil {
			return Result{}, err
		}
	}
}

// attempt fetches the missing data over one stream.
func (g *getting) attempt(ctx context.Context) error {
	g.head.Have, g.head.Sum = g.have, sumOf(g.sum)
	first, err := json.Marshal(&g.head)
	if err != nil {
		return err
	}
	st, err := anser.OpenWith[[]byte, []byte](ctx, g.client, methodOf(g.name, OpGet), &first, anser.StreamSides(true, true))
	if err != nil {
		return err
	}
	defer st.Close()
	st.GrowWindow(widening)
	var state getState
	if err := recvJSON(st, &state); err != nil {
		return missing(err)
	}
	if err := g.agree(&state); err != nil {
		return err
	}
	if err := g.receive(ctx, st, state.Size); err != nil {
		return missing(err)
	}
	var end ending
	if err := recvJSON(st, &end); err != nil {
		return missing(err)
	}
	if sum := sumOf(g.sum); sum != end.Sum {
		return anser.Errorf(anser.DataLoss, "the %s of what arrived is %s and should be %s: fetch it again", g.checksum, sum, end.Sum)
	}
	g.result.Size, g.result.Sum = state.Size, end.Sum
	return nil
}

// agree applies the server's description of the file.
func (g *getting) agree(state *getState) error {
	switch {
	case state.Size < 0 || state.From != 0 && state.From != g.have || g.have > state.Size && state.From != 0:
		return anser.Errorf(anser.Internal, "the server wants to send a file of %d bytes from offset %d, and the client has %d bytes", state.Size, state.From, g.have)
	case state.From != g.have:
		if err := g.restart(); err != nil {
			return err
		}
		g.sum.Reset()
		g.have = 0
	}
	if !g.begun {
		g.result.Resumed = g.have
	}
	g.begun = true
	g.head.Tag = state.Tag
	if !g.anyStore {
		g.head.Store = state.Store
	}
	g.start(g.have, state.Size)
	return nil
}

func (g *getting) receive(ctx context.Context, st *stream, size int64) error {
	buf := takeBuffer()
	defer giveBuffer(buf)
	for g.have < size {
		n, err := fill(st, *buf, size-g.have)
		if n > 0 {
			written, failed := g.dst.Write((*buf)[:n])
			g.sum.Write((*buf)[:written])
			g.have += int64(written)
			if failed != nil {
				return failed
			}
			g.add(n)
			g.moved()
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}
