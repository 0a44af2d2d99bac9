// Package front is the demo's service that needs the two others: it calls them with its own
// clients, which find them through the registry.
package front

import (
	"context"
	"errors"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/posts"
)

// Service is the name under which instances are registered.
const Service = "front"

// Page returns the page of a type of posts.
const Page anser.Method[Args, Reply] = "Front.Page"

// Args selects the page.
type Args struct {
	PostType string `json:"posttype" msgpack:"posttype"`
}

// Reply is the page.
type Reply struct {
	Titles []string `json:"titles" msgpack:"titles"`
	Likes  int      `json:"likes" msgpack:"likes"` // of the first two posts
}

// Front makes pages. Create one with New.
type Front struct{ arith, posts *anser.Client }

// New returns a Front whose clients dial the given targets.
func New(arithTarget, postsTarget string, opts ...anser.DialOption) (*Front, error) {
	a, err := anser.Dial(arithTarget, opts...)
	if err != nil {
		return nil, err
	}
	p, err := anser.Dial(postsTarget, opts...)
	if err != nil {
		a.Close()
		return nil, err
	}
	return &Front{a, p}, nil
}

// Close closes the clients.
func (f *Front) Close() error { return errors.Join(f.arith.Close(), f.posts.Close()) }

// Page asks posts for the titles, and arith for the sum of the likes.
func (f *Front) Page(ctx context.Context, in *Args) (*Reply, error) {
	list, err := posts.Query.Call(ctx, f.posts, &posts.Args{PostType: in.PostType})
	if err != nil {
		return nil, err
	}
	out := new(Reply)
	for _, p := range list.Posts {
		out.Titles = append(out.Titles, p.Title)
	}
	if len(list.Posts) < 2 {
		return out, nil
	}
	sum, err := arith.Add.Call(ctx, f.arith, &arith.Args{A: list.Posts[0].LikeCount, B: list.Posts[1].LikeCount})
	if err != nil {
		return nil, err
	}
	out.Likes = sum.C
	return out, nil
}

// Register serves the method on s.
func (f *Front) Register(s *anser.Server) error {
	return s.RegisterName("Front", f, anser.Idempotent())
}
