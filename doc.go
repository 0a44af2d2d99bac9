// Package anser is an RPC framework with service governance: typed calls between services that are
// found through a registry, balanced, retried, limited and drained.
//
// A server is a set of functions under names:
//
//	s := anser.NewServer()
//	anser.Handle(s, "Arith.Mul", func(ctx context.Context, in *Args) (*Reply, error) {
//		return &Reply{C: in.A * in.B}, nil
//	})
//	if err := s.ListenAndServe("127.0.0.1:8972"); err != nil {
//		log.Fatal(err)
//	}
//
// A client calls them:
//
//	c, err := anser.Dial("127.0.0.1:8972")
//	reply, err := anser.Call[Reply](ctx, c, "Arith.Mul", &Args{A: 7, B: 8})
//
// Errors of calls are of type [*Error]. They carry a [Code] and an [Outcome], which says whether the call
// may have run; errors.Is(err, anser.NotFound) and errors.As work through every layer. Only an [Interceptor]
// may make another error of them.
//
// Misuse is an error and never a panic: an argument that is nil (a context, a handler, a listener, an option), a Server
// or Client that is nil or was not made by [NewServer] or [Dial], and an option out of its range. NewServer notes what is
// wrong, and Serve returns it; what Handle returns, Serve returns too. Methods without an error to return do nothing on
// such a Server or Client, and return the zero value. A [Future] is made by Go, a [Stream] by Open, a [Session] by the
// server, and their zero values are not for use.
//
// Everything in this package is safe for concurrent use unless its comment says otherwise. The wire
// is described in docs/protocol.md, the inside in docs/design.md.
package anser
