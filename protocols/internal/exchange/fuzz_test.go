package exchange_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
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
