package registry_test

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry"
)

// golden is one instance with every field, and testdata/record.json is its record in registries.
// Records outlive processes: a change of the file is a change for old clients.
var golden = registry.Instance{
	ID: "pod-7f", Service: "arith", Address: "10.0.0.1:8972", Group: "blue", Version: "1.2.3",
	Zone: "eu-central-1a", Weight: 50, State: registry.Draining, Latitude: 52.52, Longitude: 13.405,
	Tags: map[string]string{"build": "2f6b", "team": "früh"},
}

func TestRecordGolden(t *testing.T) {
	want, err := os.ReadFile("testdata/record.json")
	if err != nil {
		t.Fatal(err)
	}
	got, err := registry.Encode(golden)
	if err != nil || !bytes.Equal(got, bytes.TrimSpace(want)) {
		t.Errorf("Encode = %s, %v\nwant %s", got, err, want)
	}
	in, err := registry.Decode(want)
	if err != nil || !in.Equal(golden) {
		t.Errorf("Decode = %+v, %v", in, err)
	}
}

func TestDecodeLimits(t *testing.T) {
	for name, data := range map[string]string{
		"nothing":          ``,
		"not an object":    `[]`,
		"null":             `null`,
		"no address":       `{"service":"arith"}`,
		"bad weight":       `{"service":"arith","address":"h:1","weight":-1}`,
		"number too large": `{"service":"arith","address":"h:1","weight":1e99}`,
		"unknown state":    `{"service":"arith","address":"h:1","state":"asleep"}`,
		"too much":         `{"service":"arith","address":"h:1","x":"` + strings.Repeat("x", registry.MaxRecordBytes) + `"}`,
		"nested":           strings.Repeat(`{"x":`, 20_000),
	} {
		if in, err := registry.Decode([]byte(data)); err == nil {
			t.Errorf("%s: Decode = %+v, want an error", name, in)
		}
	}
	in, err := registry.Decode([]byte(`{"service":"arith","address":"h:1","from":"a newer version"}`))
	if err != nil || in.Address != "h:1" {
		t.Errorf("Decode with a field from the future = %+v, %v", in, err)
	}
}

func TestLargestRecordFits(t *testing.T) {
	in := golden
	in.ID, in.Group, in.Version, in.Zone = text("<", 255), text("<", 255), text("<", 255), text("<", 255)
	in.Tags = map[string]string{"x": text("\x00", registry.MaxTagBytes-1)}
	data, err := registry.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	back, err := registry.Decode(data)
	if err != nil || !back.Equal(in) {
		t.Errorf("a valid instance of %d bytes does not come back: %v", len(data), err)
	}
}

func text(s string, n int) string { return strings.Repeat(s, n) }

func FuzzDecode(f *testing.F) {
	data, _ := registry.Encode(golden)
	f.Add(data)
	f.Add([]byte(`{"service":"a","address":"unix:///x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		in, err := registry.Decode(data)
		if err != nil {
			return
		}
		again, err := registry.Encode(in)
		if err != nil {
			t.Fatalf("%+v was read but cannot be written: %v", in, err)
		}
		back, err := registry.Decode(again)
		if err != nil || !back.Equal(in) {
			t.Fatalf("%+v came back as %+v, %v", in, back, err)
		}
	})
}

func ExampleEncode() {
	data, err := registry.Encode(registry.Instance{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"})
	fmt.Println(string(data), err)
	// Output: {"service":"arith","address":"10.0.0.1:8972","zone":"north"} <nil>
}
