package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/contract"
	"github.com/anser-rpc/anser/contract/protocontract"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/protocols"
	"github.com/anser-rpc/anser/registry"
)

type (
	args  struct{ A, B int64 }
	reply struct{ C int64 }
)

// serve starts an instance of a service with the methods that add adds.
func serve(t *testing.T, r registry.Registrar, in registry.Instance, add func(s *anser.Server)) *anser.Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	in.Address = l.Addr().String()
	s := anser.NewServer(anser.NoSignals(), anser.Announce(r, in), anser.Logger(slog.New(slog.DiscardHandler)))
	add(s)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return s
}

func arith(s *anser.Server) {
	anser.Handle(s, "Arith.Mul", func(_ context.Context, in *args) (*reply, error) {
		if in.B == 13 {
			return nil, anser.Errorf(anser.OutOfRange, "not 13").WithDetails([]byte("unlucky"))
		}
		return &reply{in.A * in.B}, nil
	})
}

// start starts a gateway, and returns it with its address.
func start(t *testing.T, r registry.Resolver, c *gateway.Config, opts ...anser.ServerOption) (*gateway.Gateway, string) {
	t.Helper()
	g, err := gateway.New(c, gateway.Options{
		Registry: r, Server: append(opts, anser.NoSignals()), Logger: slog.New(slog.DiscardHandler), Look: 10 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, serveGateway(t, g)
}

// serveGateway lets a gateway serve, and returns its address.
func serveGateway(t *testing.T, g *gateway.Gateway) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return l.Addr().String()
}

// await waits until the gateway serves this number of methods of a service.
func await(t *testing.T, g *gateway.Gateway, service string, methods int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		stats := g.Stats()
		for _, s := range stats.Services {
			if s.Name == service && len(s.Methods) == methods {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("the gateway knows %+v", stats.Services)
		}
		time.Sleep(time.Millisecond)
	}
}

func post(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(b))
}

// A service of plain Go types is called without anything having been written for it, in each
// protocol of the port.
func TestPlainService(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "arith", 1)
	for _, path := range []string{"/arith/Arith.Mul", "/Arith.Mul"} {
		if status, body := post(t, "http://"+addr+path, `{"A":7,"B":8}`); status != 200 || body != `{"C":56}` {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`, "User-Agent", "curl/8.14.1", "Content-Type", "application/x-www-form-urlencoded"); status != 200 || body != `{"C":56}` {
		t.Errorf("as curl -d sends it: %d %s", status, body)
	}
	if status, body := post(t, "http://"+addr+"/Arith/Mul", `{"A":"7","B":"8"}`, "Connect-Protocol-Version", "1"); status != 200 || body != `{"C":56}` {
		t.Errorf("as a client of Connect sends it: %d %s", status, body)
	}
	for _, params := range []string{`{"A":7,"B":8}`, `[{"A":7,"B":8}]`} {
		if status, body := post(t, "http://"+addr+"/jsonrpc", `{"jsonrpc":"2.0","id":1,"method":"Arith.Mul","params":`+params+`}`); status != 200 || !strings.Contains(body, `"result":{"C":56}`) {
			t.Errorf("JSON-RPC with %s: %d %s", params, status, body)
		}
	}
	status, body := post(t, "http://"+addr+"/Arith.Mul", `{"A":7,"B":13}`)
	if status != 400 || !strings.Contains(body, "not 13") || !strings.Contains(body, `"out_of_range"`) || !strings.Contains(body, `"executed"`) {
		t.Errorf("an error of the service: %d %s", status, body)
	}
	for path, name := range map[string]string{"/arith/Arith.Mull": "arith/Arith.Mul", "/Arith.Mull": "Arith.Mul", "/Arith/Mull": "Arith.Mul"} {
		if status, body := post(t, "http://"+addr+path, `{}`); status != 404 || !strings.Contains(body, `here, nor forwarded over this protocol: did you mean \"`+name+`\"?`) {
			t.Errorf("%s, which is unknown: %d %s", path, status, body)
		}
	}
	calls := g.Stats().Calls
	if status, body := post(t, "http://"+addr+"/Arith.Mul", `{"A":`); status != 400 || !strings.Contains(body, "invalid_argument") {
		t.Errorf("what is no JSON: %d %s", status, body)
	}
	if g.Stats().Calls != calls {
		t.Error("what is no JSON was forwarded")
	}
	if out, err := callGRPC(t, addr, "Arith.Mul", []byte{8, 7, 16, 8}); err != nil || string(out) != "\x08\x38" {
		t.Errorf("gRPC: %q, %v", out, err)
	}
	_, err := callGRPC(t, addr, "Arith.Mul", []byte{8, 7, 16, 13})
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.OutOfRange || e.Outcome != anser.Executed || !strings.Contains(e.Message, "not 13") {
		t.Errorf("an error over gRPC: %v", err)
	}
}

