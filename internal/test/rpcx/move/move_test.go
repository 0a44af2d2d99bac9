package move_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcxio/libkv/store"
	kvredis "github.com/rpcxio/libkv/store/redis"
	kvzookeeper "github.com/rpcxio/libkv/store/zookeeper"
	consulclient "github.com/rpcxio/rpcx-consul/client"
	consulplugin "github.com/rpcxio/rpcx-consul/serverplugin"
	etcdclient "github.com/rpcxio/rpcx-etcd/client"
	etcdplugin "github.com/rpcxio/rpcx-etcd/serverplugin"
	"github.com/smallnest/rpcx/client"
	"github.com/smallnest/rpcx/server"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/internal/test/rpcx/rpcxclient"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/redis"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

type (
	// Args are the arguments of a call.
	Args struct{ A, B int }
	// Reply is the reply to one.
	Reply struct{ C int }
)

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// plugin is what a plugin of rpcx for a registry does.
type plugin interface {
	Register(name string, rcvr any, metadata string) error
	Stop() error
}

// place is a registry with both sides.
type place struct {
	announce  func(t *testing.T) registry.Registry // of Anser
	target    string
	scheme    registry.Scheme
	plugin    func(t *testing.T, address string) plugin
	discovery func(t *testing.T) client.ServiceDiscovery
}

const base = "/rpcx_move"

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// places starts the registries.
func places(t *testing.T) map[string]func(t *testing.T) place {
	return map[string]func(t *testing.T) place{
		"etcd": func(t *testing.T) place {
			m := must[*embedded.Member](t)(embedded.Start(within(t), embedded.Config{Dir: t.TempDir()}))
			t.Cleanup(func() { m.Close() })
			address := m.Endpoint()
			return place{
				announce: func(t *testing.T) registry.Registry {
					return must[*etcd.Registry](t)(etcd.Dial([]string{address}, etcd.RPCX(base)))
				},
				target: "etcd+rpcx://" + address + base + "/Arith", scheme: etcd.RPCXScheme(),
				plugin: func(t *testing.T, at string) plugin {
					p := &etcdplugin.EtcdV3RegisterPlugin{ServiceAddress: "tcp@" + at, EtcdServers: []string{address}, BasePath: base, UpdateInterval: time.Second}
					if err := p.Start(); err != nil {
						t.Fatal(err)
					}
					return p
				},
				discovery: func(t *testing.T) client.ServiceDiscovery {
					return must[client.ServiceDiscovery](t)(etcdclient.NewEtcdV3Discovery(base, "Arith", []string{address}, true, nil))
				},
			}
		},
		"Consul": func(t *testing.T) place {
			address := servers.Consul(t)
			return place{
				announce: func(t *testing.T) registry.Registry {
					return must[registry.Registry](t)(consul.DialRPCX(address, base))
				},
				target: "consul+rpcx://" + address + base + "/Arith", scheme: consul.RPCXScheme(),
				plugin: func(t *testing.T, at string) plugin {
					p := &consulplugin.ConsulRegisterPlugin{ServiceAddress: "tcp@" + at, ConsulServers: []string{address}, BasePath: base, UpdateInterval: time.Minute, Expired: time.Minute}
					if err := p.Start(); err != nil {
						t.Fatal(err)
					}
					return p
				},
				discovery: func(t *testing.T) client.ServiceDiscovery {
					return must[*consulclient.ConsulDiscovery](t)(consulclient.NewConsulDiscovery(base, "Arith", []string{address}, nil))
				},
			}
		},
		"ZooKeeper": func(t *testing.T) place {
			address := servers.ZooKeeper(t)
			p := kvPlace(func(t *testing.T) store.Store {
				return must[store.Store](t)(kvzookeeper.New([]string{address}, &store.Config{ConnectionTimeout: 10 * time.Second}))
			}, base[1:])
			p.announce = func(t *testing.T) registry.Registry {
				return must[*zookeeper.Registry](t)(zookeeper.Dial([]string{address}, zookeeper.RPCX(base)))
			}
			p.target, p.scheme = "zookeeper+rpcx://"+address+base+"/Arith", zookeeper.RPCXScheme()
			return p
		},
		"Redis": func(t *testing.T) place {
			address := servers.Redis(t)
			p := kvPlace(func(t *testing.T) store.Store { return must[store.Store](t)(kvredis.New([]string{address}, nil)) }, base)
			p.announce = func(t *testing.T) registry.Registry {
				return must[registry.Registry](t)(redis.DialRPCX([]string{address}, base))
			}
			p.target, p.scheme = "redis+rpcx://"+address+base+"/Arith", redis.RPCXScheme()
			return p
		},
	}
}

