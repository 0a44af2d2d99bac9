package gateway_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

func dialAnser(t *testing.T, addr string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(addr, append(opts, anser.NoSnapshot(), anser.Logger(slog.New(slog.DiscardHandler)))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Calls and streams over Anser's own protocol go on as they are, by the same names and routes.
func TestForward(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	serve(t, r, registry.Instance{Service: "echo"}, echo(t))
	serve(t, r, registry.Instance{Service: "one"}, named("one"))
	serve(t, r, registry.Instance{Service: "two"}, named("two"))
	g, addr := start(t, r, parse(t, "routes: [{headers: {x-to: two}, to: [{service: two}]}]"))
	for service, n := range map[string]int{"arith": 1, "echo": 4, "one": 1, "two": 1} {
		await(t, g, service, n)
	}
	c := dialAnser(t, addr)
	for _, name := range []string{"Arith.Mul", "arith/Arith.Mul"} {
		if out, err := anser.Call[reply](t.Context(), c, name, &args{7, 8}); err != nil || out.C != 56 {
			t.Errorf("%s: %v, %v", name, out, err)
		}
	}
	_, err := anser.Call[reply](t.Context(), c, "Arith.Mul", &args{7, 13})
	if e, ok := errors.AsType[*anser.Error](err); !ok || e.Code != anser.OutOfRange || string(e.Details) != "unlucky" {
		t.Errorf("an error of the service: %v", err)
	}
	if counts, own := g.Server().Stats().Methods["Arith.Mul"], g.Stats(); counts.Failed != 1 || own.Calls != 3 || own.Failed != 0 {
		t.Errorf("%+v, %+v", counts, own)
	}
	if _, err := anser.Call[reply](t.Context(), c, "Arith.Nope", &args{}); !errors.Is(err, anser.Unimplemented) {
		t.Error(err)
	}
	type name struct{ Name string }
	if _, err := anser.Call[name](t.Context(), c, "Who.Am", new(anser.None)); err == nil || !strings.Contains(err.Error(), "is in the services one, two") {
		t.Error(err)
	}
	routed := anser.WithMetadata(t.Context(), anser.Metadata{"x-to": "two"})
	if out, err := anser.Call[name](routed, c, "Who.Am", new(anser.None)); err != nil || out.Name != "two" {
		t.Errorf("%v, %v", out, err)
	}
	proto := dialAnser(t, addr, anser.Codecs(protobuf.New()))
	lying := anser.WithMetadata(t.Context(), anser.Metadata{"gateway-caller": "liar", "colour": "blue"})
	said, err := anser.Call[structpb.Struct](lying, proto, "demo.v1.Echo.Say", new(structpb.Struct))
	if err != nil || said.Fields["te"].GetStringValue() != "" || said.Fields["colour"].GetStringValue() != "blue" {
		t.Errorf("%v, %v", said, err)
	}
	count := anser.ServerStreamMethod[wrapperspb.Int64Value, wrapperspb.Int64Value]("demo.v1.Echo.Count")
	st, err := count.Open(t.Context(), proto, wrapperspb.Int64(1000))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i := range int64(1001) {
		n, err := st.Recv()
		if i == 1000 {
			if err != io.EOF {
				t.Error(err)
			}
		} else if err != nil || n.Value != i {
			t.Fatalf("message %d: %v, %v", i, n, err)
		}
	}
}

// A method without a contract cannot be translated, but forwarded as it is.
func TestForwardWithoutContract(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "bare"}, func(s *anser.Server) {
		arith(s)
		anser.Handle(s, "Bare.Say", func(_ context.Context, in *structpb.Struct) (*structpb.Struct, error) { return in, nil }, anser.OnlyCodecs(protobuf.New()))
	})
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "bare", 1)
	in, _ := structpb.NewStruct(map[string]any{"a": 1})
	if out, err := anser.Call[structpb.Struct](t.Context(), dialAnser(t, addr, anser.Codecs(protobuf.New())), "Bare.Say", in); err != nil || out.Fields["a"].GetNumberValue() != 1 {
		t.Errorf("%v, %v", out, err)
	}
	if status, body := post(t, "http://"+addr+"/bare/Bare.Say", "{}"); status != 501 || !strings.Contains(body, "the method Bare.Say of the service bare has no contract by which it could be translated") {
		t.Errorf("%d %s", status, body)
	}
}

// Callers over Anser's protocol are known and limited as others, and lose no call while a gateway
// is restarted.
func TestForwardRestart(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	var addresses []string
	var pair []*running
	for range 2 {
		l := listen(t)
		addresses = append(addresses, l.Addr().String())
		l.Close()
		x := startAt(t, r, addresses[len(addresses)-1], new(gateway.Config))
		await(t, x.Gateway, "arith", 1)
		pair = append(pair, x)
	}
	c := dialAnser(t, strings.Join(addresses, ","))
	stop := load(t, 4, func(ctx context.Context) error {
		out, err := anser.Call[reply](ctx, c, "Arith.Mul", &args{7, 8})
		if err == nil && out.C != 56 {
			err = errors.New("a wrong reply")
		}
		return err
	})
	for i := range 6 {
		pair[i%2].end()
		pair[i%2] = startAt(t, r, addresses[i%2], new(gateway.Config))
		await(t, pair[i%2].Gateway, "arith", 1)
		awaitThat(t, "no call comes to the gateway again", func() bool { return pair[i%2].Stats().Calls > 0 })
	}
	none(t, stop)
	for _, x := range pair {
		x.end()
	}
}
