package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/redis"
)

func TestUsers(t *testing.T) {
	s := ownServer(t, &server{})
	// The least that docs/registries.md says a server and a client need.
	s.do(t, "ACL", "SETUSER", "app", "on", ">app-secret", "~anser:*", "&anser:*", "+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+time")
	s.do(t, "ACL", "SETUSER", "reader", "on", ">read-secret", "~anser:*", "&anser:*", "+@read", "+@scripting", "+@pubsub", "+@connection", "+time")
	s.do(t, "ACL", "SETUSER", "default", "resetpass", ">root-secret")
	s.cli = []string{"--no-auth-warning", "-a", "root-secret"}
	may := s.dial(t, redis.User("app", "app-secret"))
	register(t, may, instance("h1:1"))
	w := watchAddresses(t, s.dial(t, redis.User("reader", "read-secret")))
	w.expect(t, "h1:1")
	register(t, may, instance("h2:1"))
	w.expect(t, "h1:1 h2:1")
	if r := s.dial(t, redis.User("", "root-secret")); addresses(t, r) != "h1:1 h2:1" {
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
		r := s.dial(t, c.opts...)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, listing := registry.List(ctx, r, "arith")
		_, naming := r.Services(ctx)
		_, loading := r.Load(ctx, "rules")
		for what, err := range map[string]error{
			"Register": r.Register(ctx, instance("h2:1")), "List": listing, "Services": naming, "Load": loading,
		} {
			if err == nil || !strings.Contains(err.Error(), c.say) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %s = %v, want at once an error with %q", name, what, err, c.say)
			} else if strings.Contains(err.Error(), "guess") {
				t.Errorf("%s: %s tells the password: %v", name, what, err)
			}
		}
		cancel()
	}
}

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	pool := makeCertificate(t, dir)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	s := ownServer(t, &server{
		dir: dir, tls: true, cli: []string{"--tls", "--cacert", cert},
		args: []string{"--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no"},
	})
	r := s.dial(t, redis.TLS(&tls.Config{RootCAs: pool}))
	register(t, r, instance("h1:1"))
	if got := addresses(t, r); got != "h1:1" {
		t.Errorf("list over TLS: %q", got)
	}
	// Roots that do not know the server: trouble that says so, not silence.
	w := watchAddresses(t, s.dial(t, redis.TLS(&tls.Config{})))
	if err := w.awaitTrouble(t); !strings.Contains(err.Error(), "certificate") {
		t.Errorf("trouble with unknown roots = %v, want to hear of the certificate", err)
	}
}

// makeCertificate writes a self-signed certificate for the loopback address.
func makeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		"cert.pem": {Type: "CERTIFICATE", Bytes: der},
		"key.pem":  {Type: "PRIVATE KEY", Bytes: keyDER},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return pool
}

// All keys of a service lie on one node of a cluster, and the client finds it.
func TestCluster(t *testing.T) {
	s := ownServer(t, &server{args: []string{"--cluster-enabled", "yes"}})
	s.do(t, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	eventually(t, "the cluster is up", func() bool { return strings.Contains(s.do(t, "CLUSTER", "INFO"), "cluster_state:ok") })
	r, err := redis.Dial([]string{s.address, s.address}) // the second one stands for another node
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	w := watchAddresses(t, r)
	w.expect(t, "")
	for _, address := range []string{"h1:1", "h2:1"} {
		register(t, r, instance(address))
	}
	w.await(t, "h1:1 h2:1")
	if names, err := r.Services(within(t, patience)); err != nil || len(names) != 1 || names[0] != "arith" {
		t.Errorf("services = %q, %v", names, err)
	}
}

func TestDatabase(t *testing.T) {
	prefix := freshPrefix()
	r := shared.dial(t, redis.Prefix(prefix), redis.Database(3))
	register(t, r, instance("h1:1"))
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
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		addresses, prefix, service, err := redis.Parse(u)
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
		"redis://h:1/sh%7Bop/arith":    "", // Dial says what is wrong with the prefix
		"redis://h:1//arith":           "",
		"redis://u:secret@h:1/x/arith": "use the option redis.User",
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		r, _, err := redis.Scheme().Open(u)
		if err == nil {
			r.(*redis.Registry).Close()
		}
		if err == nil || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want an error with %q", target, err, say)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for say, opt := range map[string]redis.DialOption{
		"use a name without spaces": redis.Prefix("a b"),
		"use 1s or more":            redis.TTL(time.Millisecond),
		"use 0 or more":             redis.Database(-1),
	} {
		if r, err := redis.Dial([]string{"h:1"}, opt); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("Dial = %v, %v, want an error with %q", r, err, say)
		}
	}
	if _, err := redis.Dial(nil); err == nil {
		t.Error("Dial took no address")
	}
}