// callGRPC makes a gRPC call with an encoded message.
func callGRPC(t *testing.T, addr, method string, message []byte, opts ...anser.CallOption) ([]byte, error) {
	t.Helper()
	return callGRPCWith(t, t.Context(), addr, method, message, opts...)
}

func callGRPCWith(t *testing.T, ctx context.Context, addr, method string, message []byte, opts ...anser.CallOption) ([]byte, error) {
	t.Helper()
	c, err := anser.Dial("grpc://"+addr, protocols.GRPC())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := new(codec.Encoded)
	err = c.Call(ctx, method, &codec.Encoded{Codec: codec.ProtobufID, Data: message}, out, append(opts, anser.Codec(codec.Forwarding(codec.ProtobufID, "protobuf")))...)
	return out.Data, err
}

// protoService returns the contract of a service of protobuf: Echo.Say, and Echo.Count with a
// stream of the server, Echo.Sum with one of the client, Echo.Chat with both.
func protoService(t *testing.T) *contract.Source {
	t.Helper()
	method := func(name, in, out string, client, server bool) *descriptorpb.MethodDescriptorProto {
		return &descriptorpb.MethodDescriptorProto{
			Name: &name, InputType: proto.String(".google.protobuf." + in), OutputType: proto.String(".google.protobuf." + out),
			ClientStreaming: &client, ServerStreaming: &server,
		}
	}
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(structpb.File_google_protobuf_struct_proto),
		protodesc.ToFileDescriptorProto(wrapperspb.File_google_protobuf_wrappers_proto),
		{
			Name: proto.String("echo.proto"), Package: proto.String("demo.v1"), Syntax: proto.String("proto3"),
			Dependency: []string{"google/protobuf/struct.proto", "google/protobuf/wrappers.proto"},
			Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Echo"), Method: []*descriptorpb.MethodDescriptorProto{
				method("Say", "Struct", "Struct", false, false), method("Count", "Int64Value", "Int64Value", false, true),
				method("Sum", "Int64Value", "Int64Value", true, false), method("Chat", "Struct", "Struct", true, true),
			}}},
		},
	}}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := files.FindFileByPath("echo.proto")
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(protocontract.FromFiles(fd))
	if err != nil {
		t.Fatal(err)
	}
	return protocontract.Source(string(text), &fd)
}

func echo(t *testing.T) func(s *anser.Server) {
	has := anser.Contract(protoService(t))
	codecs := anser.OnlyCodecs(protobuf.New())
	return func(s *anser.Server) {
		anser.Handle(s, "demo.v1.Echo.Say", func(ctx context.Context, in *structpb.Struct) (*structpb.Struct, error) {
			md := anser.MetadataFrom(ctx)
			anser.SetTrailer(ctx, "mood", "good")
			if in.Fields == nil {
				in.Fields = make(map[string]*structpb.Value)
			}
			in.Fields["colour"] = structpb.NewStringValue(md.Get("colour"))
			in.Fields["te"] = structpb.NewStringValue(md.Get("keep-alive") + md.Get("gateway-caller"))
			in.Fields["from"] = structpb.NewStringValue(md.Get("x-forwarded-for"))
			return in, nil
		}, has, codecs)
		anser.ServerStreamMethod[wrapperspb.Int64Value, wrapperspb.Int64Value]("demo.v1.Echo.Count").Handle(s,
			func(_ context.Context, in *wrapperspb.Int64Value, out anser.Sender[wrapperspb.Int64Value]) error {
				for i := range in.Value {
					if err := out.Send(wrapperspb.Int64(i)); err != nil {
						return err
					}
				}
				if in.Value == 0 {
					return anser.Errorf(anser.OutOfRange, "nothing to count")
				}
				return nil
			}, has, codecs)
		anser.ClientStreamMethod[wrapperspb.Int64Value, wrapperspb.Int64Value]("demo.v1.Echo.Sum").Handle(s,
			func(_ context.Context, in anser.Receiver[wrapperspb.Int64Value]) (*wrapperspb.Int64Value, error) {
				sum := new(wrapperspb.Int64Value)
				for {
					n, err := in.Recv()
					if err == io.EOF {
						return sum, nil
					}
					if err != nil {
						return nil, err
					}
					sum.Value += n.Value
				}
			}, has, codecs)
		anser.HandleStream(s, "demo.v1.Echo.Chat", func(_ context.Context, st *anser.Stream[structpb.Struct, structpb.Struct]) error {
			for {
				in, err := st.Recv()
				if err == io.EOF {
					return nil
				}
				if err == nil {
					err = st.Send(in)
				}
				if err != nil {
					return err
				}
			}
		}, has, codecs)
	}
}

