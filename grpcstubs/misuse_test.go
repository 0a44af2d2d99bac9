package grpcstubs_test

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/grpcstubs"
)

// Misuse is an error and never a panic.
func TestMisuse(t *testing.T) {
	ctx := context.Background()
	var none context.Context // nil
	desc := &grpc.StreamDesc{StreamName: "Talk", ClientStreams: true}
	stream := func(ctx context.Context, c *grpcstubs.Conn, desc *grpc.StreamDesc) error {
		_, err := c.NewStream(ctx, desc, "/a.B/Talk")
		return err
	}
	for name, misuse := range map[string]func() error{
		"Invoke of nil":         func() error { return (*grpcstubs.Conn)(nil).Invoke(ctx, "/a.B/Say", nil, nil) },
		"Invoke of zero":        func() error { return new(grpcstubs.Conn).Invoke(ctx, "/a.B/Say", nil, nil) },
		"Invoke nil context":    func() error { return grpcstubs.NewConn(nil).Invoke(none, "/a.B/Say", nil, nil) },
		"NewStream of nil":      func() error { return stream(ctx, nil, desc) },
		"NewStream of zero":     func() error { return stream(ctx, new(grpcstubs.Conn), desc) },
		"NewStream nil desc":    func() error { return stream(ctx, grpcstubs.NewConn(nil), nil) },
		"NewStream nil context": func() error { return stream(none, grpcstubs.NewConn(nil), desc) },
		"Register of nil":       func() error { return (*grpcstubs.Registrar)(nil).Register(new(grpc.ServiceDesc), nil) },
		"Register nil desc":     func() error { return grpcstubs.NewRegistrar(anser.NewServer()).Register(nil, nil) },
		"Register nil server":   func() error { return grpcstubs.NewRegistrar(nil).Register(new(grpc.ServiceDesc), nil) },
		"RegisterService nil": func() error {
			s := anser.NewServer()
			grpcstubs.NewRegistrar(s).RegisterService(nil, nil)
			return s.ListenAndServe("127.0.0.1:0")
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("panic: %v", p)
				}
			}()
			if err := misuse(); err == nil || !strings.Contains(err.Error(), "nil") {
				t.Errorf("%v; want an error of the misuse", err)
			}
		})
	}
	grpcstubs.NewRegistrar(nil).RegisterService(nil, nil) // does nothing
}
