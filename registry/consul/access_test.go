package consul_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
)

const rootToken = "8c9a7e0e-5d6c-4c54-8a54-5f3d2f0d2a11"

// TestTokenAndTLS runs an agent that takes TLS only, and nothing without a token.
func TestTokenAndTLS(t *testing.T) {
	dir := t.TempDir()
	pool := makeCertificate(t, dir)
	s := &server{dir: dir, scheme: "https", roots: pool, token: rootToken, config: `
acl { enabled = true, default_policy = "deny", tokens { initial_management = "` + rootToken + `", agent = "` + rootToken + `" } }
tls { defaults { cert_file = "` + filepath.ToSlash(filepath.Join(dir, "cert.pem")) + `", key_file = "` + filepath.ToSlash(filepath.Join(dir, "key.pem")) + `" } }
`}
	t.Cleanup(s.stop)
	s.startAnywhere(t)
	c := s.use(t)
	policy, _, err := c.ACL().PolicyCreate(&api.ACLPolicy{Name: "app", Rules: `
service "arith" { policy = "write" }
node_prefix "" { policy = "read" }
key_prefix "anser/documents/" { policy = "write" }
`}, nil)
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := c.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLTokenPolicyLink{{ID: policy.ID}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	secure := consul.TLS(&tls.Config{RootCAs: pool})
	may := s.dial(t, secure, consul.Token(token.SecretID))
	register(t, may, instance("h1:1"))
	if got := addresses(t, may); got != "h1:1" {
		t.Errorf("the list is %q, want h1:1", got)
	}
	if _, err := may.Save(t.Context(), registry.Document{Name: "rules", Data: []byte("x")}); err != nil {
		t.Error(err)
	}
	const guess = "00000000-0000-4000-8000-badbadbadbad"
	for name, c := range map[string]struct {
		opts []consul.Option
		say  string
	}{
		"no token":    {nil, "use the option consul.Token"},
		"wrong token": {[]consul.Option{consul.Token(guess)}, "look at the policies of the token"},
	} {
		r := s.dial(t, append(c.opts, secure)...)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, saving := r.Save(ctx, registry.Document{Name: "rules", Data: []byte("y")})
		for what, err := range map[string]error{"Register": r.Register(ctx, instance("h2:1")), "Save": saving} {
			if err == nil || !strings.Contains(err.Error(), c.say) || ctx.Err() != nil {
				t.Errorf("%s: %s = %v, want at once an error with %q", name, what, err, c.say)
			} else if strings.Contains(err.Error(), guess) {
				t.Errorf("%s: %s tells the token: %v", name, what, err)
			}
		}
		cancel()
	}
	if got := addresses(t, s.dial(t, secure)); got != "" {
		t.Errorf("without a token the list is %q, want none: Consul hides what one may not read", got)
	}
	if err := may.Register(t.Context(), registry.Instance{Service: "other", Address: "h1:1"}); err == nil {
		t.Error("the token registers a service that it has no policy for")
	}
	// Roots that do not know the agent: trouble that says so, not silence.
	w := watchAddresses(t, s.dial(t, consul.TLS(&tls.Config{RootCAs: x509.NewCertPool()})))
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
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
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
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return pool
}
