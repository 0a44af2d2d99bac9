package zookeeper_test

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

var worldACL = zk.WorldACL(zk.PermAll)

func TestDigest(t *testing.T) {
	prefix := freshPrefix()
	user := zookeeper.Digest("app", "app-secret")
	may := shared.dial(t, zookeeper.Prefix(prefix), user, zookeeper.TTL(shortTTL))
	regtest.Register(t, may, regtest.Instance("h1:1"))
	if _, err := may.Save(t.Context(), registry.Document{Name: "rules", Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	w := regtest.NewWatch(t, may)
	w.Expect("h1:1")
	for name, c := range map[string]struct {
		opts []zookeeper.Option
		say  string
	}{
		"no user":        {nil, "use the option zookeeper.Digest"},
		"wrong password": {[]zookeeper.Option{zookeeper.Digest("app", "guess")}, `refuses the user "app"`},
	} {
		regtest.NoAccess(t, name, shared.dial(t, append(c.opts, zookeeper.Prefix(prefix))...), c.say, "guess")
	}
	// The next session authenticates the user, too.
	regtest.Back(t, regtest.BackWithin, "the instance", func() { shared.forgetLeases(t) },
		func() bool { return regtest.Addresses(t, may) == "h1:1" })
}

func TestACL(t *testing.T) {
	prefix := freshPrefix()
	acl := append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermRead)...)
	owner := shared.dial(t, zookeeper.Prefix(prefix), zookeeper.Digest("app", "app-secret"), zookeeper.ACL(acl...))
	regtest.Register(t, owner, regtest.Instance("h1:1"))
	reader := shared.dial(t, zookeeper.Prefix(prefix))
	if got := regtest.Addresses(t, reader); got != "h1:1" {
		t.Errorf("the world reads %q, want h1:1", got)
	}
	if err := reader.Register(t.Context(), regtest.Instance("h2:1")); err == nil || !strings.Contains(err.Error(), "Digest") {
		t.Errorf("the world writes: %v", err)
	}
}

// TestTLS terminates TLS in front of the server, like its own secure port.
func TestTLS(t *testing.T) {
	cert := regtest.NewCertificate(t)
	f := forward(t, tls.NewListener(listen(t), &tls.Config{Certificates: []tls.Certificate{cert.TLS}}), shared.endpoint)
	endpoint := f.listener.Addr().String()
	r := dial(t, endpoint, zookeeper.Prefix(freshPrefix()), zookeeper.TLS(&tls.Config{RootCAs: cert.Pool}))
	regtest.Register(t, r, regtest.Instance("h1:1"))
	if got := regtest.Addresses(t, r); got != "h1:1" {
		t.Errorf("the list over TLS is %q, want h1:1", got)
	}
	// Roots that do not contain the server's CA are reported as trouble that names the cause.
	w := regtest.NewWatch(t, dial(t, endpoint, zookeeper.TLS(&tls.Config{RootCAs: x509.NewCertPool()})))
	w.AwaitTrouble("certificate")
}