// kvPlace is the rpcx side of a registry whose plugin has no release: rpcx's own store, with the
// keys of the plugin.
func kvPlace(open func(t *testing.T) store.Store, base string) place {
	return place{
		plugin: func(t *testing.T, at string) plugin {
			p := &kvPlugin{kv: open(t), base: base, address: "tcp@" + at}
			t.Cleanup(p.kv.Close)
			return p
		},
		discovery: func(t *testing.T) client.ServiceDiscovery {
			kv := open(t)
			list := func() (pairs []*client.KVPair) {
				all, _ := kv.List(base + "/Arith")
				for _, p := range all {
					if k := p.Key[max(0, len(p.Key)-len("tcp@127.0.0.1:00000")):]; k[0] == 't' {
						pairs = append(pairs, &client.KVPair{Key: k, Value: string(p.Value)})
					}
				}
				return pairs
			}
			d := rpcxclient.NewServers(list())
			stop := make(chan struct{})
			var looking sync.WaitGroup
			looking.Go(func() {
				tick := time.NewTicker(200 * time.Millisecond)
				defer tick.Stop()
				for {
					select {
					case <-stop:
						return
					case <-tick.C:
						if pairs := list(); len(pairs) > 0 {
							d.Update(pairs)
						}
					}
				}
			})
			t.Cleanup(func() { close(stop); looking.Wait(); kv.Close() })
			return d
		},
	}
}

type kvPlugin struct {
	kv            store.Store
	base, address string
}

func (p *kvPlugin) Register(name string, _ any, metadata string) error {
	p.kv.Put(p.base, []byte("rpcx_path"), &store.WriteOptions{IsDir: true})
	p.kv.Put(p.base+"/"+name, []byte(name), &store.WriteOptions{IsDir: true})
	return p.kv.Put(p.base+"/"+name+"/"+p.address, []byte(metadata), &store.WriteOptions{TTL: time.Minute})
}

// Unregister makes it a plugin that rpcx calls.
func (p *kvPlugin) Unregister(name string) error {
	return p.kv.Delete(p.base + "/" + name + "/" + p.address)
}

func (p *kvPlugin) Stop() error { return p.Unregister("Arith") }

// mover is a server of either side in the registry.
type mover struct {
	calls atomic.Int64 // of both clients
	stock atomic.Int64 // of the client of rpcx
	stop  func()
}

// stockMover starts an rpcx server that registers itself by its plugin.
func stockMover(t *testing.T, p *place) *mover {
	m := new(mover)
	l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
	s := server.NewServer()
	registered := p.plugin(t, l.Addr().String())
	s.Plugins.Add(registered)
	if err := s.RegisterName("Arith", &counted{m}, "weight=1"); err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() { s.ServeListener("tcp", l); close(served) }()
	m.stop = func() {
		if err := registered.Stop(); err != nil {
			t.Error(err)
		}
		m.forgotten(t) // rpcx cannot tell its clients that it stops
		s.Close()
		<-served
	}
	return m
}

// forgotten waits until the clients have stopped calling the server.
func (m *mover) forgotten(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		before := m.calls.Load()
		if time.Sleep(2 * time.Second); m.calls.Load() == before {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("a server that is not registered any more gets calls after a minute")
		}
	}
}

// The factors by which the two clients multiply.
const (
	stockFactor = 2
	anserFactor = 3
)

// counted is a service that counts its calls.
type counted struct{ m *mover }

func (c *counted) Mul(_ context.Context, in *Args, out *Reply) error {
	c.m.calls.Add(1)
	if in.B == stockFactor {
		c.m.stock.Add(1)
	}
	out.C = in.A * in.B
	return nil
}

