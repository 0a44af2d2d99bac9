package anser_test

import (
	"context"
	"net"
	"testing"

	"github.com/anser-rpc/anser"
)

// A panic of a client's interceptor fails its call and nothing else.
func TestClientInterceptorPanics(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, map[string]handler{"Echo.Say": echo})
	angry := anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			if in, ok := inv.Request.(*[]byte); ok && string(*in) == "bad" {
				panic("no")
			}
			return next(ctx, inv)
		}
	})
	c := dial(t, l.Addr().String(), silent, angry)
	for text, want := range map[string]anser.Code{"bad": anser.Internal, "good": anser.OK} {
		if _, err := call(context.Background(), c, "Echo.Say", text); anser.CodeOf(err) != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
