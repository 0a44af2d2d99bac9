package demo

import (
	"context"
	"fmt"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/front"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/posts"
	"github.com/anser-rpc/anser/route"
)

const instancesOfService = 3

// service is one of the three.
type service struct {
	name string
	// register adds the methods to a server, and returns a function that must be called after the
	// server is closed. The option measures the clients of the service.
	register func(s *anser.Server, registryURL string, measured anser.DialOption) (closer func() error, err error)
	// call makes the nth call of a caller and checks the reply.
	call func(ctx context.Context, c *anser.Client, n int, opts ...anser.CallOption) error
}

var services = []service{
	{arith.Service, registerArith, callArith},
	{posts.Service, registerPosts, callPosts},
	{front.Service, registerFront, callFront},
}

func serviceNamed(name string) (service, error) {
	for _, s := range services {
		if s.name == name {
			return s, nil
		}
	}
	return service{}, fmt.Errorf("the demo has no service %q", name)
}

func nothing() error { return nil }

func registerArith(s *anser.Server, _ string, _ anser.DialOption) (func() error, error) {
	return nothing, arith.Register(s)
}

func registerPosts(s *anser.Server, _ string, _ anser.DialOption) (func() error, error) {
	return nothing, posts.Register(s)
}

func registerFront(s *anser.Server, registryURL string, measured anser.DialOption) (func() error, error) {
	f, err := front.New(registryURL+"/"+arith.Service, registryURL+"/"+posts.Service,
		append(dialOptions(), measured, route.Rules(route.From(route.Caller{Service: front.Service})))...)
	if err != nil {
		return nil, err
	}
	return f.Close, f.Register(s)
}

// wrong returns the error for a wrong reply.
func wrong(format string, args ...any) error {
	return anser.Errorf(anser.DataLoss, "wrong reply: "+format, args...)
}

func callArith(ctx context.Context, c *anser.Client, n int, opts ...anser.CallOption) error {
	in := &arith.Args{A: n, B: n % 7}
	method, want := arith.Add, in.A+in.B
	if n%2 == 1 {
		method, want = arith.Mul, in.A*in.B
	}
	out, err := method.Call(ctx, c, in, opts...)
	if err == nil && out.C != want {
		err = wrong("%s(%d, %d) = %d", method, in.A, in.B, out.C)
	}
	return err
}

var postTypes = []string{"golang", "rpc", ""}

func callPosts(ctx context.Context, c *anser.Client, n int, opts ...anser.CallOption) error {
	in := &posts.Args{PostType: postTypes[n%len(postTypes)]}
	out, err := posts.Query.Call(ctx, c, in, opts...)
	if err == nil && (len(out.Posts) == 0 || in.PostType != "" && out.Posts[0].PostType != in.PostType) {
		err = wrong("%d posts of the type %q", len(out.Posts), in.PostType)
	}
	return err
}

func callFront(ctx context.Context, c *anser.Client, n int, opts ...anser.CallOption) error {
	in := &front.Args{PostType: postTypes[n%len(postTypes)]}
	out, err := front.Page.Call(ctx, c, in, opts...)
	if err == nil && (len(out.Titles) == 0 || out.Likes == 0) {
		err = wrong("%d titles with %d likes", len(out.Titles), out.Likes)
	}
	return err
}
