package registry_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/registrytest"
)

func TestStatic(t *testing.T) {
	registrytest.RunInBubble(t, func(t *testing.T) registrytest.Fixture {
		instances := []registry.Instance{
			{Service: "arith", Address: "h2:1", Weight: 7, Tags: map[string]string{"k": "v"}},
			{Service: "echo", Address: "h2:1"},
			{Service: "arith", Address: "h1:1"},
		}
		static, err := registry.NewStatic(instances...)
		if err != nil {
			t.Fatal(err)
		}
		return registrytest.Fixture{Resolver: static, Instances: instances}
	}, registrytest.Announcing, registrytest.Outages, registrytest.Leases, registrytest.Documents)
}

func TestParseStatic(t *testing.T) {
	static, err := registry.ParseStatic("h2:2, [::1]:3 ,unix:///run/a.sock,h1:1")
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"arith", "echo"} {
		list, err := registry.List(t.Context(), static, service)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, in := range list {
			got = append(got, in.Service+"@"+in.Address)
		}
		want := strings.ReplaceAll("S@[::1]:3 S@h1:1 S@h2:2 S@unix:///run/a.sock", "S", service)
		if strings.Join(got, " ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if names, err := static.Services(t.Context()); len(names) > 0 || err != nil {
		t.Errorf("Services = %q, %v: addresses alone have no service", names, err)
	}
}

func TestParseStaticRefuses(t *testing.T) {
	for list, say := range map[string]string{
		"":              "use host:port",
		"a:1,,b:2":      "empty entry",
		"a:1,":          "empty entry",
		"a":             `"a" has no port: use host:port`,
		"a:1;b:2":       "use host:port",
		"a:1,b:2,a:1":   `"a:1" is listed twice`,
		"a:0":           "use 1 to 65535",
		"0.0.0.0:8972":  "use the host's own address",
		"a:1 b:2":       "host:port",
		"http://a/b":    "host:port",
		"a:1,b:99999":   "use 1 to 65535",
		"unix://,a:1":   "use unix:///path",
		"2001:db8::1:1": "[host]:port",
	} {
		if _, err := registry.ParseStatic(list); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("ParseStatic(%q) = %v, want an error with %q", list, err, say)
		}
	}
}

func TestNewStaticRefusesOneKeyTwice(t *testing.T) {
	_, err := registry.NewStatic(
		registry.Instance{Address: "a:1"},
		registry.Instance{Service: "arith", Address: "a:1"},
	)
	if err == nil || !strings.Contains(err.Error(), "remove one") {
		t.Errorf("NewStatic with an address for all services and for one = %v", err)
	}
}

func TestStaticCopiesWhatItIsGiven(t *testing.T) {
	in := registry.Instance{Service: "arith", Address: "a:1", Tags: map[string]string{"k": "v"}}
	static, err := registry.NewStatic(in)
	if err != nil {
		t.Fatal(err)
	}
	in.Tags["k"] = "changed"
	list, err := registry.List(t.Context(), static, "arith")
	if err != nil || list[0].Tags["k"] != "v" {
		t.Errorf("got %+v, %v", list, err)
	}
}

func FuzzParseStatic(f *testing.F) {
	f.Add("a:1,b:2")
	f.Add("unix:///x, [::1]:80")
	f.Fuzz(func(t *testing.T, text string) {
		static, err := registry.ParseStatic(text)
		if err != nil {
			return
		}
		list, err := registry.List(context.Background(), static, "arith")
		if err != nil || len(list) != strings.Count(text, ",")+1 {
			t.Fatalf("%q: %d instances, %v", text, len(list), err)
		}
	})
}

func ExampleParseStatic() {
	static, err := registry.ParseStatic("10.0.0.2:8972,10.0.0.1:8972")
	if err != nil {
		fmt.Println(err)
		return
	}
	list, _ := registry.List(context.Background(), static, "arith")
	for _, in := range list {
		fmt.Println(in.Service, in.Address)
	}
	// Output:
	// arith 10.0.0.1:8972
	// arith 10.0.0.2:8972
}
