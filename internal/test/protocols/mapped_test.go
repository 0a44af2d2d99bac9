package protocols_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/anser-rpc/anser"
)

// Parcel has a field of every kind that a Go type can have.
type Parcel struct {
	ID       int64
	Small    int8
	Count    uint32 `json:"count"`
	Big      uint64
	Weight   float32
	Price    float64
	Label    string `json:"label"`
	Data     []byte
	Fragile  bool
	Sent     time.Time
	Note     *string `json:"note,omitempty"`
	Inner    *Parcel
	Parts    []Parcel
	Names    []string
	Sizes    [2]int
	Prices   map[string]float64
	ByNumber map[int]Parcel
	Any      any
	Grid     [][]int
	Stamp
	Raw  json.RawMessage
	Wait time.Duration
}

// Stamp is embedded.
type Stamp struct{ Country string }

// Level is a message that is not a struct.
type Level []int

// Depot is a service with Go types alone.
type Depot struct{}

// Echo returns the parcel.
func (*Depot) Echo(_ context.Context, in *Parcel) (*Parcel, error) { return in, nil }

// DivMod has several arguments and results.
func (*Depot) DivMod(_ context.Context, a, b int64) (q, r int64, err error) {
	if b == 0 {
		return 0, 0, anser.Errorf(anser.InvalidArgument, "division by zero")
	}
	return a / b, a % b, nil
}

// Up returns the level one higher.
func (*Depot) Up(_ context.Context, in *Level) (*Level, error) {
	out := Level{}
	for _, n := range *in {
		out = append(out, n+1)
	}
	return &out, nil
}

const parcels anser.ServerStreamMethod[Parcel, Parcel] = "Depot.Parts"

