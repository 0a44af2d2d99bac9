package zookeeper_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

var worldACL = zk.WorldACL(zk.PermAll)

func TestDigest(t *testing.T) {
	prefix := freshPrefix()
	user := zookeeper.Digest("app", "app-secret")
	may := shared.dial(t, zookeeper.Prefix(prefix), user)
	register(t, may, instance("h1:1"))
	if _, err := may.Save(t.Context(), registry.Document{Name: "rules", Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	w := watchAddresses(t, may)
	w.expect(t, "h1:1")
	for name, c := range map[string]struct {
		opts []zookeeper.Option
		say  string
	}{
		"no user":        {nil, "use the option zookeeper.Digest"},
		"wrong password": {[]zookeeper.Option{zookeeper.Digest("app", "guess")}, `refuses the user "app"`},
	} {
		r := shared.dial(t, append(c.opts, zookeeper.Prefix(prefix))...)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, listing := registry.List(ctx, r, "arith")
		_, naming := r.Services(ctx)
		_, loading := r.Load(ctx, "rules")
		for what, err := range map[string]error{
			"Register": r.Register(ctx, instance("h2:1")), "List": listing, "Services": naming, "Load": loading,
		} {
			if err == nil || !strings.Contains(err.Error(), c.say) || ctx.Err() != nil {
				t.Errorf("%s: %s = %v, want at once an error with %q", name, what, err, c.say)
			} else if strings.Contains(err.Error(), "guess") {
				t.Errorf("%s: %s tells the password: %v", name, what, err)
			}
		}
		cancel()
	}
	// The user is known to the next session too.
	shared.forgetLeases(t)
	eventually(t, backWithin, "the instance", func() bool { return addresses(t, may) == "h1:1" })
}

func TestACL(t *testing.T) {
	prefix := freshPrefix()
	acl := append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermRead)...)
	owner := shared.dial(t, zookeeper.Prefix(prefix), zookeeper.Digest("app", "app-secret"), zookeeper.ACL(acl...))
	register(t, owner, instance("h1:1"))
	reader := shared.dial(t, zookeeper.Prefix(prefix))
	if got := addresses(t, reader); got != "h1:1" {
		t.Errorf("the world reads %q, want h1:1", got)
	}
	if err := reader.Register(t.Context(), instance("h2:1")); err == nil || !strings.Contains(err.Error(), "Digest") {
		t.Errorf("the world writes: %v", err)
	}
}

// TestTLS ends TLS in front of the server, as its own secure port does.
func TestTLS(t *testing.T) {
	cert, pool := makeCertificate(t)
	f := forward(t, tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{cert}}), shared.endpoint)
	endpoint := f.listener.Addr().String()
	r := dial(t, endpoint, zookeeper.Prefix(freshPrefix()), zookeeper.TLS(&tls.Config{RootCAs: pool}))
	register(t, r, instance("h1:1"))
	if got := addresses(t, r); got != "h1:1" {
		t.Errorf("the list over TLS is %q, want h1:1", got)
	}
	// Roots that do not know the server: trouble that says so, not silence.
	w := watchAddresses(t, dial(t, endpoint, zookeeper.TLS(&tls.Config{RootCAs: x509.NewCertPool()})))
	if err := w.awaitTrouble(t); !strings.Contains(err.Error(), "certificate") {
		t.Errorf("trouble with unknown roots = %v, want to hear of the certificate", err)
	}
}

// makeCertificate returns a self-signed certificate for the loopback address.
func makeCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