// anserMover starts an Anser server that announces itself in the rpcx layout.
func anserMover(t *testing.T, p *place) *mover {
	m := new(mover)
	reg := p.announce(t)
	s := anser.NewServer(protocols.All(), anser.NoSignals(), anser.Announce(reg, registry.Instance{Service: "Arith"}))
	if err := s.RegisterName("Arith", &counted{m}); err != nil {
		t.Fatal(err)
	}
	l := must[net.Listener](t)(s.Listen("127.0.0.1:0"))
	served := make(chan struct{})
	go func() { s.Serve(l); close(served) }()
	m.stop = func() {
		if err := s.Shutdown(within(t)); err != nil {
			t.Error(err)
		}
		<-served
		if err := reg.Close(); err != nil {
			t.Error(err)
		}
	}
	return m
}

// A service moves from rpcx to Anser and back, in each registry of rpcx, under the calls of clients
// of both: no call fails, and both kinds of servers get calls of both kinds of clients.
func TestMove(t *testing.T) {
	for name, start := range places(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t)
			old := stockMover(t, &p)
			await(t, &p, 1)
			stop := make(chan struct{})
			var clients sync.WaitGroup
			var byStock, byAnser atomic.Int64
			x := rpcxclient.New("Arith", client.Failover, client.RoundRobin, p.discovery(t))
			defer x.Close()
			c := must[*anser.Client](t)(anser.Dial(p.target, p.scheme, protocols.RPCX()))
			defer c.Close()
			load := func(n *atomic.Int64, factor int, call func(ctx context.Context, in *Args, out *Reply) error) {
				clients.Go(func() {
					for i := 0; ; i++ {
						select {
						case <-stop:
							return
						case <-time.After(2 * time.Millisecond):
						}
						var out Reply
						ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
						if err := call(ctx, &Args{i, factor}, &out); err != nil || out.C != factor*i {
							t.Errorf("a call has failed: %+v, %v", out, err)
						}
						cancel()
						n.Add(1)
					}
				})
			}
			load(&byStock, stockFactor, func(ctx context.Context, in *Args, out *Reply) error { return x.Call(ctx, "Mul", in, out) })
			load(&byAnser, anserFactor, func(ctx context.Context, in *Args, out *Reply) error { return c.Call(ctx, "Arith.Mul", in, out) })
			defer func() {
				close(stop)
				clients.Wait()
			}()

			grown := func(n *atomic.Int64) {
				t.Helper()
				before := n.Load()
				for deadline := time.Now().Add(time.Minute); n.Load() < before+50; time.Sleep(time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("there are no more calls")
					}
				}
			}
			// both waits until the Anser client knows the two servers: of a list in which the
			// only one has been replaced, it keeps the old one while it answers.
			both := func() {
				t.Helper()
				for deadline := time.Now().Add(time.Minute); len(c.Status().Instances) < 2; time.Sleep(10 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("the client has not learned of the new server: %+v", c.Status().Instances)
					}
				}
			}
			grown(&old.calls)
			fresh := anserMover(t, &p)
			both()
			grown(&fresh.stock) // rpcx's client learns of a server when it asks the registry again
			old.stop()
			alone := byStock.Load()
			grown(&byStock)
			grown(&byAnser)
			if alone == 0 || fresh.calls.Load() == 0 {
				t.Error("no calls")
			}
			back := stockMover(t, &p)
			both()
			grown(&back.stock)
			fresh.stop()
			grown(&byStock)
			grown(&byAnser)
			t.Logf("%d calls of rpcx's client and %d of Anser's: %d to the first server, %d to that of Anser, %d to the last one",
				byStock.Load(), byAnser.Load(), old.calls.Load(), fresh.calls.Load(), back.calls.Load())
			t.Cleanup(back.stop)
		})
	}
}

// await waits until Anser clients find n servers.
func await(t *testing.T, p *place, n int) {
	t.Helper()
	reg := p.announce(t)
	defer reg.Close()
	for ctx := within(t); ; time.Sleep(10 * time.Millisecond) {
		list, err := registry.List(ctx, reg, "Arith")
		if err != nil {
			t.Fatal(err)
		}
		if len(list) == n {
			return
		}
	}
}
