package command_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/depot"
)

const cratesSchema = "namespace crates;\ntable Crate {\n  name:string;\n}\nrpc_service Crates { Get(Crate):Crate; }\n"

// Schemas of FlatBuffers are generated from, checked and compared like other contracts.
func TestFlatBuffers(t *testing.T) {
	t.Chdir(t.TempDir())
	put(t, "go.mod", "module example.com/m\n")
	put(t, "m.go", "package m\n")
	put(t, "crates.fbs", cratesSchema)
	run(t, "gen", "--check").expect(t, 1, "missing  crates.anser.go", "missing  crates.fbs.go", "out of date: run anser gen")
	run(t, "gen").expect(t, 0, "new     crates.anser.go", "new     crates.fbs.go")
	run(t, "gen", "*.fbs", "--check").expect(t, 0, "2 files are up to date.")
	put(t, "old.fbs", cratesSchema)
	put(t, "crates.fbs", strings.Replace(cratesSchema, "  name:string;", "  number:uint;\n  name:string;", 1))
	run(t, "gen", "crates.fbs", "--check").expect(t, 1, "differs  crates.anser.go", "differs  crates.fbs.go")
	run(t, "breaking", "old.fbs", "crates.fbs").expect(t, 1, "BREAKS THE WIRE", "crates.Crate.name (crates.fbs:4:3)", "the field has the number 2, and had 1", "FINE", "crates.Crate.number")
	put(t, "crates.fbs", strings.Replace(cratesSchema, "string", "sting", 1))
	run(t, "gen", "crates.fbs").expect(t, 1, "crates.fbs:3:8: there is no type sting")
}

// crates serves the contract of package depot.
type crates struct{ depot.UnimplementedDepotServer }

func (crates) Echo(_ context.Context, in *depot.CrateT) (*depot.CrateT, error) { return in, nil }

func (crates) List(_ context.Context, in *depot.QueryT, out anser.Sender[depot.CrateT]) error {
	for _, name := range []string{"a", "b"} {
		if err := out.Send(&depot.CrateT{Name: name, Place: in.Place, Weight: 1.5}); err != nil {
			return err
		}
	}
	return nil
}

func TestCallsOfFlatBuffers(t *testing.T) {
	at := serveWith(t, func(s *anser.Server) error { return depot.RegisterDepotServer(s, crates{}) })
	run(t, "describe", at).expect(t, 0, "depot.v1.Depot.Get", `{"name": "", "place": "Yard"}`, "server stream")
	run(t, "describe", at, "depot.v1.Depot.Get").expect(t, 0,
		"Get returns a crate, or NotFound.", "contract: flatbuffers, with the fingerprint", "request table depot.v1.Query", "reply table depot.v1.Crate", `"content_type": "Note"`)
	run(t, "call", at, "depot.v1.Depot.Echo", `{"name": "big", "place": "Ship", "care": "Cold Heavy", "content_type": "Part", "content": {"metal": "Iron"}, "bytes": [1, 2]}`).expect(t, 0,
		`"name": "big"`, `"care": "Cold Heavy"`, `"content_type": "Part"`, `"metal": "Iron"`)
	run(t, "call", at, "depot.v1.Depot.List", `{"place": 0}`).expect(t, 0, `{"name":"a","place":"Yard"`, `{"name":"b","place":"Yard"`)
	run(t, "call", at, "depot.v1.Depot.Echo", `{"nam": "big"}`).expect(t, 2, "the message has the unknown key nam")
	run(t, "call", at, "depot.v1.Depot.Echo", `{"name": "", "place": "Moon"}`).expect(t, 4, `"Moon" is not a value of depot.v1.Place: it has Yard, Hall, Ship`)
	text, err := os.ReadFile("../gen/gentest/depot/depot.fbs")
	if err != nil {
		t.Fatal(err)
	}
	run(t, "breaking", at, "../gen/gentest/depot/depot.fbs", "-I", "../gen/gentest/depot").expect(t, 0, "FINE", "depot.v1.Nothing")
	run(t, "describe", at, "--contract", "../gen/gentest/depot/depot.fbs").expect(t, 0, "The contracts are the same.")
	t.Chdir(t.TempDir())
	put(t, "parts.fbs", "namespace parts; enum Metal : int { Iron, Zinc } table Part { name:string; metal:Metal = Zinc; }")
	changed := strings.Replace(strings.Replace(string(text), "parts/parts.fbs", "parts.fbs", 1), "weight:double = 1.5", "weight:float", 1)
	put(t, "depot.fbs", changed)
	run(t, "breaking", at, "depot.fbs").expect(t, 1, "depot.v1.Crate.weight (depot.fbs:22:3)", "the type is float, and was double")
	run(t, "describe", at, "--contract", "depot.fbs").expect(t, 1, "depot.v1.Depot.Get: its contract differs")
}
