package etcd_test

import (
	"crypto/tls"
	"testing"

	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

// A server that requires certificates takes the user from their names, and never asks for a login:
// the client must log in unasked.
func TestUserWithCertificate(t *testing.T) {
	t.Parallel()
	cert := regtest.NewCertificate(t)
	s := newServer(t)
	s.tls = &tls.Config{RootCAs: cert.Pool, Certificates: []tls.Certificate{cert.TLS}}
	s.args = []string{"--cert-file", cert.CertFile, "--key-file", cert.KeyFile, "--trusted-ca-file", cert.CAFile, "--client-cert-auth"}
	s.start(t)
	secure := etcd.TLS(s.tls)
	early := s.dial(t, secure, etcd.User("app", "app-secret"))
	regtest.Register(t, early, regtest.Instance("h1:1")) // there are no users yet
	makeUsers(t, s.use(t))
	may := s.dial(t, secure, etcd.User("app", "app-secret"))
	regtest.Register(t, may, regtest.Instance("h2:1"))
	regtest.Register(t, early, regtest.Instance("h3:1"))
	if got := regtest.Addresses(t, may); got != "h1:1 h2:1 h3:1" {
		t.Errorf("the list is %q", got)
	}
	regtest.NoAccess(t, "only a certificate", s.dial(t, secure), "permission denied", "secret")
	regtest.NoAccess(t, "wrong password", s.dial(t, secure, etcd.User("app", "guess")), `log in as "app"`, "guess")
}
