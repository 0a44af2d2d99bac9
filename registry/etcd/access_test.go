package etcd_test

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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/etcd"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	s := ownServer(t)
	makeUsers(t, s.use(t))
	may := s.dial(t, etcd.User("app", "app-secret"))
	register(t, may, instance("h1:1"))
	w := watchAddresses(t, may)
	w.expect(t, "h1:1")

	for name, c := range map[string]struct {
		opts []etcd.DialOption
		say  string
	}{
		"no user":        {nil, "use the option etcd.User"},
		"wrong password": {[]etcd.DialOption{etcd.User("app", "guess")}, `log in as "app"`},
		"wrong prefix":   {[]etcd.DialOption{etcd.User("app", "app-secret"), etcd.Prefix("/other")}, "permission denied"},
	} {
		r := s.dial(t, c.opts...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		_, listing := registry.List(ctx, r, "arith")
		_, naming := r.Services(ctx)
		for what, err := range map[string]error{"Register": r.Register(ctx, instance("h2:1")), "List": listing, "Services": naming} {
			if err == nil || !strings.Contains(err.Error(), c.say) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %s = %v, want at once an error with %q", name, what, err, c.say)
			} else if strings.Contains(err.Error(), "guess") {
				t.Errorf("%s: %s tells the password: %v", name, what, err)
			}
		}
		cancel()
	}

	// The server forgets its tokens with a restart: everybody logs in again by himself.
	s.stop()
	w.awaitTrouble(t)
	restart(t, s)
	register(t, may, instance("h3:1"))
	w.await(t, "h1:1 h3:1")
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
	dir := t.TempDir()
	pool := makeCertificate(t, dir)
	s := &server{
		dir: dir, tls: &tls.Config{RootCAs: pool},
		args: []string{"--cert-file", filepath.Join(dir, "cert.pem"), "--key-file", filepath.Join(dir, "key.pem")},
	}
	t.Cleanup(s.stop)
	if err := s.startAnywhere(); err != nil {
		t.Fatal(err)
	}
	for _, endpoint := range []string{s.endpoint, s.url()} { // TLS also where the scheme is left out
		r, err := etcd.Dial([]string{endpoint}, etcd.TLS(s.tls))
		if err != nil {
			t.Fatal(err)
		}
		register(t, r, instance("h1:1"))
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	// Roots that do not know the server: trouble that says so, not silence.
	w := watchAddresses(t, s.dial(t))
	if err := w.awaitTrouble(t); !strings.Contains(err.Error(), "handshake failed") {
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
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
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
