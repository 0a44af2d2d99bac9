package embedded_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/embedded"
	"github.com/anser-rpc/anser/registry/internal/regtest"
)

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	three := map[string]string{"a": "127.0.0.1:1", "b": "127.0.0.1:2", "c": "127.0.0.1:3"}
	files := &embedded.TLS{CertFile: "cert", KeyFile: "key", CAFile: "ca"}
	for name, c := range map[string]struct {
		cfg embedded.Config
		say string
	}{
		"no directory":     {embedded.Config{}, "set Dir"},
		"all interfaces":   {embedded.Config{Dir: "x", Listen: "0.0.0.0:2379"}, "set TLS, or Insecure"},
		"all interfaces 6": {embedded.Config{Dir: "x", Listen: "[::]:2379"}, "set TLS, or Insecure"},
		"one interface":    {embedded.Config{Dir: "x", Listen: "10.0.0.1:2379"}, "set TLS, or Insecure"},
		"no port":          {embedded.Config{Dir: "x", Listen: "127.0.0.1"}, "use host:port"},
		"no host":          {embedded.Config{Dir: "x", Listen: ":2379"}, "use host:port"},
		"host name":        {embedded.Config{Dir: "x", Listen: "db1:2379"}, "use the IP address"},
		"bad advertise":    {embedded.Config{Dir: "x", Advertise: "h"}, "use host:port"},
		"half of TLS":      {embedded.Config{Dir: "x", TLS: &embedded.TLS{CertFile: "cert"}}, "needs CertFile, KeyFile and CAFile"},
		"name alone":       {embedded.Config{Dir: "x", Name: "a"}, "mean nothing without Peers"},
		"not in peers":     {embedded.Config{Dir: "x", Name: "d", Peers: three}, "Peers are a, b, c"},
		"peer without TLS": {embedded.Config{Dir: "x", Name: "a", Peers: map[string]string{"a": "10.0.0.1:2380"}}, "set TLS, or Insecure"},
		"peer listen":      {embedded.Config{Dir: "x", Name: "a", Peers: three, PeerListen: "0.0.0.0:2380"}, "set TLS, or Insecure"},
		"peer port 0":      {embedded.Config{Dir: "x", Name: "a", Peers: map[string]string{"a": "127.0.0.1:0"}}, "use a fixed port"},
		"peer name":        {embedded.Config{Dir: "x", Name: "a=b", Peers: map[string]string{"a=b": "127.0.0.1:1"}}, "without comma"},
		"files missing":    {embedded.Config{Dir: t.TempDir(), Listen: "0.0.0.0:0", TLS: files}, "cert"},
	} {
		m, err := embedded.Start(t.Context(), c.cfg)
		if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.say)
		}
		if m != nil {
			t.Errorf("%s: a member comes with the error", name)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a directory was made for a configuration that is refused")
	}
}

func TestInsecureListensEverywhere(t *testing.T) {
	t.Parallel()
	m := start(t, embedded.Config{Dir: t.TempDir(), Listen: "0.0.0.0:0", Advertise: "registry.example:2379", Insecure: true})
	if m.Endpoint() != "registry.example:2379" {
		t.Errorf("endpoint %q", m.Endpoint())
	}
	r, err := m.Registry()
	if err != nil {
		t.Fatal(err)
	}
	regtest.Register(t, r, regtest.Instance("h1:1"))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert := regtest.NewCertificate(t)
	files := &embedded.TLS{CertFile: cert.CertFile, KeyFile: cert.KeyFile, CAFile: cert.CAFile}
	m := start(t, embedded.Config{Dir: t.TempDir(), Listen: "0.0.0.0:0", Advertise: "localhost:2379", TLS: files})
	r, err := m.Registry()
	if err != nil {
		t.Fatal(err)
	}
	regtest.Register(t, r, regtest.Instance("h1:1"))
	expect(t, r, "h1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	plain := dial(t, []string{m.Local()})
	if list, err := registry.List(ctx, plain, "arith"); err == nil {
		t.Errorf("a client without a certificate sees %v", list)
	}
}
