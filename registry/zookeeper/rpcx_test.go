package zookeeper_test

import (
	"context"
	"net/url"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

// An instance is where rpcx looks for it, and what rpcx has written is an instance.
func TestLayoutOfRPCX(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	r, raw := shared.dial(t, zookeeper.RPCX("rpcx_test")), shared.use(t)
	in := registry.Instance{Service: "Arith", Address: "127.0.0.1:8972", Weight: 500, Group: "blue"}
	if err := r.Register(ctx, in); err != nil {
		t.Fatal(err)
	}
	data, stat, err := raw.Get("/rpcx_test/Arith/tcp@127.0.0.1:8972")
	if err != nil || string(data) != "anser=127.0.0.1%3A8972&group=blue&weight=5" || stat.EphemeralOwner == 0 {
		t.Fatalf("%q, %+v, %v", data, stat, err)
	}
	if _, err := raw.Create("/rpcx_test/Arith/tcp@127.0.0.1:8973", []byte("state=inactive&weight=7"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.Set("/rpcx_test/Arith", []byte("Arith"), -1); err != nil { // as rpcx's plugin does
		t.Fatal(err)
	}
	list, err := registry.List(ctx, r, "Arith")
	want := []registry.Instance{in, {Service: "Arith", Address: "rpcx://127.0.0.1:8973", Weight: 700, State: registry.Disabled}}
	if err != nil || !registry.Equal(list, want) {
		t.Errorf("%+v, %v, want %+v", list, err, want)
	}
	if names, err := r.Services(ctx); err != nil || !slices.Equal(names, []string{"Arith"}) {
		t.Errorf("%q, %v", names, err)
	}
	if err := r.Deregister(ctx, in); err != nil {
		t.Fatal(err)
	}
	if there, _, err := raw.Exists("/rpcx_test/Arith/tcp@127.0.0.1:8972"); err != nil || there {
		t.Error(there, err)
	}
	if err := r.Register(ctx, registry.Instance{Service: "Arith", Address: "unix:///run/arith"}); err == nil || !strings.Contains(err.Error(), "rpcx has no place for") {
		t.Error(err)
	}
	if r, err := zookeeper.Dial([]string{shared.endpoint}, zookeeper.RPCX("")); err == nil {
		r.Close()
		t.Error("no base path and no error")
	}
}

func TestRPCXScheme(t *testing.T) {
	for target, want := range map[string]string{
		"zookeeper+rpcx://" + shared.endpoint + "/rpcx/deep/Arith": "", "zookeeper+rpcx://" + shared.endpoint + "/Arith": "no base path", "zookeeper+rpcx:///rpcx/Arith": "endpoint",
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		r, service, err := zookeeper.RPCXScheme().Open(u)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", target, err, want)
		}
		if err == nil {
			if service != "Arith" {
				t.Error(service)
			}
			r.(*zookeeper.Registry).Close()
		}
	}
}

func TestConformanceOfRPCX(t *testing.T) {
	registrytest.Run(t, func(t *testing.T) registrytest.Fixture {
		base, ttl := freshPrefix(), testTTL
		if slices.Contains(shortLived, path.Base(t.Name())) {
			ttl = shortTTL
		}
		return registrytest.Fixture{
			Open: func() registry.Registry {
				r, err := zookeeper.Dial([]string{shared.endpoint}, zookeeper.RPCX(base), zookeeper.TTL(ttl))
				if err != nil {
					t.Fatal(err)
				}
				return r // the suite closes it
			},
			Stop:         shared.Stop,
			Start:        func() { shared.start(t) },
			ForgetLeases: func() { shared.forgetLeases(t) },
			HostPortOnly: true,
		}
	})
}
