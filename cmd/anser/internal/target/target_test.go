package target_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/target"
)

func TestResolve(t *testing.T) {
	for typed, want := range map[string]string{
		"arith":                  "etcd://h:2379/arith",
		"127.0.0.1:8972":         "127.0.0.1:8972",
		"a:1,b:2":                "a:1,b:2",
		"tcp://a:1,b:2":          "tcp://a:1,b:2",
		"unix:///run/x.sock":     "unix:///run/x.sock",
		"etcd://g:1/deep/arith":  "etcd://g:1/deep/arith",
		"file:///etc/x.json/one": "file:///etc/x.json/one",
	} {
		if got, err := target.Resolve(typed, "etcd://h:2379/"); err != nil || got != want {
			t.Errorf("Resolve(%q) = %q, %v, want %q", typed, got, err, want)
		}
	}
	if got, err := target.Resolve("arith", "etcd://h:1,i:2/prefix/deep"); err != nil || got != "etcd://h:1,i:2/prefix/deep/arith" {
		t.Errorf("with a prefix: %q, %v", got, err)
	}
	for _, registryURL := range []string{
		"zookeeper://h:1,i:2/prefix", "consul://h:1", "redis://h:1,i:2/prefix", "nacos://h:1/team", "dns://h:53", "file:///x.json",
	} {
		if got, err := target.Resolve("arith", registryURL); err != nil || got != registryURL+"/arith" {
			t.Errorf("in %s: %q, %v", registryURL, got, err)
		}
	}
	for registryURL, want := range map[string]string{
		"mdns:///": "mdns:///arith", "mdns://": "mdns:///arith",
		"dns:///{service}.shop.internal:8972":            "dns:///arith.shop.internal:8972",
		"dns://10.0.0.53,h:53/_{service}._tcp.shop.test": "dns://10.0.0.53,h:53/_arith._tcp.shop.test",
	} {
		if got, err := target.Resolve("arith", registryURL); err != nil || got != want {
			t.Errorf("in %s: %q, %v, want %q", registryURL, got, err, want)
		}
	}
	for typed, say := range map[string]string{
		"": "empty", "localhost": "no port: use host:port", "::1": "", "h/x": "", "é": "service name", "gopher://h:1/x": "unknown scheme",
	} {
		_, err := target.Resolve(typed, "etcd://h:2379")
		if say != "" && (err == nil || !strings.Contains(err.Error(), say)) {
			t.Errorf("Resolve(%q): %v, want %q", typed, err, say)
		}
	}
}

func TestDefaultRegistry(t *testing.T) {
	t.Setenv(target.RegistryVariable, "")
	if got := target.RegistryURL(); got != target.DefaultRegistry {
		t.Error(got)
	}
	t.Setenv(target.RegistryVariable, "etcd://h:1")
	if got := target.RegistryURL(); got != "etcd://h:1" {
		t.Error(got)
	}
}

// Registries for which KeepsRules is true support rules, and the others do not.
func TestKeepsRules(t *testing.T) {
	file := filepath.ToSlash(filepath.Join(t.TempDir(), "services.json"))
	for _, registryURL := range []string{
		"etcd://127.0.0.1:1", "zookeeper://127.0.0.1:1", "consul://127.0.0.1:1", "redis://127.0.0.1:1", "nacos://127.0.0.1:1",
		"dns:///{service}.test:1", "mdns:///", "file://" + file,
	} {
		r, err := target.Open(target.Source{URL: registryURL})
		if err != nil {
			t.Fatal(err)
		}
		full, err := target.Resolve("arith", registryURL)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Store(); (err == nil) != target.KeepsRules(full) {
			t.Errorf("%s keeps rules: %v, and its Store is %v", registryURL, target.KeepsRules(full), err)
		}
		if r.CanList() == strings.HasPrefix(registryURL, "dns:") {
			t.Errorf("%s can list its services: %v", registryURL, r.CanList())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if target.KeepsRules("127.0.0.1:1") || target.KeepsRules("tcp://127.0.0.1:1") {
		t.Error("an address keeps rules")
	}
}
