package rpcxlayout_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry"
	"github.com/anser-rpc/anser/registry/internal/rpcxlayout"
)

// What stock rpcx writes is an instance.
func TestServersOfRPCX(t *testing.T) {
	for value, want := range map[string]registry.Instance{
		"":                            {},
		"weight=7":                    {Weight: 700},
		"weight=0":                    {Weight: 100},
		"weight=99999999":             {Weight: registry.MaxWeight},
		"state=inactive&group=test":   {State: registry.Disabled, Group: "test"},
		"group=a&group=b":             {Group: "a"},
		"latitude=48.1&longitude=11.": {Latitude: 48.1, Longitude: 11},
		"tps=3&calls=7.25&owner=me":   {Tags: map[string]string{"owner": "me"}},
	} {
		want.Service, want.Address = "Arith", "rpcx://10.0.0.7:8972"
		got, err := rpcxlayout.Decode("Arith", "tcp@10.0.0.7:8972", []byte(value))
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: %+v, %v, want %+v", value, got, err, want)
		}
	}
	for name, value := range map[string]string{
		"kcp@10.0.0.7:8972": "", "tcp@": "", "tcp@10.0.0.7": "", "10.0.0.7:8972": "", "tcp@10.0.0.7:1": "weight=x", "tcp@10.0.0.7:2": "%zz", "tcp@10.0.0.7:3": "latitude=200",
		"tcp@10.0.0.7:4": strings.Repeat("x", 200<<10), "tcp@10.0.0.7:5": "anser=nonsense",
	} {
		if in, err := rpcxlayout.Decode("Arith", name, []byte(value)); err == nil {
			t.Errorf("%s %.20q: %+v and no error", name, value, in)
		}
	}
	if rpcxlayout.IsServer("Arith") || rpcxlayout.IsServer("a@b/c") || !rpcxlayout.IsServer("tcp@[::1]:1") {
		t.Error("what is a server")
	}
}

// An instance of Anser is the same after it was written and read, and rpcx sees what it knows of.
func TestInstancesOfAnser(t *testing.T) {
	for want, in := range map[string]registry.Instance{
		"anser=h%3A1":                                                         {Address: "h:1"},
		"anser=tls%3A%2F%2Fh%3A1&weight=5":                                    {Address: "tls://h:1", Weight: 500},
		"anser=h%3A1&anser-weight=30&weight=1":                                {Address: "h:1", Weight: 30},
		"anser=h%3A1&anser-state=draining&state=inactive":                     {Address: "h:1", State: registry.Draining},
		"anser=h%3A1&group=g&state=inactive&x=y&zone=z":                       {Address: "h:1", State: registry.Disabled, Group: "g", Zone: "z", Tags: map[string]string{"x": "y"}},
		"anser=h%3A1&anser-id=one&latitude=48.5&longitude=-1e-09&version=1.2": {Address: "h:1", ID: "one", Latitude: 48.5, Longitude: -1e-9, Version: "1.2"},
		"": {Address: "rpcx://h:1"},
	} {
		in.Service = "Arith"
		name, err := rpcxlayout.Name(in)
		if err != nil || name != "tcp@h:1" {
			t.Errorf("%q, %v", name, err)
		}
		value, err := rpcxlayout.Encode(in, nil)
		if err != nil || string(value) != want {
			t.Errorf("%s, %v, want %s", value, err, want)
		}
		more, err := rpcxlayout.Encode(in, url.Values{"owner": {"me"}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := rpcxlayout.Decode("Arith", name, more, "owner"); err != nil || !got.Equal(in) {
			t.Errorf("%+v, %v, want %+v", got, err, in)
		}
	}
	for _, address := range []string{"unix:///run/x.sock", "wss://h:1/path"} {
		if name, err := rpcxlayout.Name(registry.Instance{Service: "Arith", Address: address}); err == nil {
			t.Errorf("%s is %q", address, name)
		}
	}
}

// Whatever a registry holds is a valid instance, or an error.
func FuzzDecode(f *testing.F) {
	f.Add("tcp@10.0.0.7:8972", "weight=7&state=inactive&group=g&latitude=1&anser=h:1")
	f.Fuzz(func(t *testing.T, name, value string) {
		in, err := rpcxlayout.Decode("Arith", name, []byte(value))
		if err == nil && in.Validate() != nil {
			t.Errorf("%q %q is %+v", name, value, in)
		}
	})
}
