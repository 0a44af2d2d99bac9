package gateway_test

import (
	"net/rpc"
	netjsonrpc "net/rpc/jsonrpc"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// A client of net/rpc over gob, which the gateway cannot translate, learns why its call fails, and
// its connection goes on. Over JSON-RPC the same call is forwarded.
func TestClientsOfNetRPC(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "arith", 1)
	c, err := rpc.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"Arith.Mul", "arith/Arith.Mul", "Arith.Mul"} {
		var out reply
		err := c.Call(name, &args{6, 7}, &out)
		want := `rpc: method "` + name + `" is forwarded to another server, which is not possible over net/rpc with gob: ` +
			"call it over JSON-RPC or another protocol, or call the other server itself"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %+v, %v, want %s", name, out, err, want)
		}
	}
	if err := c.Call("Arith.Nope", &args{6, 7}, new(reply)); err == nil || !strings.Contains(err.Error(), `method "Arith.Nope" is not served here, nor forwarded over this protocol`) {
		t.Error(err)
	}
	if calls := g.Stats().Calls; calls != 0 {
		t.Errorf("%d calls were forwarded", calls)
	}
	j, err := netjsonrpc.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var out reply
	if err := j.Call("Arith.Mul", &args{6, 7}, &out); err != nil || out.C != 42 {
		t.Errorf("%+v, %v", out, err)
	}
}
