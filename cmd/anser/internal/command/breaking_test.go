package command_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/shop"
	"github.com/anser-rpc/anser/registry"
)

func gitIn(t *testing.T, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestBreaking(t *testing.T) {
	project(t)
	gitIn(t, "init", "-q", "-b", "main")
	gitIn(t, "add", ".")
	gitIn(t, "commit", "-q", "-m", "first")
	run(t, "breaking", "git:main", ".").expect(t, 0, "The contracts are the same.")
	put(t, "shop.proto", strings.Replace(shopProto, "string name = 1;", "string title = 1; int32 n = 2;", 1))
	run(t, "breaking", "git:main", ".").expect(t, 1, "BREAKS JSON", "shop.Thing.name (shop.proto:4:17)", "the field is called title now", "FINE", "shop.Thing.n")
	run(t, "breaking", "git:main", "shop.proto", "--level", "wire").expect(t, 0, "BREAKS JSON")
	run(t, "breaking", "git:main:shop.proto", "shop.proto", "--json").expect(t, 1, `"breaks": true`, `"level": "json"`)
	put(t, "shop.proto", strings.Replace(shopProto, "string name", "int32 name", 1))
	run(t, "breaking", "git:main", ".").expect(t, 1, "BREAKS THE WIRE", "the type is int32, and was string")
	run(t, "breaking", "git:none", ".").expect(t, 1, "git: ")
	run(t, "breaking", "git:--output=x", ".").expect(t, 2, "names no commit")
	run(t, "breaking", "git:main:none", ".").expect(t, 2, "main has no none")
	run(t, "breaking", "old/none.proto", ".").expect(t, 2, "there is no file old/none.proto")
	run(t, "breaking", ".", ".", "--level", "all").expect(t, 2, "use wire, json or source")
	if err := os.Remove("shop.proto"); err != nil {
		t.Fatal(err)
	}
	run(t, "breaking", "git:main", ".").expect(t, 1, "there is no contract in .")
}

// market serves the contract of package shop.
type market struct{ shop.UnimplementedShopServer }

// The contract of a running server is compared with files.
func TestBreakingOfAServer(t *testing.T) {
	at := serveWith(t, func(s *anser.Server) error { return shop.RegisterShopServer(s, market{}) })
	text, err := os.ReadFile("../gen/gentest/shop/shop.proto")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	put(t, "shop.proto", string(text))
	run(t, "breaking", at, "shop.proto").expect(t, 0, "FINE", "gentest.shop.Closed (shop.proto:", "the service is new")
	put(t, "shop.proto", strings.Replace(string(text), "int32 count = 2", "string count = 2", 1))
	run(t, "breaking", at, ".").expect(t, 1, "BREAKS THE WIRE", "gentest.shop.Thing.count (shop.proto:")
	none := serveWith(t, func(s *anser.Server) error {
		return anser.Handle(s, "A.B", func(context.Context, *anser.None) (*anser.None, error) { return nil, nil })
	})
	run(t, "breaking", none, ".").expect(t, 1, "has no methods with a contract")
	run(t, "breaking", none, none).expect(t, 0, "The contracts are the same.")
}

// serveWith runs a server with the methods that add adds, and returns its address.
func serveWith(t *testing.T, add func(*anser.Server) error) string {
	t.Helper()
	s := anser.NewServer()
	if err := add(s); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-served
	})
	return l.Addr().String()
}

func TestDescribeWithContract(t *testing.T) {
	at := serveWith(t, func(s *anser.Server) error { return shop.RegisterShopServer(s, market{}) })
	run(t, "describe", at).expect(t, 0, "server stream", "client stream")
	run(t, "describe", at, "gentest.shop.Shop.Buy").expect(t, 0,
		"It fails with NotFound for an unknown one.", "contract: protobuf, with the fingerprint ", `"name": ""`)
	run(t, "call", at, "gentest.shop.Shop.List").expect(t, 4, "the server does not implement the method gentest.shop.Shop.List")
	text, err := os.ReadFile("../gen/gentest/shop/shop.proto")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	put(t, "shop.proto", string(text))
	run(t, "describe", at, "--contract", ".").expect(t, 0, "The contracts are the same.")
	put(t, "shop.proto", strings.Replace(strings.Replace(string(text), "double total = 1", "string total = 1", 1), "rpc Old(", "rpc New(", 1))
	run(t, "describe", at, "--contract", "shop.proto").expect(t, 1,
		"gentest.shop.Shop.Buy: its contract differs", "gentest.shop.Shop.New: the server does not have it",
		"gentest.shop.Shop.Old: the files have no such method", "anser breaking shop.proto "+at)
	run(t, "describe", at, "gentest.shop.Shop.Buy", "--contract", ".").expect(t, 2, "is about all methods")
}

// Instances with different contracts are shown.
func TestLsShowsContractsThatDiffer(t *testing.T) {
	tags := func(print string) map[string]string {
		return map[string]string{anser.ContractTag + "shop.Shop": "Buy=" + print + ",Sell=1111"}
	}
	url, _ := fileRegistry(t,
		registry.Instance{Service: "shop", Address: "a:1", Tags: tags("1234")},
		registry.Instance{Service: "shop", Address: "a:2", Tags: tags("1234")},
		registry.Instance{Service: "shop", Address: "a:3", Tags: tags("5678")},
		registry.Instance{Service: "shop", Address: "a:4"})
	r := run(t, "ls", "--registry", url)
	r.expect(t, 0, "contracts differ: shop.Shop.Buy of service shop: a:1, a:2 against a:3")
	if strings.Contains(r.out, "Sell") {
		t.Errorf("contracts that are the same are shown:\n%s", r.out)
	}
}
