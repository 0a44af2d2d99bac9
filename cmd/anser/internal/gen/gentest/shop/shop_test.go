package shop_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/shop"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/contract"
)

// market implements all methods but Old.
type market struct {
	shop.UnimplementedShopServer
	noted chan string
}

func total(f float64) *shop.Receipt { return shop.Receipt_builder{Total: &f}.Build() }
func thing(name string, n int32) *shop.Thing {
	return shop.Thing_builder{Name: &name, Count: &n}.Build()
}

func (m *market) Buy(_ context.Context, in *shop.Thing) (*shop.Receipt, error) {
	if in.GetName() == "nothing" {
		return nil, anser.Errorf(anser.NotFound, "there is no %s", in.GetName())
	}
	return total(float64(in.GetCount())), nil
}

func (m *market) Price(context.Context, *shop.Thing) (*shop.Receipt, error) { return total(2.5), nil }

func (m *market) List(_ context.Context, in *shop.Thing, out anser.Sender[shop.Thing]) error {
	for i := range in.GetCount() {
		if err := out.Send(thing(in.GetName(), i)); err != nil {
			return err
		}
	}
	return nil
}

func (m *market) BuyAll(_ context.Context, in anser.Receiver[shop.Thing]) (*shop.Receipt, error) {
	sum := 0.0
	for t, err := range in.All() {
		if err != nil {
			return nil, err
		}
		sum += float64(t.GetCount())
	}
	return total(sum), nil
}

func (m *market) Bargain(_ context.Context, st *anser.Stream[shop.Receipt, shop.Receipt]) error {
	for r, err := range st.All() {
		if err != nil {
			return err
		}
		if err := st.Send(total(r.GetTotal() / 2)); err != nil {
			return err
		}
	}
	return nil
}

func (m *market) Note(_ context.Context, in *shop.Thing) error {
	m.noted <- in.GetName()
	return nil
}

