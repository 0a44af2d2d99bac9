package anser_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
	"github.com/anser-rpc/anser/internal/benchpb"
	"github.com/anser-rpc/anser/registry"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// mathContract is the contract of anser.bench.MathService.
func mathContract(t testing.TB) (*contract.Schema, *contract.Source) {
	t.Helper()
	schema := protocontract.FromFiles(benchpb.File_internal_benchpb_math_proto).Only("anser.bench.MathService")
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	return schema, protocontract.Source(string(text), &benchpb.File_internal_benchpb_math_proto)
}

const addMethod anser.Method[benchpb.AddRequest, benchpb.AddReply] = "anser.bench.MathService.Add"

func addNumbers(_ context.Context, in *benchpb.AddRequest) (*benchpb.AddReply, error) {
	return &benchpb.AddReply{X: in.A + in.B}, nil
}

func TestContractIsDescribedAndAnnounced(t *testing.T) {
	schema, source := mathContract(t)
	reg := registry.NewMemory()
	s := anser.NewServer(silent, anser.Announce(reg, registry.Instance{Service: "math"}))
	if err := addMethod.Handle(s, addNumbers, anser.Contract(source)); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	run(t, s, l)
	c := dial(t, l.Addr().String())
	ctx := t.Context()
	inJSON := anser.Codec(new(codec.JSON))
	var list anser.MethodList
	if err := c.Call(ctx, anser.MethodsName, new(anser.None), &list, inJSON); err != nil {
		t.Fatal(err)
	}
	const service = "anser.bench.MathService"
	print := schema.Fingerprint(service, "Add")
	if m := list.Methods[0]; m.Contract != contract.Protobuf || m.Fingerprint != print || len(print) != 16 {
		t.Errorf("the method is described as %+v, with the fingerprint %q", m, print)
	}
	var reply anser.ContractReply
	if err := c.Call(ctx, anser.ContractName, &anser.ContractRequest{Service: service}, &reply, inJSON); err != nil {
		t.Fatal(err)
	}
	if got := reply.Schema.Fingerprint(service, "Add"); got != print {
		t.Errorf("the contract that the server gives has the fingerprint %s, not %s", got, print)
	}
	files := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(reply.Descriptors, files); err != nil || len(files.File) != 1 || files.File[0].Service[0].GetName() != "MathService" {
		t.Errorf("the descriptors are %v, %v", files, err)
	}
	if err := c.Call(ctx, anser.ContractName, &anser.ContractRequest{Service: "other"}, &reply, inJSON); anser.CodeOf(err) != anser.NotFound {
		t.Errorf("the contract of an unknown service: %v", err)
	}
	tags := make(chan map[string]string, 1)
	watching, stop := context.WithCancel(ctx)
	reg.Watch(watching, "math", func(list []registry.Instance) {
		if len(list) > 0 {
			tags <- list[0].Tags
			stop()
		}
	}, func(error) {})
	if got := (<-tags)[anser.ContractTag+service]; got != "Add="+print {
		t.Errorf("the tag of the contract is %q", got)
	}
}

func TestContractOfAnotherMethodIsRefused(t *testing.T) {
	schema, source := mathContract(t)
	stream := *schema
	stream.Services = []contract.Service{{Name: "anser.bench.MathService", Methods: []contract.Method{{
		Name: "Add", Request: "anser.bench.AddRequest", Reply: "anser.bench.AddReply", ServerStream: true,
	}}}}
	text, err := json.Marshal(&stream)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, method string
		source       *contract.Source
		want         string
	}{
		{"service", "Math.Add", source, "no service Math"},
		{"method", "anser.bench.MathService.Sub", source, "no such method"},
		{"kind", string(addMethod), contract.NewSource(string(text)), "it is a call, and a stream of the server in its contract"},
		{"text", string(addMethod), contract.NewSource("{"), "unexpected end of JSON"},
		{"nil", string(addMethod), nil, "the contract is nil"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := anser.Handle(anser.NewServer(), test.method, addNumbers, anser.Contract(test.source))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one with %q", err, test.want)
			}
		})
	}
}

// The contract of a service without a schema is made from its types: of calls, streams, oneway
// methods, and methods with several arguments.
func TestContractFromTypes(t *testing.T) {
	type args struct{ A, B int }
	type product struct {
		C    int `json:"c"`
		Next *product
	}
	s := anser.NewServer(silent)
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *args) (*product, error) { return &product{C: in.A * in.B}, nil }, anser.Idempotent())
	anser.HandleOneway(s, "Arith.Note", func(context.Context, *args) error { return nil })
	anser.HandleStream(s, "Arith.Sum", func(context.Context, *anser.Stream[product, args]) error { return nil })
	s.RegisterFunc("Arith.DivMod", func(_ context.Context, a, b int) (int, int, error) { return a / b, a % b, nil }, anser.Params("(a, b) (q, r)"))
	anser.Handle(s, "Proto.Wait", func(_ context.Context, in *durationpb.Duration) (*durationpb.Duration, error) { return in, nil })
	l := listen(t)
	run(t, s, l)
	c := dial(t, l.Addr().String())
	var reply anser.ContractReply
	inJSON := anser.Codec(new(codec.JSON))
	if err := c.Call(t.Context(), anser.ContractName, &anser.ContractRequest{Service: "Arith"}, &reply, inJSON); err != nil {
		t.Fatal(err)
	}
	if err := reply.Schema.Check(); err != nil {
		t.Fatal(err)
	}
	v := reply.Schema.Service("Arith")
	if reply.Schema.Kind != contract.Go || v == nil || len(v.Methods) != 4 {
		t.Fatalf("the contract is %+v", reply.Schema)
	}
	mul, note, sum, div := v.Method("Mul"), v.Method("Note"), v.Method("Sum"), v.Method("DivMod")
	if !mul.Idempotent || mul.Stream() || !note.Oneway || note.Reply != "" || !sum.ClientStream || !sum.ServerStream {
		t.Errorf("the methods are %+v", v.Methods)
	}
	if m := reply.Schema.Message(mul.Reply); m.Form != contract.ByName || len(m.Fields) != 2 || m.Fields[0].JSON != "c" || m.Fields[1].Type.Of != m.Name {
		t.Errorf("the reply of Mul is %+v", m)
	}
	if m := reply.Schema.Message(div.Reply); m.Form != contract.InOrder || len(m.Fields) != 2 || m.Fields[1].Name != "r" {
		t.Errorf("the reply of DivMod is %+v", m)
	}
	err := c.Call(t.Context(), anser.ContractName, &anser.ContractRequest{Service: "Proto"}, &reply, inJSON)
	if anser.CodeOf(err) != anser.NotFound {
		t.Errorf("the contract of protobuf messages without a service: %v", err)
	}
}
