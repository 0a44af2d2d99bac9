package etcd_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/registrytest"
)

// An instance is where rpcx looks for it, and what rpcx has written is an instance.
func TestLayoutOfRPCX(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for _, base := range []string{"/rpcx_test", "com/example/rpcx"} {
		r, err := etcd.Dial([]string{shared.endpoint}, etcd.RPCX(base))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		raw := shared.use(t)
		in := registry.Instance{Service: "Arith", Address: "127.0.0.1:8972", Weight: 500, Group: "blue"}
		if err := r.Register(ctx, in); err != nil {
			t.Fatal(err)
		}
		got, err := raw.Get(ctx, base+"/Arith/tcp@127.0.0.1:8972")
		if err != nil || len(got.Kvs) != 1 || string(got.Kvs[0].Value) != "anser=127.0.0.1%3A8972&group=blue&weight=5" || got.Kvs[0].Lease == 0 {
			t.Fatalf("%v, %v", got, err)
		}
		for key, value := range map[string]string{ // as EtcdV3RegisterPlugin does
			base: "rpcx_path", base + "/Arith": "Arith", base + "/Arith/tcp@127.0.0.1:8973": "state=inactive&weight=7",
			base + "/Other": "Other", base + "/ArithOther/tcp@127.0.0.1:1": "",
		} {
			if _, err := raw.Put(ctx, key, value); err != nil {
				t.Fatal(err)
			}
		}
		list, err := registry.List(ctx, r, "Arith")
		want := []registry.Instance{in, {Service: "Arith", Address: "rpcx://127.0.0.1:8973", Weight: 700, State: registry.Disabled}}
		if err != nil || !registry.Equal(list, want) {
			t.Errorf("%+v, %v, want %+v", list, err, want)
		}
		if names, err := r.Services(ctx); err != nil || !slices.Equal(names, []string{"Arith", "ArithOther"}) {
			t.Errorf("%q, %v", names, err)
		}
		if err := r.Deregister(ctx, in); err != nil {
			t.Fatal(err)
		}
		if got, err := raw.Get(ctx, base+"/Arith/tcp@127.0.0.1:8972"); err != nil || len(got.Kvs) != 0 {
			t.Errorf("%v, %v", got, err)
		}
		if err := r.Register(ctx, registry.Instance{Service: "Arith", Address: "unix:///run/arith"}); err == nil || !strings.Contains(err.Error(), "rpcx has no place for") {
			t.Error(err)
		}
	}
	if r, err := etcd.Dial([]string{shared.endpoint}, etcd.RPCX("")); err == nil {
		r.Close()
		t.Error("no base path and no error")
	}
}

func TestRPCXScheme(t *testing.T) {
	for target, want := range map[string]string{
		"etcd+rpcx://" + shared.endpoint + "/rpcx/deep/Arith": "", "etcd+rpcx://" + shared.endpoint + "/Arith": "no base path", "etcd+rpcx:///rpcx/Arith": "endpoint",
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		r, service, err := etcd.RPCXScheme().Open(u)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
		if err == nil {
			if service != "Arith" {
				t.Error(service)
			}
			r.(*etcd.Registry).Close()
		}
	}
}

func TestConformanceOfRPCX(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		base, ttl := freshPrefix(), testTTL
		if strings.HasSuffix(t.Name(), "/CloseDuringOutage") {
			ttl = 2 * time.Second // this test waits for it to expire
		}
		return registrytest.Fixture{
			Open: func() registry.Registry {
				r, err := etcd.Dial([]string{shared.endpoint}, etcd.RPCX(base), etcd.TTL(ttl))
				if err != nil {
					t.Fatal(err)
				}
				return r // the suite closes it
			},
			Stop:         shared.Stop,
			Start:        func() { shared.start(t) },
			ForgetLeases: func() { forgetLeases(t, shared) },
			HostPortOnly: true,
		}
	})
}