// jsonCodec is the JSON of protobuf.
var jsonCodec = protobuf.NewJSON()

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// open serves a market and returns a client of it.
func open(t *testing.T, opts ...anser.HandleOption) (*anser.Client, *market) {
	t.Helper()
	m := &market{noted: make(chan string, 1)}
	s := anser.NewServer(silent)
	if err := shop.RegisterShopServer(s, m, opts...); err != nil {
		t.Fatal(err)
	}
	if err := shop.RegisterClosedServer(s, m); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	c, err := anser.Dial(l.Addr().String(), silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, m
}

func TestEveryKindOfMethod(t *testing.T) {
	conn, m := open(t)
	c := shop.NewShopClient(conn)
	ctx := t.Context()
	if r, err := c.Buy(ctx, thing("tea", 3)); err != nil || r.GetTotal() != 3 {
		t.Errorf("Buy: %v, %v", r, err)
	}
	if _, err := c.Buy(ctx, thing("nothing", 1)); anser.CodeOf(err) != anser.NotFound {
		t.Errorf("Buy of nothing: %v", err)
	}
	if r, err := c.Price(ctx, thing("tea", 1)); err != nil || r.GetTotal() != 2.5 {
		t.Errorf("Price: %v, %v", r, err)
	}
	list, err := c.List(ctx, thing("tea", 3))
	if err != nil {
		t.Fatal(err)
	}
	var got []int32
	for item, err := range list.All() {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, item.GetCount())
	}
	if !slices.Equal(got, []int32{0, 1, 2}) {
		t.Errorf("List: %v", got)
	}
	all, err := c.BuyAll(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int32(4) {
		if err := all.Send(thing("tea", i)); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := all.CloseAndRecv(); err != nil || r.GetTotal() != 6 {
		t.Errorf("BuyAll: %v, %v", r, err)
	}
	talk, err := c.Bargain(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := talk.Send(total(8)); err != nil {
		t.Fatal(err)
	}
	if r, err := talk.Recv(); err != nil || r.GetTotal() != 4 {
		t.Errorf("Bargain: %v, %v", r, err)
	}
	if err := talk.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := talk.Recv(); err != io.EOF {
		t.Errorf("the end of Bargain: %v", err)
	}
	if err := c.Note(ctx, thing("milk", 1)); err != nil {
		t.Fatal(err)
	}
	if got := <-m.noted; got != "milk" {
		t.Errorf("Note: %q", got)
	}
	if _, err := c.Old(ctx, new(emptypb.Empty)); anser.CodeOf(err) != anser.Unimplemented || !strings.Contains(err.Error(), "gentest.shop.Shop.Old") {
		t.Errorf("Old: %v", err)
	}
}

func TestMethodsAreDescribed(t *testing.T) {
	c, _ := open(t)
	var list anser.MethodList
	if err := c.Call(t.Context(), anser.MethodsName, new(anser.None), &list, anser.Codec(new(codec.JSON))); err != nil {
		t.Fatal(err)
	}
	got := make(map[string]anser.MethodInfo)
	for _, m := range list.Methods {
		got[strings.TrimPrefix(m.Name, "gentest.shop.Shop.")] = m
	}
	if m := got["Buy"]; m.Doc != "Buy buys one thing.\n\nIt fails with NotFound for an unknown one." || m.Contract != contract.Protobuf || m.Idempotent || m.Stream {
		t.Errorf("Buy is described as %+v", m)
	}
	if m := got["Price"]; !m.Idempotent || m.Fingerprint != got["Buy"].Fingerprint {
		t.Errorf("Price is described as %+v", m)
	}
	for name, want := range map[string][2]bool{"List": {false, true}, "BuyAll": {true, false}, "Bargain": {true, true}} {
		if m := got[name]; !m.Stream || m.ClientStream != want[0] || m.ServerStream != want[1] {
			t.Errorf("%s is described as %+v", name, m)
		}
	}
	if !got["Note"].Oneway || !got["Old"].Deprecated {
		t.Errorf("Note and Old are described as %+v and %+v", got["Note"], got["Old"])
	}
}

// The options of a client and of a registration apply to all methods.
func TestOptions(t *testing.T) {
	conn, _ := open(t, anser.OnlyCodecs(new(codec.JSON)))
	if _, err := shop.NewShopClient(conn).Buy(t.Context(), thing("tea", 1)); err == nil {
		t.Error("a server that takes JSON alone took protobuf")
	}
	inJSON := shop.NewShopClient(conn, anser.Codec(jsonCodec))
	if r, err := inJSON.Price(t.Context(), thing("tea", 1)); err != nil || r.GetTotal() != 2.5 {
		t.Errorf("Price: %v, %v", r, err)
	}
	if err := shop.RegisterShopServer(anser.NewServer(), nil); err == nil || !strings.Contains(err.Error(), "the server is nil") {
		t.Errorf("a nil server: %v", err)
	}
}

// A server calls its clients through the same code.
func TestServerCallsItsClient(t *testing.T) {
	sessions := make(chan *anser.Session, 1)
	s := anser.NewServer(silent)
	err := anser.Handle(s, "Door.Enter", func(ctx context.Context, _ *anser.None) (*anser.None, error) {
		if session, ok := anser.SessionFrom(ctx); ok {
			sessions <- session
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	inside := anser.NewServer(silent)
	if err := shop.RegisterShopServer(inside, new(market)); err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	c, err := anser.Dial(l.Addr().String(), silent, anser.Handlers(inside))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := anser.Call[anser.None](t.Context(), c, "Door.Enter", new(anser.None)); err != nil {
		t.Fatal(err)
	}
	back := shop.NewShopClient((<-sessions).Client())
	if r, err := back.Buy(t.Context(), thing("tea", 7)); err != nil || r.GetTotal() != 7 {
		t.Errorf("Buy: %v, %v", r, err)
	}
}

// Other protocols translate messages with the descriptors that the server gives.
func TestDescriptors(t *testing.T) {
	c, _ := open(t)
	var reply anser.ContractReply
	err := c.Call(t.Context(), anser.ContractName, &anser.ContractRequest{Service: "gentest.shop.Shop"}, &reply, anser.Codec(new(codec.JSON)))
	if err != nil {
		t.Fatal(err)
	}
	set := new(descriptorpb.FileDescriptorSet)
	if err := proto.Unmarshal(reply.Descriptors, set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := files.FindDescriptorByName("gentest.shop.Shop.Buy"); err != nil || d.ParentFile().Path() != "shop/shop.proto" {
		t.Errorf("the descriptor of Buy is %v, %v", d, err)
	}
}
