package demo

import (
	"context"
	"errors"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/front"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/posts"
)

// One server has all three services, and front calls its own server.
func TestServices(t *testing.T) {
	s := anser.NewServer(anser.Intercept(sign("test-1")))
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	f, err := front.New(at, at)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(arith.Register(s), posts.Register(s), f.Register(s)); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c, err := anser.Dial(at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(c.Close(), f.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		<-served
	}()
	for _, service := range services {
		for n := range 6 {
			var trailer anser.Metadata
			if err := service.call(t.Context(), c, n, anser.Trailer(&trailer)); err != nil {
				t.Errorf("%s: call %d: %v", service.name, n, err)
			}
			if trailer[instanceKey] != "test-1" {
				t.Errorf("%s: answered by %q", service.name, trailer[instanceKey])
			}
		}
	}
	checkPosts(t, c)
}

func checkPosts(t *testing.T, c *anser.Client) {
	ctx := context.Background()
	list, err := posts.Query.Call(ctx, c, &posts.Args{PostType: "rpc"})
	if err != nil {
		t.Fatal(err)
	}
	p := list.Posts[0]
	if len(list.Posts) != 2 || p.PostID != "p5" || p.Title == "" || p.URL == "" || p.LikeCount == 0 || p.Timestamp.Year() != 2026 {
		t.Errorf("%+v", list.Posts)
	}
	if _, err = posts.Query.Call(ctx, c, &posts.Args{PostType: "cobol"}); !errors.Is(err, anser.NotFound) {
		t.Errorf("posts that are not there: %v", err)
	}
	if _, err = front.Page.Call(ctx, c, &front.Args{PostType: "cobol"}); !errors.Is(err, anser.NotFound) {
		t.Errorf("a page of posts that are not there: %v", err)
	}
}
