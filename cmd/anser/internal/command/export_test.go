package command_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/contacts"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/desk"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/shop"
	"github.com/anser-rpc/anser/cmd/anser/internal/protofile"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/protocols"
)

// The services of the four kinds of contracts.
type (
	exportDesk struct{ desk.UnimplementedDesk }
	exportBook struct{}
	exportShop struct{ shop.UnimplementedShopServer }
)

func (exportDesk) Ask(_ context.Context, in *desk.Question) (*desk.Answer, error) {
	return &desk.Answer{Text: in.Text + " about " + in.About[0].Name}, nil
}

func (exportDesk) DivMod(_ context.Context, a, b int) (int, int, error) { return a / b, a % b, nil }

func (exportBook) GetContactList(_ context.Context, in *contacts.UserInfo) (*contacts.Contacts, error) {
	return &contacts.Contacts{List: []contacts.UserInfo{*in}}, nil
}

func (exportBook) Count(context.Context, string, bool) (int32, error) { return 0, nil }

func (exportBook) Oldest(context.Context, int32) ([]contacts.UserInfo, error) { return nil, nil }

func (exportShop) Buy(_ context.Context, in *shop.Thing) (*shop.Receipt, error) {
	out := new(shop.Receipt)
	out.SetTotal(float64(in.GetCount()) * 2)
	return out, nil
}

