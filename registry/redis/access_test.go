package redis_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/redis"
)

func TestUsers(t *testing.T) {
	s := newServer(t)
	s.start(t)
	// The minimal permissions of a server and a client in docs/registries.md.
	s.do(t, "ACL", "SETUSER", "app", "on", ">app-secret", "~anser:*", "&anser:*", "+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+time")
	s.do(t, "ACL", "SETUSER", "reader", "on", ">read-secret", "~anser:*", "&anser:*", "+@read", "+@scripting", "+@pubsub", "+@connection", "+time")
	s.do(t, "ACL", "SETUSER", "default", "resetpass", ">root-secret")
	s.cli = []string{"--no-auth-warning", "-a", "root-secret"}
	may := s.dial(t, redis.User("app", "app-secret"))
	regtest.Register(t, may, regtest.Instance("h1:1"))
	w := regtest.NewWatch(t, s.dial(t, redis.User("reader", "read-secret")))
	w.Expect("h1:1")
	regtest.Register(t, may, regtest.Instance("h2:1"))
	w.Expect("h1:1 h2:1")
	if r := s.dial(t, redis.User("", "root-secret")); regtest.Addresses(t, r) != "h1:1 h2:1" {
		t.Error("a password without a user does not get in")
	}

	for name, c := range map[string]struct {
		opts []redis.DialOption
		say  string
	}{
		"no user":        {nil, "use the option redis.User"},
		"wrong password": {[]redis.DialOption{redis.User("app", "guess")}, "WRONGPASS"},
		"wrong prefix":   {[]redis.DialOption{redis.User("app", "app-secret"), redis.Prefix("other")}, "see docs/registries.md"},
	} {
		regtest.NoAccess(t, name, s.dial(t, c.opts...), c.say, "guess")
	}
}

func TestTLS(t *testing.T) {
	cert := regtest.NewCertificate(t)
	s := newServer(t, "--tls-cert-file", cert.CertFile, "--tls-key-file", cert.KeyFile, "--tls-auth-clients", "no")
	s.tls, s.cli = true, []string{"--tls", "--cacert", cert.CAFile}
	s.start(t)
	r := s.dial(t, redis.TLS(&tls.Config{RootCAs: cert.Pool}))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	if got := regtest.Addresses(t, r); got != "h1:1" {
		t.Errorf("list over TLS: %q", got)
	}
	// Roots that do not contain the server's CA are reported as trouble that names the cause.
	w := regtest.NewWatch(t, s.dial(t, redis.TLS(&tls.Config{})))
	w.AwaitTrouble("certificate")
}

// All keys of a service are on one node of a cluster, and the client finds it.
func TestCluster(t *testing.T) {
	s := newServer(t, "--cluster-enabled", "yes")
	s.start(t)
	s.do(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	regtest.Eventually(t, regtest.Patience, "the cluster is up", func() bool { return strings.Contains(s.do(t, "CLUSTER", "INFO"), "cluster_state:ok") })
	r, err := redis.Dial([]string{s.address, s.address}) // the second one represents another node
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	w := regtest.NewWatch(t, r)
	w.Expect("")
	for _, address := range []string{"h1:1", "h2:1"} {
		regtest.Register(t, r, regtest.Instance(address))
	}
	w.Await("h1:1 h2:1")
	if names, err := r.Services(regtest.Within(t)); err != nil || len(names) != 1 || names[0] != "arith" {
		t.Errorf("services = %q, %v", names, err)
	}
}

func TestDatabase(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix), redis.Database(3))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	if got := shared.do(t, "-n", "3", "HLEN", prefix+":{arith}:instances"); got != "1" {
		t.Errorf("database 3 has %s records, want 1", got)
	}
}

func TestTargets(t *testing.T) {
	for target, want := range map[string]string{
		"redis://h:6379/arith":            "h:6379 anser arith",
		"redis://h:6379,i:6380/arith":     "h:6379,i:6380 anser arith",
		"redis://h:6379/shop/arith":       "h:6379 shop arith",
		"redis://[::1]:6379/shop/arith.a": "[::1]:6379 shop arith.a",
	} {
		addresses, prefix, service, err := redis.Parse(regtest.URL(t, target))
		if got := strings.Join(addresses, ",") + " " + prefix + " " + service; err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", target, got, err, want)
		}
	}
	for target, say := range map[string]string{
		"etcd://h:1/arith":             "is not one of redis",
		"redis://u:secret@h:1/arith":   "use the option redis.User",
		"redis://h:1/arith?db=2":       "use options of redis.Dial",
		"redis://h/arith":              "is not host:port",
		"redis:///arith":               "is not host:port",
		"redis://h:1":                  "bad service",
		"redis://h:1/a/b/arith":        "redis://host:6379/prefix/service",
		"redis://h:1/shop/ar%20ith":    "use letters",
		"redis://h:1/sh%7Bop/arith":    "", // Dial rejects the prefix
		"redis://h:1//arith":           "",
		"redis://u:secret@h:1/x/arith": "use the option redis.User",
	} {
		r, _, err := redis.Scheme().Open(regtest.URL(t, target))
		if err == nil {
			r.(*redis.Registry).Close()
		}
		regtest.Refused(t, target, err, say, "secret")
	}
}

func TestBadOptions(t *testing.T) {
	for say, opt := range map[string]redis.DialOption{
		"use a name without spaces": redis.Prefix("a b"),
		"use 1s or more":            redis.TTL(time.Millisecond),
		"use 0 or more":             redis.Database(-1),
	} {
		_, err := redis.Dial([]string{"h:1"}, opt)
		regtest.Refused(t, "Dial", err, say)
	}
	if _, err := redis.Dial(nil); err == nil {
		t.Error("Dial took no address")
	}
}
