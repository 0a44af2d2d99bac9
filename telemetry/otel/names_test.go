package otel_test

import (
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/telemetry/otel"
)

func TestStatusOf(t *testing.T) {
	for code, want := range map[anser.Code]string{
		anser.OK: "OK", anser.Canceled: "CANCELLED", anser.Unknown: "UNKNOWN", anser.InvalidArgument: "INVALID_ARGUMENT",
		anser.DeadlineExceeded: "DEADLINE_EXCEEDED", anser.NotFound: "NOT_FOUND", anser.AlreadyExists: "ALREADY_EXISTS",
		anser.PermissionDenied: "PERMISSION_DENIED", anser.ResourceExhausted: "RESOURCE_EXHAUSTED",
		anser.FailedPrecondition: "FAILED_PRECONDITION", anser.Aborted: "ABORTED", anser.OutOfRange: "OUT_OF_RANGE",
		anser.Unimplemented: "UNIMPLEMENTED", anser.Internal: "INTERNAL", anser.Unavailable: "UNAVAILABLE",
		anser.DataLoss: "DATA_LOSS", anser.Unauthenticated: "UNAUTHENTICATED", 77: "77",
	} {
		if got := otel.StatusOf(code); got != want {
			t.Errorf("%v is %q, want %q", code, got, want)
		}
	}
}

func TestMethodOf(t *testing.T) {
	for name, want := range map[string]string{
		"Arith.Mul": "Arith/Mul", "shop.v1.Cart.Add": "shop.v1.Cart/Add", "a.B/C": "a.B/C", "Plain": "Plain", ".x": ".x", "": "_OTHER",
	} {
		if got := otel.MethodOf(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestServerOf(t *testing.T) {
	for target, want := range map[string]struct {
		address string
		port    int
	}{
		"127.0.0.1:8972":                    {"127.0.0.1", 8972},
		"[::1]:80":                          {"::1", 80},
		"host:1,host:2":                     {"host:1,host:2", 0},
		"etcd://127.0.0.1:2379/shop":        {"shop", 0},
		"etcd://a:1,b:2/prefix/shop?x=y":    {"shop", 0},
		"grpc://host:50051":                 {"host", 50051},
		"unix:///run/shop.sock":             {"/run/shop.sock", 0},
		"etcd://root:secret@a:2379/shop":    {"shop", 0},
		"tls://me:secret@host:80":           {"host", 80},
		"etcd://me:%zz@host/shop":           {"host/shop", 0},
		"":                                  {"", 0},
		"host:99999":                        {"host:99999", 0},
		"dns://shop.example.org:80":         {"shop.example.org", 80},
		"mdns:///shop":                      {"shop", 0},
		"zookeeper://a:1,b:2,c:3/deep/shop": {"shop", 0},
	} {
		if address, port := otel.ServerOf(target); address != want.address || port != want.port {
			t.Errorf("%q is %q, %d, want %v", target, address, port, want)
		}
	}
}
