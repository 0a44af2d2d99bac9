package exchange_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/msgpack"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
)

// What clients write into the headers of calls.
func FuzzHeaders(f *testing.F) {
	f.Add("x-key", "value", "100m", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "/test.Doors/Open", "identity, gzip")
	f.Add("x-bin", "AAEC, AA==", "99999999H", "", "/a/b.c", "gzip;q=0")
	f.Fuzz(func(t *testing.T, key, value, timeout, trace, path, accept string) {
		var md exchange.Metadata
		for range 2 {
			md.Add(strings.ToLower(key), value)
		}
		md.Add("traceparent", trace)
		if md.Trace != (anser.Trace{}) && (len(trace) < 55 || md.Trace.TraceID == [16]byte{}) {
			t.Errorf("the trace %q is %+v", trace, md.Trace)
		}
		for k := range md.Map() {
			if exchange.Reserved(k) && !strings.HasPrefix(k, "anser") && k == strings.ToLower(key) {
				t.Errorf("the reserved header %q is metadata", k)
			}
		}
		for _, field := range exchange.Fields(map[string][]string{key: {value}}) {
			if !strings.HasSuffix(field.Name, "-bin") && !exchange.Printable(field.Value) {
				t.Errorf("the value %q is sent", field.Value)
			}
		}
		if d, ok := exchange.ParseTimeout(timeout); ok && (d < 0 || len(timeout) > 9) || !ok && d != 0 {
			t.Errorf("the timeout %q is %v, %v", timeout, d, ok)
		} else if std, err := time.ParseDuration(strings.ToLower(timeout)); ok && err == nil && len(timeout) > 1 && timeout[len(timeout)-1] == 'S' && std != d {
			t.Errorf("the timeout %q is %v, want %v", timeout, d, std)
		}
		if name, ok := exchange.NameOf(path); ok {
			i := strings.LastIndexByte(name, '.')
			if i <= 0 || "/"+name[:i]+"/"+name[i+1:] != path {
				t.Errorf("the path %q is that of %q", path, name)
			}
		}
		encoded := exchange.PercentEncode(value)
		if plain, err := url.PathUnescape(encoded); err != nil || plain != strings.ToValidUTF8(value, "�") || !exchange.Printable(encoded) {
			t.Errorf("%q is encoded as %q, which is %q, %v", value, encoded, plain, err)
		}
		if c, name := exchange.Choose(accept); (c != nil) != (name != "") || c != nil && !exchange.Accepts(accept, name) {
			t.Errorf("of %q, %q is chosen", accept, name)
		}
	})
}

// What a client sends for a method of Go types that is forwarded.
func FuzzForwarded(f *testing.F) {
	m := forwardedMethod(f)
	strictly := new(exchange.Directory).RequestJSON()
	for _, seed := range []string{
		`{"A":7,"B":["x"]}`, `{"A":"7"}`, `{"C":{"A":1,"C":{"\\u0044":{}}}}`, ` [ { } , [ ] ] `, "\x08\x07\x12\x01x", "\x82\xa1A\x07\xa1B\x91\xa1x", "\xdd\xff\xff\xff\xff", "\x81\xa1A\xd7\xff\x00\x00\x00\x00\x00\x00\x00\x00", "\xc0", "null",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var in codec.Encoded
		if m.Decode(exchange.JSON, data, &in) == nil && (in.Codec != codec.JSONID || !json.Valid(in.Data)) {
			t.Errorf("%q goes on as %q", data, in.Data)
		}
		if m.Decode(strictly, data, &in) == nil && m.Decode(exchange.JSON, data, new(codec.Encoded)) != nil {
			t.Errorf("%q is taken strictly, and not otherwise", data)
		}
		if m.Decode(m.ProtobufCodec(), data, &in) == nil {
			if in.Codec != codec.JSONID || !json.Valid(in.Data) {
				t.Errorf("%q goes on as %q", data, in.Data)
			}
			out, fault := m.Encode(m.ProtobufCodec(), nil, &in)
			var again codec.Encoded
			if fault != nil || m.Decode(m.ProtobufCodec(), out, &again) != nil {
				t.Errorf("%q goes on as %q, which is %q in protobuf, %v", data, in.Data, out, fault)
			}
		}
		if m.Decode(packs, data, &in) != nil {
			return
		}
		if in.Codec != codec.MsgpackID || !bytes.Equal(in.Data, data) {
			t.Errorf("%q goes on as %q", data, in.Data)
		}
		if out, fault := m.Encode(packs, nil, &in); fault != nil || !bytes.Equal(out, data) {
			t.Errorf("%q comes back as %q, %v", data, out, fault)
		}
		var v any
		if err := packs.Unmarshal(data, &v); err != nil && strings.Contains(err.Error(), "complete") {
			t.Errorf("%q goes on, and is %v", data, err)
		}
	})
}

var packs codec.Codec = msgpack.New()

// forwardedMethod returns a method of Go types that is forwarded.
func forwardedMethod(f testing.TB) *exchange.Method {
	f.Helper()
	schema, err := json.Marshal(&contract.Schema{
		Kind:     contract.Go,
		Services: []contract.Service{{Name: "Arith", Methods: []contract.Method{{Name: "Mul", Request: "args", Reply: "args"}}}},
		Messages: []contract.Message{{Name: "args", Form: contract.ByName, Fields: []contract.Field{
			{Name: "A", Type: contract.Type{Name: "int64"}},
			{Name: "B", Type: contract.Type{Name: "string", Repeated: true}},
			{Name: "C", Type: contract.Type{Name: "message", Of: "args"}},
			{Name: "D", Type: contract.Type{Name: "message", Of: "args", Key: "string"}},
		}}},
	})
	if err != nil {
		f.Fatal(err)
	}
	encoded, s := reflect.TypeFor[codec.Encoded](), anser.NewServer()
	f.Cleanup(func() { s.Close() })
	err = s.HandleDynamic([]anser.DynamicMethod{{
		Name: "Arith.Mul", Request: encoded, Reply: encoded, Foreign: true, Contract: contract.NewSource(string(schema)),
		Handle: func(_ context.Context, in any) (any, error) { return in, nil },
	}})
	if err != nil {
		f.Fatal(err)
	}
	m := exchange.NewDirectory(s).FindName("Arith.Mul")
	if m == nil || !m.Forwarded || !m.Packs || m.Mapped == nil {
		f.Fatalf("%+v", m)
	}
	return m
}
