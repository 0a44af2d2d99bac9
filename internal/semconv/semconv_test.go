package semconv_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/semconv"
)

func TestStatus(t *testing.T) {
	for code, want := range map[uint8]string{0: "OK", 1: "CANCELLED", 4: "DEADLINE_EXCEEDED", 16: "UNAUTHENTICATED", 17: "17", 255: "255"} {
		if got := semconv.Status(code); got != want {
			t.Errorf("%d is %q, want %q", code, got, want)
		}
	}
}

func TestMethod(t *testing.T) {
	for name, want := range map[string]string{
		"Arith.Mul": "Arith/Mul", "shop.v1.Cart.Add": "shop.v1.Cart/Add", "a.B/C": "a.B/C", "Plain": "Plain", ".x": ".x", "": "_OTHER",
	} {
		if got := semconv.Method(name); got != want {
			t.Errorf("%q is %q, want %q", name, got, want)
		}
	}
}

func TestAddress(t *testing.T) {
	for s, want := range map[string]struct {
		address string
		port    int
	}{"a:1": {"a", 1}, "[::1]:80": {"::1", 80}, "a": {"a", 0}, "a:99999": {"a:99999", 0}, "a:http": {"a:http", 0}, "": {"", 0}} {
		if address, port := semconv.Address(s); address != want.address || port != want.port {
			t.Errorf("%q is %q, %d, want %v", s, address, port, want)
		}
	}
}
