package protocontract_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/emptypb"     // imported by the files
	_ "google.golang.org/protobuf/types/known/structpb"    // the same
	_ "google.golang.org/protobuf/types/known/timestamppb" // the same

	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
)

// goContract has one service with one method of one message.
func goContract(service string, m contract.Message) *contract.Schema {
	return &contract.Schema{
		Kind:     contract.Go,
		Services: []contract.Service{{Name: service, Methods: []contract.Method{{Name: "Do", Request: m.Name, Reply: m.Name}}}},
		Messages: []contract.Message{m},
	}
}

func message(name string, fields ...contract.Field) contract.Message {
	return contract.Message{Name: name, Form: contract.ByName, Fields: fields}
}

func field(name, of string) contract.Field {
	return contract.Field{Name: name, Type: contract.Type{Name: of}}
}

// link makes descriptors, which checks all names.
func link(t *testing.T, f *descriptorpb.FileDescriptorProto) protoreflect.FileDescriptor {
	t.Helper()
	fd, err := protodesc.NewFile(f, protoregistry.GlobalFiles)
	if err != nil {
		t.Fatalf("%v\n%v", err, f)
	}
	return fd
}

// Names that are the same, or that protobuf cannot have, become others.
func TestNames(t *testing.T) {
	set, err := protocontract.ToFiles(
		goContract("Order", message("a.Order", field("PostType", "string"), field("post_type", "int"), field("HTTPServer", "bool"), field("日本", "string"), field("x-y", "any"))),
		goContract("Second", message("b.Order", field("Other", "time"))),
		goContract("Third", message("a.Order", field("PostType", "string"), field("post_type", "int"), field("HTTPServer", "bool"), field("日本", "string"), field("x-y", "any"))),
		goContract("Fourth", message("b.Page[some/path/b.Order]", field("A", "string"))),
		goContract("shop.v1.Fifth", message("b.Order", field("Other", "time"))),
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(set.File) != 2 || set.File[0].GetName() != "anser_services.proto" || set.File[1].GetName() != "shop/v1/anser_services.proto" {
		t.Fatalf("the files are %v", set.File)
	}
	fd := link(t, set.File[0])
	link(t, set.File[1])
	for service, want := range map[protoreflect.Name]protoreflect.Name{"Order": "AOrder", "Second": "BOrder", "Third": "AOrder", "Fourth": "PageOrder"} {
		if got := fd.Services().ByName(service).Methods().Get(0).Input().Name(); got != want {
			t.Errorf("the message of %s is %s, want %s", service, got, want)
		}
	}
	var names []string
	for i := range fd.Messages().ByName("AOrder").Fields().Len() {
		f := fd.Messages().ByName("AOrder").Fields().Get(i)
		names = append(names, string(f.Name())+"="+f.JSONName())
	}
	if got, want := strings.Join(names, " "), "post_type=PostType post_type_2=post_type http_server=HTTPServer field_4=日本 x_y=x-y"; got != want {
		t.Errorf("the fields are %s, want %s", got, want)
	}
}

// Presence, maps, lists and messages inside messages.
func TestTypes(t *testing.T) {
	m := message("a.M",
		contract.Field{Name: "Maybe", Type: contract.Type{Name: "int"}, Presence: contract.Explicit},
		contract.Field{Name: "By", Type: contract.Type{Name: "message", Of: "a.M", Key: "int16"}},
		contract.Field{Name: "Odd", Type: contract.Type{Name: "string", Key: "float64"}},
		contract.Field{Name: "Self", Type: contract.Type{Name: "message", Of: "a.M"}, Presence: contract.Explicit},
		contract.Field{Name: "Grid", Type: contract.Type{Name: "[]int", Repeated: true}},
		contract.Field{Name: "Four", Type: contract.Type{Name: "int8", Length: 4}, Deprecated: true},
		contract.Field{Name: "Raw", Type: contract.Type{Name: "message", Of: "a.Opaque"}},
	)
	s := goContract("S", m)
	s.Messages = append(s.Messages, contract.Message{Name: "a.Opaque", Form: contract.Opaque})
	s.Services[0].Methods[0].Reply, s.Services[0].Methods[0].Oneway = "", true
	set, err := protocontract.ToFiles(s)
	if err != nil {
		t.Fatal(err)
	}
	fd := link(t, set.File[0])
	fields := fd.Messages().Get(0).Fields()
	for name, ok := range map[protoreflect.Name]bool{
		"maybe": fields.ByName("maybe").HasPresence() && fields.ByName("maybe").Kind() == protoreflect.Int64Kind,
		"by":    fields.ByName("by").IsMap() && fields.ByName("by").MapKey().Kind() == protoreflect.Int32Kind && fields.ByName("by").MapValue().Message().Name() == "M",
		"odd":   fields.ByName("odd").Message().FullName() == "google.protobuf.Value",
		"self":  fields.ByName("self").Message().Name() == "M",
		"grid":  fields.ByName("grid").Message().FullName() == "google.protobuf.ListValue" && !fields.ByName("grid").IsList(),
		"four":  fields.ByName("four").IsList() && fields.ByName("four").Options().(*descriptorpb.FieldOptions).GetDeprecated(),
		"raw":   fields.ByName("raw").Message().FullName() == "google.protobuf.Value",
	} {
		if !ok {
			t.Errorf("the field %s is %v", name, fields.ByName(name))
		}
	}
	if got := fd.Services().Get(0).Methods().Get(0).Output().FullName(); got != "google.protobuf.Empty" {
		t.Errorf("a oneway method returns %s", got)
	}
}

// Services whose names protobuf cannot have are left out, and the others are there.
func TestNamesThatProtobufCannotHave(t *testing.T) {
	set, err := protocontract.ToFiles(goContract("my-service", message("a.M")), goContract("Good", message("a.M")), &contract.Schema{Kind: contract.FlatBuffers})
	if err == nil || !strings.Contains(err.Error(), `the name "my-service"`) || !strings.Contains(err.Error(), `kind "flatbuffers" has no form`) {
		t.Error(err)
	}
	if len(set.File) != 1 || len(set.File[0].Service) != 1 || set.File[0].Service[0].GetName() != "Good" {
		t.Errorf("the files are %v", set.File)
	}
}
