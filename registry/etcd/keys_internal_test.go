package etcd

import (
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/anser-rpc/anser/registry"
)

// FuzzDecode checks that a value is decoded as an instance only under the key that Register would
// use.
func FuzzDecode(f *testing.F) {
	r := &Registry{prefix: "/anser"}
	for _, in := range []registry.Instance{
		{Service: "arith", Address: "10.0.0.1:8972", Zone: "north"},
		{Service: "arith", ID: "a/b %", Address: "unix:///run/x", Tags: map[string]string{"k": "v"}},
	} {
		record, err := registry.Encode(in)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(r.key(in), record)
		f.Add(r.key(in)+"x", record)
		f.Add(r.key(in), record[:len(record)/2])
	}
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		kv := &mvccpb.KeyValue{Key: []byte(key), Value: value}
		in, err := r.decode(kv)
		names := r.serviceNames([]*mvccpb.KeyValue{kv})
		if err != nil {
			return
		}
		if in.Validate() != nil || r.key(in) != key || !names[in.Service] || len(names) != 1 {
			t.Fatalf("%q holds %+v of the services %v", key, in, names)
		}
	})
}
