package target_test

import (
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
	for _, registryURL := range []string{"zookeeper://h:1,i:2/prefix", "consul://h:1", "file:///x.json"} {
		if got, err := target.Resolve("arith", registryURL); err != nil || got != registryURL+"/arith" {
			t.Errorf("in %s: %q, %v", registryURL, got, err)
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
	if got := target.Registry(); got != target.DefaultRegistry {
		t.Error(got)
	}
	t.Setenv(target.RegistryVariable, "etcd://h:1")
	if got := target.Registry(); got != "etcd://h:1" {
		t.Error(got)
	}
}
