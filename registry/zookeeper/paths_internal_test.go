package zookeeper

import (
	"strings"
	"testing"

	"github.com/anser-rpc/anser/registry"
)

// FuzzDecode checks that a node is decoded as an instance only of the service and under the name
// that Register would use.
func FuzzDecode(f *testing.F) {
	c := &config{prefix: "/anser"}
	for _, in := range []registry.Instance{
		{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"}, {Service: "arith", ID: "..", Address: "h:1"}, {Service: "arith", ID: "a/b", Address: "h:1"},
	} {
		record, err := registry.Encode(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add("arith", segment(in.Key()), record)
		f.Add("other", segment(in.Key()), record)
		f.Add("arith", segment(in.Key()), record[1:])
	}
	f.Fuzz(func(t *testing.T, service, name string, data []byte) {
		if registry.CheckService(service) != nil || strings.Contains(name, "/") {
			return // not a valid node in ZooKeeper
		}
		in, err := c.decode(service, name, data)
		if err == nil && (in.Validate() != nil || in.Service != service || segment(in.Key()) != name) {
			t.Fatalf("%q of %q holds %+v", name, service, in)
		}
	})
}
