package etcd_test

import (
	"io"
	"net/url"
	"testing"

	"github.com/anser-rpc/anser/registry/etcd"
)

func TestSchemeOpensWithoutEtcd(t *testing.T) {
	s := etcd.Scheme()
	if s.Name != "etcd" {
		t.Errorf("the scheme is %q, want etcd", s.Name)
	}
	u, err := url.Parse("etcd://127.0.0.1:1/arith")
	if err != nil {
		t.Fatal(err)
	}
	r, service, err := s.Open(u)
	if err != nil {
		t.Fatal(err)
	}
	if service != "arith" {
		t.Errorf("the service is %q, want arith", service)
	}
	if err := r.(io.Closer).Close(); err != nil {
		t.Error(err)
	}
}

func TestSchemeRefusesATargetWithoutService(t *testing.T) {
	u, err := url.Parse("etcd://127.0.0.1:2379")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := etcd.Scheme().Open(u); err == nil {
		t.Error("a target without a service was taken")
	}
}
