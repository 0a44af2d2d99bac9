// Package anser is an RPC framework with service governance: typed calls between services, with
// service discovery, load balancing, retries, overload protection and graceful shutdown.
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
// The error of a call is an [*Error]. It carries a [Code] and an [Outcome], which says whether the
// call may have run; errors.Is(err, anser.NotFound) and errors.As work at every layer. Only an
// [Interceptor] may replace it by an error of another type.
//
// Misuse is an error and never a panic: a nil argument (a context, a handler, a listener, an
// option), a Server or Client that is nil or was not made by [NewServer] or [Dial], and an option
// out of its range. NewServer records mistakes, and Serve returns them; Serve also returns the
// errors of Handle. Methods that return no error do nothing on such a Server or Client, and return
// the zero value. A [Future] is made by Go, a [Stream] by Open, a [Session] by the server; their
// zero values are not usable.
//
// Everything in this package is safe for concurrent use unless its comment says otherwise. The wire
// protocol is described in docs/protocol.md, the implementation in docs/design.md.
package anser