// A service of protobuf is called in JSON and in protobuf, with streams, and its descriptors are
// those of the gateway.
func TestProtobufService(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "echo"}, echo(t))
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "echo", 4)
	status, body := post(t, "http://"+addr+"/echo/demo.v1.Echo.Say", `{"a": [1, null]}`, "Colour", "blue", "Keep-Alive", "x", "Gateway-Caller", "liar")
	if want := `{"a":[1,null],"colour":"blue","from":"127.0.0.1","te":""}`; status != 200 || strings.ReplaceAll(body, " ", "") != want {
		t.Errorf("%d %s, want %s", status, body, want)
	}
	calls := g.Stats().Calls
	if status, body := post(t, "http://"+addr+"/demo.v1.Echo/Say", `{"a":`, "Connect-Protocol-Version", "1"); status != 400 || !strings.Contains(body, "invalid_argument") || calls != g.Stats().Calls {
		t.Errorf("%d %s", status, body)
	}
	in, _ := structpb.NewStruct(map[string]any{"x": 1})
	data, _ := proto.Marshal(in)
	var trailers anser.Metadata
	out, err := callGRPC(t, addr, "demo.v1.Echo.Say", data, anser.Trailer(&trailers))
	if err != nil || proto.Unmarshal(out, in) != nil || in.Fields["x"].GetNumberValue() != 1 || trailers.Get("mood") != "good" {
		t.Errorf("%v, %v, %v", in, trailers, err)
	}
	if status, body := post(t, "http://"+addr+"/demo.v1.Echo.Count", `"3"`, "Accept", "application/x-ndjson"); status != 200 || body != "\"0\"\n\"1\"\n\"2\"" {
		t.Errorf("a stream of the server: %d %q", status, body)
	}
	if status, body := post(t, "http://"+addr+"/demo.v1.Echo.Count", `0`); !strings.Contains(body, "nothing to count") {
		t.Errorf("a stream that fails: %d %q", status, body)
	}
	if status, body := post(t, "http://"+addr+"/demo.v1.Echo.Sum", "1\n2\n39\n", "Content-Type", "application/x-ndjson"); status != 200 || body != `"42"` {
		t.Errorf("a stream of the client: %d %q", status, body)
	}
	chat(t, addr)
	resp, err := http.Get("http://" + addr + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !strings.Contains(string(b), "/demo.v1.Echo.Say") {
		t.Errorf("%.500s", b)
	}
}

// A gRPC server that knows nothing of Anser is asked by its reflection.
func TestServerOfGRPC(t *testing.T) {
	r := registry.NewMemory()
	s := anser.NewServer(anser.NoSignals(), protocols.All(), anser.Logger(slog.New(slog.DiscardHandler)))
	echo(t)(s)
	l, served := listen(t), make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Close()
		<-served
	}()
	chat(t, l.Addr().String())
	if err := r.Register(t.Context(), registry.Instance{Service: "echo", Address: "grpc://" + l.Addr().String()}); err != nil {
		t.Fatal(err)
	}
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "echo", 4)
	if status, body := post(t, "http://"+addr+"/echo/demo.v1.Echo.Say", `{"a": 1}`, "Colour", "blue"); status != 200 || !strings.Contains(body, `"blue"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := post(t, "http://"+addr+"/demo.v1.Echo.Count", `"2"`, "Accept", "application/x-ndjson"); status != 200 || body != "\"0\"\n\"1\"" {
		t.Errorf("%d %q", status, body)
	}
	chat(t, addr)
}

// chat sends messages in both directions through the gateway, over gRPC.
func chat(t *testing.T, addr string) {
	t.Helper()
	c, err := anser.Dial("grpc://"+addr, protocols.GRPC(), anser.Codecs(protobuf.New()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	st, err := anser.Open[structpb.Struct, structpb.Struct](t.Context(), c, "demo.v1.Echo.Chat")
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := range 100 {
		in, _ := structpb.NewStruct(map[string]any{"n": i})
		if err := st.Send(in); err != nil {
			t.Fatal(err)
		}
		out, err := st.Recv()
		if err != nil || out.Fields["n"].GetNumberValue() != float64(i) {
			t.Fatalf("message %d: %v, %v", i, out, err)
		}
	}
	if err := st.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Recv(); err != io.EOF {
		t.Error(err)
	}
}
