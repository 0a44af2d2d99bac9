package filetransfer

import (
	"context"
	"fmt"
	"iter"

	"github.com/anser-rpc/anser"
)

// List returns the entries of the folder dir of the server, "" for the root, in the order of the
// server's file system. They arrive in pages while the loop runs, so folders of any size need
// little memory. Unfinished files are left out. An error comes once, as the last element. Entries
// that are added or removed meanwhile may or may not be included.
func List(ctx context.Context, c *anser.Client, dir string, opts ...Option) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		fail := func(err error) { yield(Info{}, fmt.Errorf("filetransfer: list %q: %w", dir, err)) }
		o, err := newOptions(opts)
		if err != nil {
			yield(Info{}, err)
			return
		}
		st, err := anser.OpenWith[pathRequest, page](ctx, c, methodOf(o.name, OpList), &pathRequest{dir}, anser.StreamSides(true, true))
		if err != nil {
			fail(err)
			return
		}
		defer st.Close()
		for p, err := range st.All() {
			if err != nil {
				fail(err)
				return
			}
			for i := range p.Entries {
				if !yield(p.Entries[i].info(), nil) {
					return
				}
			}
		}
	}
}

// Stat returns the size and time of a file or folder of the server. A symbolic link is followed
// inside the served folder.
func Stat(ctx context.Context, c *anser.Client, path string, opts ...Option) (Info, error) {
	o, err := newOptions(opts)
	if err != nil {
		return Info{}, err
	}
	e, err := anser.Call[entry](ctx, c, methodOf(o.name, OpStat), &pathRequest{path}, anser.Idempotent())
	if err != nil {
		return Info{}, fmt.Errorf("filetransfer: look at %q: %w", path, err)
	}
	return e.info(), nil
}

// Remove removes a file or an empty folder of the server, if the server has [AllowRemove]. It is
// not retried if it may have been executed: the error then has the outcome Unknown.
func Remove(ctx context.Context, c *anser.Client, path string, opts ...Option) error {
	o, err := newOptions(opts)
	if err != nil {
		return err
	}
	if _, err := anser.Call[anser.None](ctx, c, methodOf(o.name, OpRemove), &pathRequest{path}); err != nil {
		return fmt.Errorf("filetransfer: remove %q: %w", path, err)
	}
	return nil
}
