package consul_test

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/consul"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

const rootToken = "8c9a7e0e-5d6c-4c54-8a54-5f3d2f0d2a11"

// TestTokenAndTLS runs an agent that takes TLS only, and nothing without a token.
func TestTokenAndTLS(t *testing.T) {
	cert := regtest.NewCertificate(t)
	s := newServer(t, t.TempDir())
	s.roots, s.token = cert.Pool, rootToken
	s.config = `
acl { enabled = true, default_policy = "deny", tokens { initial_management = "` + rootToken + `", agent = "` + rootToken + `" } }
tls { defaults { cert_file = "` + filepath.ToSlash(cert.CertFile) + `", key_file = "` + filepath.ToSlash(cert.KeyFile) + `" } }
`
	s.start(t)
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
	secure := consul.TLS(&tls.Config{RootCAs: cert.Pool})
	may := s.dial(t, secure, consul.Token(token.SecretID))
	regtest.Register(t, may, regtest.Instance("h1:1"))
	if got := regtest.Addresses(t, may); got != "h1:1" {
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
		"wrong token": {[]consul.Option{consul.Token(guess)}, "check the policies of the token"},
	} {
		r := s.dial(t, append(c.opts, secure)...)
		ctx := regtest.Within(t)
		_, saving := r.Save(ctx, registry.Document{Name: "rules", Data: []byte("y")})
		for what, err := range map[string]error{"Register": r.Register(ctx, regtest.Instance("h2:1")), "Save": saving} {
			regtest.Refused(t, name+": "+what, err, c.say, guess)
		}
		if ctx.Err() != nil {
			t.Errorf("%s was not refused at once", name)
		}
	}
	if got := regtest.Addresses(t, s.dial(t, secure)); got != "" {
		t.Errorf("without a token the list is %q, want none: Consul hides what one may not read", got)
	}
	if err := may.Register(t.Context(), registry.Instance{Service: "other", Address: "h1:1"}); err == nil {
		t.Error("the token registers a service that it has no policy for")
	}
	// Roots that do not contain the agent's CA are reported as trouble that names the cause.
	w := regtest.NewWatch(t, s.dial(t, consul.TLS(&tls.Config{RootCAs: x509.NewCertPool()})))
	w.AwaitTrouble("certificate")
}