func addDepot(s *anser.Server) {
	if err := s.Register(new(Depot), anser.Params("DivMod(a, b) (q, r)")); err != nil {
		panic(err)
	}
	err := parcels.Handle(s, func(_ context.Context, in *Parcel, out anser.Sender[Parcel]) error {
		for i := range in.Parts {
			if err := out.Send(&in.Parts[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
}

const parcel = `{"ID":"9007199254740993","Small":-3,"count":7,"Big":"18446744073709551615","Weight":1.5,"Price":0.1,
	"label":"tea","Data":"AAEC","Fragile":true,"Sent":"2026-01-02T03:04:05Z","note":"","Inner":{"label":"inside"},
	"Parts":[{"ID":"1"},{"ID":"2"}],"Names":["a","b"],"Sizes":["1","2"],"Prices":{"x":2},
	"ByNumber":{"-4":{"label":"four"}},"Any":{"free":[1,"two"]},"Grid":[[1,2],[3]],"Country":"NL","Raw":{"a":null},"Wait":"5"}`

// reflected returns the files that contain a symbol.
func reflected(t *testing.T, conn *grpc.ClientConn, symbol string) *protoregistry.Files {
	t.Helper()
	st, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.CloseSend()
	st.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol}})
	out, err := st.Recv()
	if err != nil || out.GetErrorResponse() != nil {
		t.Fatalf("%v, %v", out, err)
	}
	set := new(descriptorpb.FileDescriptorSet)
	for _, data := range out.GetFileDescriptorResponse().GetFileDescriptorProto() {
		f := new(descriptorpb.FileDescriptorProto)
		if err := proto.Unmarshal(data, f); err != nil {
			t.Fatal(err)
		}
		set.File = append(set.File, f)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func methodIn(t *testing.T, files *protoregistry.Files, name protoreflect.FullName) protoreflect.MethodDescriptor {
	t.Helper()
	found, err := files.FindDescriptorByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return found.(protoreflect.MethodDescriptor)
}

func messageOf(t *testing.T, d protoreflect.MessageDescriptor, text string) *dynamicpb.Message {
	t.Helper()
	m := dynamicpb.NewMessage(d)
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// A stock gRPC client calls methods with Go types by their descriptors in reflection.
func TestGoTypesOverGRPC(t *testing.T) {
	conn := dialGRPC(t, serve(t, addDepot))
	files := reflected(t, conn, "Depot")
	for _, c := range []struct{ method, in, out string }{
		{"Echo", parcel, parcel},
		{"Echo", `{}`, `{"Sent":"0001-01-01T00:00:00Z","Sizes":["0","0"],"Raw":null}`},
		{"DivMod", `{"a":"38","b":"7"}`, `{"q":"5","r":"3"}`},
		{"Up", `[1,2]`, `[2,3]`},
	} {
		m := methodIn(t, files, protoreflect.FullName("Depot."+c.method))
		out := dynamicpb.NewMessage(m.Output())
		if err := conn.Invoke(t.Context(), "/Depot/"+c.method, messageOf(t, m.Input(), c.in), out); err != nil {
			t.Errorf("%s: %v", c.method, err)
			continue
		}
		want := messageOf(t, m.Output(), c.out)
		if c.in == parcel { // what the Go type always sends
			want.Set(m.Output().Fields().ByJSONName("Parts"), out.Get(m.Output().Fields().ByJSONName("Parts")))
			want.Set(m.Output().Fields().ByJSONName("Inner"), out.Get(m.Output().Fields().ByJSONName("Inner")))
			want.Set(m.Output().Fields().ByJSONName("ByNumber"), out.Get(m.Output().Fields().ByJSONName("ByNumber")))
		} else if c.method == "Echo" {
			want.Clear(m.Output().Fields().ByJSONName("Any"))
			out.Clear(m.Output().Fields().ByJSONName("Any"))
		}
		if !proto.Equal(out, want) {
			t.Errorf("%s returned\n%v\nwant\n%v", c.method, protojson.Format(out), protojson.Format(want))
		}
	}
	m := methodIn(t, files, "Depot.DivMod")
	err := conn.Invoke(t.Context(), "/Depot/DivMod", messageOf(t, m.Input(), `{"a":"1"}`), dynamicpb.NewMessage(m.Output()))
	if status.Code(err) != codes.InvalidArgument || status.Convert(err).Message() != "division by zero" {
		t.Errorf("an error of the handler: %v", err)
	}
	m = methodIn(t, files, "Depot.Echo")
	err = conn.Invoke(t.Context(), "/Depot/Echo", messageOf(t, m.Input(), `{"Small":1000}`), dynamicpb.NewMessage(m.Output()))
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("a number that the Go type cannot have: %v", err)
	}
	checkParts(t, conn, methodIn(t, files, "Depot.Parts"))
}

func checkParts(t *testing.T, conn *grpc.ClientConn, m protoreflect.MethodDescriptor) {
	t.Helper()
	st, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, "/Depot/Parts")
	if err != nil {
		t.Fatal(err)
	}
	st.SendMsg(messageOf(t, m.Input(), `{"Parts":[{"label":"a"},{"label":"b"}]}`))
	st.CloseSend()
	var labels []string
	for {
		out := dynamicpb.NewMessage(m.Output())
		err := st.RecvMsg(out)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		labels = append(labels, out.Get(m.Output().Fields().ByName("label")).String())
	}
	if len(labels) != 2 || labels[0] != "a" || labels[1] != "b" {
		t.Errorf("the stream sent %q", labels)
	}
}

// Connect's JSON and protobuf are those of the descriptors, and JSON is that of the Go types, too.
func TestGoTypesOverConnect(t *testing.T) {
	address := serve(t, addDepot)
	m := methodIn(t, reflected(t, dialGRPC(t, address), "Depot"), "Depot.Echo")
	post := func(kind string, body []byte) []byte {
		t.Helper()
		r, err := http.Post("http://"+address+"/Depot/Echo", kind, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		out, err := io.ReadAll(r.Body)
		if err != nil || r.StatusCode != 200 {
			t.Fatalf("%s: %s %s, %v", kind, r.Status, out, err)
		}
		return out
	}
	for _, text := range []string{parcel, `{"ID":9007199254740993,"Small":-3}`, `{"id":5}`} {
		out := dynamicpb.NewMessage(m.Output())
		if err := protojson.Unmarshal(post("application/json", []byte(text)), out); err != nil {
			t.Fatal(err)
		}
		if id := out.Get(m.Output().Fields().ByName("id")).Int(); id != 9007199254740993 && id != 5 {
			t.Errorf("the reply to %s has the number %d", text, id)
		}
	}
	in, err := proto.Marshal(messageOf(t, m.Input(), parcel))
	if err != nil {
		t.Fatal(err)
	}
	out := dynamicpb.NewMessage(m.Output())
	if err := proto.Unmarshal(post("application/proto", in), out); err != nil {
		t.Fatal(err)
	}
	if label := out.Get(m.Output().Fields().ByName("label")).String(); label != "tea" {
		t.Errorf("the reply is %v", out)
	}
}

// A server that does not describe itself tells no descriptors of Go types either.
func TestGoTypesWithoutDescribe(t *testing.T) {
	address := serve(t, addDepot, anser.NoDescribe())
	conn := dialGRPC(t, address)
	st, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	st.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "Depot"}})
	if out, err := st.Recv(); err != nil || out.GetErrorResponse().GetErrorCode() != int32(codes.NotFound) {
		t.Errorf("with NoDescribe: %v, %v", out, err)
	}
}
