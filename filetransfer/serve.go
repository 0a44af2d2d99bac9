package filetransfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
)

const (
	defaultTransfers = 100
	defaultKeep      = 24 * time.Hour
	// busyPause is when a client should retry after it was rejected because of too many transfers.
	busyPause = 200 * time.Millisecond
)

// Service serves the files of one folder. All methods are safe for concurrent use.
type Service struct {
	root *os.Root

	name                string
	store               string
	readOnly, writeOnly bool
	removes             bool
	maxSize             int64
	maxTransfers        int64
	keep                time.Duration
	authorize           func(ctx context.Context, op Op, path string) error
	complete            func(ctx context.Context, r Result)
	err                 error

	running atomic.Int64 // transfers and listings

	mu      sync.Mutex           // guards the fields below
	puts    map[string]*claim    // by the path of the unfinished file
	cleaned map[string]time.Time // when a folder was last searched for unfinished files
}

// Serve serves the files below root on s, with the methods "File.Put", "File.Get", "File.Stat",
// "File.List" and "File.Remove": all but the last one by default. It fails for invalid options,
// and if s already has one of the methods. root must stay open as long as s serves; the caller
// closes it.
func Serve(s *anser.Server, root *os.Root, opts ...ServeOption) (*Service, error) {
	v := &Service{
		root: root, name: defaultName, maxTransfers: defaultTransfers, keep: defaultKeep,
		puts: make(map[string]*claim), cleaned: make(map[string]time.Time),
	}
	if root == nil {
		v.fault("there is no root: give Serve what os.OpenRoot returned")
	}
	for _, opt := range opts {
		if opt == nil {
			v.fault("an option is nil")
			continue
		}
		opt.applyServe(v)
	}
	if v.readOnly && (v.writeOnly || v.removes) {
		v.fault("ReadOnly cannot be combined with WriteOnly or AllowRemove")
	}
	if v.err != nil {
		return nil, v.err
	}
	if v.store == "" {
		v.store = storeOf(root)
	}
	return v, v.register(s)
}

func (v *Service) fault(format string, args ...any) {
	v.err = errors.Join(v.err, fmt.Errorf("filetransfer: "+format, args...))
}

// storeOf returns the default name of a store: the same for the same folder after a restart, and
// most likely different on another host. It does not reveal the names.
func storeOf(root *os.Root) string {
	host, _ := os.Hostname()
	folder, err := filepath.Abs(root.Name())
	if err != nil {
		folder = root.Name()
	}
	sum := sha256.Sum256([]byte(host + "\x00" + folder))
	return hex.EncodeToString(sum[:8])
}

func (v *Service) register(s *anser.Server) error {
	var err error
	if !v.readOnly {
		err = errors.Join(err, anser.HandleStream(s, methodOf(v.name, OpPut), v.put))
	}
	if !v.writeOnly {
		err = errors.Join(err,
			anser.HandleStream(s, methodOf(v.name, OpGet), v.get),
			anser.HandleStream(s, methodOf(v.name, OpList), v.list),
			anser.Handle(s, methodOf(v.name, OpStat), v.stat, anser.Concurrent(), anser.Idempotent()))
	}
	if v.removes {
		err = errors.Join(err, anser.Handle(s, methodOf(v.name, OpRemove), v.remove, anser.Concurrent()))
	}
	return err
}

func methodOf(service string, op Op) string { return service + "." + op.String() }

// admit authorizes the operation. It is called after the path was checked.
func (v *Service) admit(ctx context.Context, op Op, path string) error {
	if v.authorize == nil {
		return nil
	}
	err := v.authorize(ctx, op, path)
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*anser.Error](err); ok {
		return e
	}
	return anser.Errorf(anser.PermissionDenied, "%s %q is not allowed: %w", op, path, err)
}

// begin counts a transfer, or rejects it. It ends with v.running.Add(-1).
func (v *Service) begin() error {
	if v.running.Add(1) <= v.maxTransfers {
		return nil
	}
	v.running.Add(-1)
	return anser.Errorf(anser.ResourceExhausted, "%d transfers are running, which is the limit: raise it with filetransfer.MaxTransfers, or try again later",
		v.maxTransfers).WithRetryAfter(busyPause)
}

// sameStore rejects a transfer that began with other files.
func (v *Service) sameStore(store string) error {
	if store == "" || store == v.store {
		return nil
	}
	return anser.Errorf(anser.FailedPrecondition,
		"the transfer began with the store %q and this instance has %q: give instances with the same files the same filetransfer.Store, or the transfer filetransfer.AnyStore",
		store, v.store).WithRetryAfter(firstPause)
}

func (v *Service) stat(ctx context.Context, in *pathRequest) (*entry, error) {
	p, err := checkFolder(in.Path)
	if err != nil {
		return nil, err
	}
	if err := v.admit(ctx, OpStat, p); err != nil {
		return nil, err
	}
	info, err := v.root.Stat(p)
	if err != nil {
		return nil, explain(err, "look at", p)
	}
	e := entryOf(p, info)
	return &e, nil
}

func entryOf(p string, info fs.FileInfo) entry {
	e := entry{Path: p, Nanos: info.ModTime().UnixNano(), Dir: info.IsDir(), Other: !info.IsDir() && !info.Mode().IsRegular()}
	if info.Mode().IsRegular() {
		e.Size = info.Size()
	}
	return e
}

func (v *Service) remove(ctx context.Context, in *pathRequest) (*anser.None, error) {
	if err := checkPath(in.Path); err != nil {
		return nil, err
	}
	if err := v.admit(ctx, OpRemove, in.Path); err != nil {
		return nil, err
	}
	if err := v.root.Remove(in.Path); err != nil {
		return nil, explain(err, "remove", in.Path)
	}
	return new(anser.None), nil
}

// list sends the entries of a folder, page by page, in the order of the operating system: it needs
// the memory of one page.
func (v *Service) list(ctx context.Context, st *anser.Stream[page, pathRequest]) error {
	in, err := st.Recv()
	if err != nil {
		return refuseEmpty(err)
	}
	dir, err := checkFolder(in.Path)
	if err != nil {
		return err
	}
	if err := v.admit(ctx, OpList, dir); err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		return err
	}
	defer v.running.Add(-1)
	f, err := v.openFolder(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	for ctx.Err() == nil {
		list, err := f.ReadDir(pageSize)
		if len(list) == 0 {
			return explain(ended(err), "list", dir)
		}
		if err := st.Send(v.pageOf(dir, list)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (v *Service) openFolder(dir string) (*os.File, error) {
	info, err := v.root.Stat(dir)
	if err != nil {
		return nil, explain(err, "list", dir)
	}
	if !info.IsDir() {
		return nil, anser.Errorf(anser.FailedPrecondition, "list %q: it is not a folder", dir)
	}
	f, err := v.root.Open(dir)
	return f, explain(err, "list", dir)
}

// pageOf asks the root about each entry: fs.DirEntry.Info uses the name of the folder, which may
// lead elsewhere by now.
func (v *Service) pageOf(dir string, list []fs.DirEntry) *page {
	p := new(page)
	for _, d := range list {
		if isPart(d.Name()) {
			continue
		}
		name := path.Join(dir, d.Name())
		if info, err := v.root.Lstat(name); err == nil { // otherwise it was removed meanwhile
			p.Entries = append(p.Entries, entryOf(name, info))
		}
	}
	return p
}
