package command_test

import (
	"crypto/tls"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/redis"
	"github.com/anser-rpc/anser/registry/zookeeper"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// announceAt registers an instance of arith at the address, until the end of the test.
func announceAt(t *testing.T, r registry.Registry, err error, address string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := r.Register(t.Context(), registry.Instance{Service: "arith", ID: "arith-1", Address: address}); err != nil {
		t.Fatal(err)
	}
}

// getsIn runs every kind of command that uses the registry, with the service's name and with its
// target.
func getsIn(t *testing.T, url string, flags ...string) {
	t.Helper()
	flags = append(flags, "--timeout", "2m")
	with := func(args ...string) result { return run(t, append(args, flags...)...) }
	with("ls", "--registry", url).expect(t, 0, "arith-1")
	with("call", "arith", "Arith.Add", `{"A": 1, "B": 2}`, "--registry", url).expect(t, 0, `"C": 3`)
	with("call", url+"/arith", "Arith.Add", `{"A": 1, "B": 2}`).expect(t, 0, `"C": 3`)
	with("explain", "arith", "Arith.Mul", "--registry", url).expect(t, 0, "pick      arith-1")
	with("rules", "get", "arith", "--registry", url).expect(t, 0, "rules: {}")
}

// An embedded registry with TLS requires certificates.
func TestRegistryWithTLS(t *testing.T) {
	at := serve(t)
	a, dir := transporttest.NewAuthority(t), t.TempDir()
	ca := a.Write(t, dir, "ca")
	issued := a.Issue(t, time.Hour, "127.0.0.1")
	cert, key := transporttest.Write(t, dir, "member", issued)
	m, err := embedded.Start(t.Context(), embedded.Config{
		Dir: t.TempDir(), Listen: "127.0.0.1:0", TLS: &embedded.TLS{CertFile: cert, KeyFile: key, CAFile: ca},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	config := &tls.Config{RootCAs: a.Pool, Certificates: []tls.Certificate{issued}}
	r, err := etcd.Dial([]string{m.Endpoint()}, etcd.TLS(config))
	announceAt(t, r, err, at)
	url := "etcd://" + m.Endpoint()
	mine := []string{"--registry-ca", ca, "--registry-cert", cert, "--registry-key", key}
	getsIn(t, url, mine...)

	ls := []string{"ls", "--registry", url}
	runLonger(t, ls, 1, "requires TLS")
	runLonger(t, append(ls, "--registry-tls"), 1, "does not answer", "unknown authority")
	runLonger(t, append(ls, "--registry-ca", ca), 1, "does not answer")
	run(t, append(ls, "--registry-cert", cert)...).expect(t, 2, "--registry-cert and --registry-key belong together")
	run(t, append(ls, "--registry-ca", filepath.Join(dir, "nothing"))...).expect(t, 2, "no such file")

	// It has no users yet, which a client with a login accepts.
	t.Setenv("ANSER_REGISTRY_PASSWORD", "read-secret")
	getsIn(t, url, append(mine, "--registry-user", "reader")...)
	t.Setenv("ANSER_REGISTRY_USER", "reader")
	t.Setenv("ANSER_REGISTRY_CA", ca)
	t.Setenv("ANSER_REGISTRY_CERT", cert)
	t.Setenv("ANSER_REGISTRY_KEY", key)
	getsIn(t, url)
}

func TestRedisWithUsers(t *testing.T) {
	at := serve(t)
	address := servers.Redis(t, "--requirepass", "root-secret", "--user", "reader", "on", ">read-secret", "~*", "&*", "+@all")
	r, err := redis.Dial([]string{address}, redis.User("", "root-secret"))
	announceAt(t, r, err, at)
	url := "redis://" + address
	run(t, "ls", "--registry", url, "--timeout", "2m").expect(t, 1, "NOAUTH")
	t.Setenv("ANSER_REGISTRY_PASSWORD", "root-secret")
	getsIn(t, url)
	t.Setenv("ANSER_REGISTRY_PASSWORD", "read-secret")
	getsIn(t, url, "--registry-user", "reader")
	run(t, "ls", "--registry", url, "--timeout", "2m").expect(t, 1, "WRONGPASS")
}

func TestZooKeeperWithUsers(t *testing.T) {
	at := serve(t)
	address := servers.ZooKeeper(t)
	r, err := zookeeper.Dial([]string{address}, zookeeper.Digest("app", "app-secret"))
	announceAt(t, r, err, at)
	url := "zookeeper://" + address
	run(t, "ls", "--registry", url, "--timeout", "2m").expect(t, 1, "not authenticated")
	t.Setenv("ANSER_REGISTRY_PASSWORD", "app-secret")
	getsIn(t, url, "--registry-user", "app")
}

func TestConsulWithTokens(t *testing.T) {
	at := serve(t)
	const root = "8c9a7e0e-5d6c-4c54-8a54-5f3d2f0d2a11"
	address := servers.Consul(t, `acl { enabled = true, default_policy = "deny", tokens { initial_management = "`+root+`", agent = "`+root+`" } }`)
	r, err := consul.Dial(address, consul.Token(root))
	announceAt(t, r, err, at)
	url := "consul://" + address
	run(t, "rules", "get", "arith", "--registry", url, "--timeout", "2m").expect(t, 1, "token")
	t.Setenv("ANSER_REGISTRY_TOKEN", root)
	getsIn(t, url)
}

// Access that a registry does not support is not silently ignored.
func TestAccessThatARegistryHasNot(t *testing.T) {
	file := "file://" + filepath.ToSlash(filepath.Join(t.TempDir(), "services.json"))
	for _, row := range []struct {
		url, variable string
		flags         []string
		say           string
	}{
		{url: file, flags: []string{"--registry-tls"}, say: "file:// does not support TLS: leave --registry-tls"},
		{url: file, flags: []string{"--registry-user", "me"}, say: "file:// does not support users: leave --registry-user out"},
		{url: "mdns:///", variable: "ANSER_REGISTRY_TOKEN", say: "mdns:// does not support tokens"},
		{url: "etcd://127.0.0.1:1", variable: "ANSER_REGISTRY_TOKEN", say: "use --registry-user and $ANSER_REGISTRY_PASSWORD"},
		{url: "consul://127.0.0.1:1", variable: "ANSER_REGISTRY_PASSWORD", say: "put a token into $ANSER_REGISTRY_TOKEN"},
		{url: "etcd://127.0.0.1:1", variable: "ANSER_REGISTRY_PASSWORD", say: "but no user: name one"},
		{url: "etcd://127.0.0.1:1", flags: []string{"--registry-user", "me"}, say: `the password of "me" is missing: put it into $ANSER_REGISTRY_PASSWORD`},
		{url: "etcd://me:secret@127.0.0.1:1", say: "use --registry-user and $ANSER_REGISTRY_PASSWORD"},
	} {
		t.Run(row.say, func(t *testing.T) {
			if row.variable != "" {
				t.Setenv(row.variable, "secret")
			}
			for _, args := range [][]string{{"ls"}, {"call", "arith", "Arith.Mul"}} {
				out := run(t, append(append(args, "--registry", row.url), row.flags...)...)
				out.expect(t, 2, row.say)
				if strings.Contains(out.out+out.err, ":secret") {
					t.Errorf("it tells the password: %s", out.err)
				}
			}
		})
	}
}