// exportServer serves contracts of all kinds, to stock clients too.
func exportServer(t *testing.T) string {
	t.Helper()
	s := anser.NewServer(protocols.All(), anser.NoSignals())
	for _, err := range []error{
		desk.RegisterDesk(s, exportDesk{}),
		contacts.RegisterAddressBookServer(s, exportBook{}),
		shop.RegisterShopServer(s, exportShop{}),
		anser.Handle(s, "plain.Sum.Add", func(_ context.Context, in *struct{ A, B int64 }) (*struct{ Total int64 }, error) {
			return &struct{ Total int64 }{in.A + in.B}, nil
		}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return listen(t, s)
}

// callExported calls a method with what was exported, as a stock client does.
func callExported(t *testing.T, files *protoregistry.Files, address string, name protoreflect.FullName, in string) string {
	t.Helper()
	found, err := files.FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	m := found.(protoreflect.MethodDescriptor)
	request, reply := dynamicpb.NewMessage(m.Input()), dynamicpb.NewMessage(m.Output())
	if err := protojson.Unmarshal([]byte(in), request); err != nil {
		t.Fatal(err)
	}
	body, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.Post("http://"+address+"/"+string(name.Parent())+"/"+string(name.Name()), "application/proto", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	data, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != 200 {
		t.Fatalf("%s: %s %s, %v", name, r.Status, data, err)
	}
	if err := proto.Unmarshal(data, reply); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(protojson.MarshalOptions{}.Format(reply), " ", "")
}

// compiled returns the .proto files in a folder, compiled.
func compiled(t *testing.T, dir string) *protoregistry.Files {
	t.Helper()
	var list []string
	if err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".proto") {
			list = append(list, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	set, err := protofile.Compile(t.Context(), []string{dir}, list)
	if err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&descriptorpb.FileDescriptorSet{File: set.Files})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// What is exported from files and from a server compiles, and calls the server.
func TestExport(t *testing.T) {
	address := exportServer(t)
	sources, err := filepath.Abs("../gen/gentest")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	run(t, "export", filepath.Join(sources, "desk"), filepath.Join(sources, "shop"), filepath.Join(sources, "contacts"), "-I", sources,
		"--out", "files").expect(t, 0, "new     files/office/anser_services.proto", "new     files/shop/shop.proto", "new     files/anser/options.proto", "new     files/anser_services.proto")
	run(t, "export", address, "--out", "server", "--descriptors", "all.binpb").expect(t, 0, "new     server/plain/anser_services.proto", "new     all.binpb")
	run(t, "export", address, "--out", "server", "--descriptors", "all.binpb").expect(t, 0, "All files are up to date.")

	encoded, err := os.ReadFile("all.binpb")
	if err != nil {
		t.Fatal(err)
	}
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(encoded, set); err != nil {
		t.Fatal(err)
	}
	fromSet, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	for from, files := range map[string]*protoregistry.Files{"files": compiled(t, "files"), "server": compiled(t, "server"), "descriptors": fromSet} {
		for _, c := range []struct {
			name    protoreflect.FullName
			in, out string
		}{
			{"office.Desk.Ask", `{"text": "why", "About": [{"Name": "tea"}]}`, `{"Text":"whyabouttea"}`},
			{"office.Desk.DivMod", `{"a": "38", "b": "7"}`, `{"q":"5","r":"3"}`},
			{"AddressBook.getContactList", `{"userName": "ann", "id": "5", "picture": "AAE="}`, `{"list":[{"userName":"ann","picture":"AAE=","id":"5"}]}`},
			{"gentest.shop.Shop.Buy", `{"name": "tea", "count": 3}`, `{"total":6}`},
			{"plain.Sum.Add", `{"A": "1", "B": "2"}`, `{"Total":"3"}`},
		} {
			if from == "files" && c.name == "plain.Sum.Add" {
				continue
			}
			if out := callExported(t, files, address, c.name, c.in); out != c.out {
				t.Errorf("%s, from %s: %s, want %s", c.name, from, out, c.out)
			}
		}
	}
	for name, comment := range map[string]string{
		"files/office/anser_services.proto":  "  // DivMod divides.\n  rpc DivMod(DivModRequest) returns (DivModResponse);",
		"server/office/anser_services.proto": "  // DivMod divides.\n  rpc DivMod(DivModRequest) returns (DivModResponse);",
		"server/anser_services.proto":        "  // addresses, if any\n  repeated string address_list = 4;",
	} {
		text, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(text), comment) {
			t.Errorf("%s: %v, without %q:\n%s", name, err, comment, text)
		}
	}
}

// A contract in protobuf comes from a server with its comments and options.
func TestExportProtobufFromServer(t *testing.T) {
	address := exportServer(t)
	t.Chdir(t.TempDir())
	run(t, "export", address, "--out", ".").expect(t, 0)
	var text []byte
	filepath.WalkDir(".", func(path string, _ os.DirEntry, _ error) error {
		if filepath.Base(path) == "shop.proto" {
			text, _ = os.ReadFile(path)
		}
		return nil
	})
	for _, want := range []string{"edition = \"2023\";\n", "  // It fails with NotFound for an unknown one.\n  rpc Buy(Thing) returns (Receipt);", "option (.anser.oneway) = true;", "option idempotency_level = NO_SIDE_EFFECTS;"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("without %q:\n%s", want, text)
		}
	}
}

// What was exported is not a contract of the project.
func TestExportedFilesAreNotGenerated(t *testing.T) {
	project(t)
	put(t, "doc.go", "package m\n")
	put(t, "desk.kiss", "@message:A{int x:1;}\n@service:Desk{A get(A in);}\n")
	run(t, "export", "--out", "proto").expect(t, 0, "new     proto/anser_services.proto", "new     proto/shop.proto")
	run(t, "gen").expect(t, 0, "new     desk.anser.go", "new     shop.pb.go")
	made, err := filepath.Glob("proto/*.go")
	if err != nil || slices.Contains(made, "proto/shop.pb.go") {
		t.Errorf("%q, %v", made, err)
	}
}

// Services of FlatBuffers are left out, and the others are exported.
func TestExportLeavesFlatBuffersOut(t *testing.T) {
	s := anser.NewServer(anser.NoSignals())
	source := contract.NewSource(`{"kind":"flatbuffers","services":[{"name":"Tables","methods":[{"name":"Do","request":"T","reply":"T"}]}],"messages":[{"name":"T"}]}`)
	type table struct{ A int }
	for _, err := range []error{
		anser.Handle(s, "Tables.Do", func(_ context.Context, in *table) (*table, error) { return in, nil }, anser.Contract(source)),
		anser.Handle(s, "Plain.Do", func(_ context.Context, in *table) (*table, error) { return in, nil }),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	address := listen(t, s)
	t.Chdir(t.TempDir())
	run(t, "export", address, "--out", "x").expect(t, 0, "Tables is left out", "new     x/anser_services.proto")
}

func TestExportMistakes(t *testing.T) {
	project(t)
	run(t, "export").expect(t, 2, "say where to: --out FOLDER")
	run(t, "export", "--out", "x", "shop.proto", "nowhere.proto").expect(t, 1, "there is no file nowhere.proto")
	run(t, "export", "--out", "x", "orders", "shop.proto").expect(t, 2, "a server is exported by itself")
	put(t, "bad.proto", "syntax = \"proto3\";\nmessage A { B b = 1; }\n")
	run(t, "export", "--out", "x").expect(t, 1, "bad.proto:2:13: ")
	if _, err := os.Stat("x"); err == nil {
		t.Error("files were written for contracts with a mistake")
	}
	if err := os.Remove("bad.proto"); err != nil {
		t.Fatal(err)
	}
	run(t, "export", "--out", ".").expect(t, 1, "shop.proto exists and is not generated")
	put(t, "notes.txt", "mine")
	run(t, "export", "--descriptors", "notes.txt").expect(t, 2, "notes.txt exists and has no descriptors")
	run(t, "export", "127.0.0.1:1", "--out", "x").expect(t, 3)
}
