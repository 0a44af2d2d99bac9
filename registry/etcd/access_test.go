package etcd_test

import (
	"crypto/tls"
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry/etcd"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start(t)
	makeUsers(t, s.use(t))
	may := s.dial(t, etcd.User("app", "app-secret"))
	regtest.Register(t, may, regtest.Instance("h1:1"))
	w := regtest.NewWatch(t, may)
	w.Expect("h1:1")

	for name, c := range map[string]struct {
		opts []etcd.DialOption
		say  string
	}{
		"no user":        {nil, "use the option etcd.User"},
		"wrong password": {[]etcd.DialOption{etcd.User("app", "guess")}, `log in as "app"`},
		"wrong prefix":   {[]etcd.DialOption{etcd.User("app", "app-secret"), etcd.Prefix("/other")}, "permission denied"},
	} {
		regtest.NoAccess(t, name, s.dial(t, c.opts...), c.say, "guess")
	}

	// The server loses its tokens in a restart: every client logs in again by itself.
	s.Stop()
	w.ExpectTrouble("")
	s.start(t)
	regtest.Register(t, may, regtest.Instance("h3:1"))
	w.Await("h1:1 h3:1")
}

func makeUsers(t *testing.T, c *clientv3.Client) {
	t.Helper()
	ctx := t.Context()
	do := func(_ any, err error) {
		t.Helper()
		if err != nil && !errors.Is(err, rpctypes.ErrRoleAlreadyExist) {
			t.Fatal(err)
		}
	}
	do(c.UserAdd(ctx, "root", "root-secret"))
	do(c.RoleAdd(ctx, "root"))
	do(c.UserGrantRole(ctx, "root", "root"))
	do(c.UserAdd(ctx, "app", "app-secret"))
	do(c.RoleAdd(ctx, "app"))
	end := clientv3.GetPrefixRangeEnd("/anser/")
	do(c.RoleGrantPermission(ctx, "app", "/anser/", end, clientv3.PermissionType(clientv3.PermReadWrite)))
	do(c.UserGrantRole(ctx, "app", "app"))
	do(c.AuthEnable(ctx))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert := regtest.NewCertificate(t)
	s := newServer(t)
	s.tls = &tls.Config{RootCAs: cert.Pool}
	s.args = []string{"--cert-file", cert.CertFile, "--key-file", cert.KeyFile}
	s.start(t)
	for _, endpoint := range []string{s.endpoint, s.url()} { // TLS also if the scheme is missing
		r, err := etcd.Dial([]string{endpoint}, etcd.TLS(s.tls))
		if err != nil {
			t.Fatal(err)
		}
		regtest.Register(t, r, regtest.Instance("h1:1"))
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	// Roots that do not contain the server's CA are reported as trouble that names the cause.
	w := regtest.NewWatch(t, s.dial(t))
	w.AwaitTrouble("handshake failed")
}
