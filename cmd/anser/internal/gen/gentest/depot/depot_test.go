package depot_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"reflect"
	"strings"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"
	"go.uber.org/goleak"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/depot"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/depot/parts"
	"github.com/anser-rpc/anser/codec"
	fbcodec "github.com/anser-rpc/anser/codec/flatbuffers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard implements all methods but PartOf.
type yard struct {
	depot.UnimplementedDepotServer
	dropped chan string
}

func (*yard) Get(_ context.Context, in *depot.QueryT) (*depot.CrateT, error) {
	if in.Name == "nothing" {
		return nil, anser.Errorf(anser.NotFound, "there is no %s", in.Name)
	}
	return crate(in.Name), nil
}

func (*yard) Echo(_ context.Context, in *depot.CrateT) (*depot.CrateT, error) { return in, nil }

func (y *yard) Drop(_ context.Context, in *depot.NoteT) error {
	y.dropped <- in.Text
	return nil
}

func (*yard) List(_ context.Context, in *depot.QueryT, out anser.Sender[depot.CrateT]) error {
	for _, name := range []string{"a", "b", "c"} {
		if err := out.Send(&depot.CrateT{Name: name, Place: in.Place}); err != nil {
			return err
		}
	}
	return nil
}

func (*yard) Load(_ context.Context, in anser.Receiver[depot.CrateT]) (*parts.PartT, error) {
	var names []string
	for c, err := range in.All() {
		if err != nil {
			return nil, err
		}
		names = append(names, c.Name)
	}
	return &parts.PartT{Name: strings.Join(names, "+")}, nil
}

func (*yard) MoveAll(_ context.Context, st *anser.Stream[depot.CrateT, depot.CrateT]) error {
	for c, err := range st.All() {
		if err != nil {
			return err
		}
		c.Place = depot.PlaceShip
		if err := st.Send(c); err != nil {
			return err
		}
	}
	return nil
}

func crate(name string) *depot.CrateT {
	n := int32(3)
	return &depot.CrateT{
		Name: name, Weight: 2.5, Place: depot.PlaceYard, Care: depot.CareCold | depot.CareHeavy, Size: &depot.SizeT{Width: 1, Depth: 2}, Count: &n,
		Content: &depot.ContentT{Type: depot.ContentPart, Value: &parts.PartT{Name: "bolt", Metal: parts.MetalIron}},
		Crates:  []*depot.CrateT{{Name: "inner", Place: depot.PlaceHall, Weight: 1.5, Content: &depot.ContentT{Type: depot.ContentNote, Value: &depot.NoteT{Text: "fragile"}}, Crates: []*depot.CrateT{}, Parts: []*parts.PartT{}, Numbers: []int64{}, Sizes: []*depot.SizeT{}, Tags: []string{}}},
		Parts:   []*parts.PartT{{Name: "nut", Metal: parts.MetalZinc}}, Numbers: []int64{1, -1 << 62}, Sizes: []*depot.SizeT{{Height: 3}}, Bytes: []byte{0, 255}, Tags: []string{"x", "y"},
	}
}

// open serves on loopback and dials it. Neither side has options for the codec.
func open(t *testing.T) (depot.DepotClient, *anser.Client, *yard) {
	t.Helper()
	s, y := anser.NewServer(silent), &yard{dropped: make(chan string, 1)}
	if err := depot.RegisterDepotServer(s, y); err != nil {
		t.Fatal(err)
	}
	conn := serve(t, s)
	return depot.NewDepotClient(conn), conn, y
}

var silent = anser.Logger(slog.New(slog.DiscardHandler))

func serve(t *testing.T, s *anser.Server) *anser.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	conn, err := anser.Dial(l.Addr().String(), silent)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestCalls(t *testing.T) {
	c, conn, y := open(t)
	ctx := t.Context()
	for _, opts := range [][]anser.CallOption{nil, {anser.Codec(new(codec.JSON))}, {anser.Codec(fbcodec.New())}} {
		got, err := c.Echo(ctx, crate("big"), opts...)
		if err != nil || !reflect.DeepEqual(got, crate("big")) {
			a, _ := json.Marshal(got)
			t.Errorf("the crate came back as %s, %v", a, err)
		}
	}
	if got, err := c.Get(ctx, &depot.QueryT{Name: "x"}); err != nil || !reflect.DeepEqual(got, crate("x")) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := c.Get(ctx, &depot.QueryT{Name: "nothing"}); anser.CodeOf(err) != anser.NotFound {
		t.Error(err)
	}
	if _, err := c.PartOf(ctx, crate("x")); anser.CodeOf(err) != anser.Unimplemented {
		t.Error(err)
	}
	if err := c.Drop(ctx, &depot.NoteT{Text: "dropped"}); err != nil || <-y.dropped != "dropped" {
		t.Error(err)
	}
	// A table, which is read in place, is as good as an object.
	b := flatbuffers.NewBuilder(0)
	b.Finish(crate("table").Pack(b))
	table, err := anser.Method[depot.Crate, depot.Crate](depot.Depot_Echo).Call(ctx, conn, depot.GetRootAsCrate(b.FinishedBytes(), 0))
	if err != nil || string(table.Name()) != "table" || !reflect.DeepEqual(table.UnPack(), crate("table")) {
		t.Errorf("%v, %v", table, err)
	}
}

// A server can take tables in place of objects.
func TestTables(t *testing.T) {
	s := anser.NewServer(silent)
	get := anser.Method[depot.Query, depot.Crate](depot.Depot_Get)
	err := get.Handle(s, func(_ context.Context, in *depot.Query) (*depot.Crate, error) {
		b := flatbuffers.NewBuilder(0)
		b.Finish(crate(string(in.Name())).Pack(b))
		return depot.GetRootAsCrate(b.FinishedBytes(), 0), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := depot.NewDepotClient(serve(t, s)).Get(t.Context(), &depot.QueryT{Name: "x"})
	if err != nil || !reflect.DeepEqual(got, crate("x")) {
		t.Errorf("%+v, %v", got, err)
	}
}

// An element that is nil is an empty one, and not a vector that lacks elements.
func TestElementsThatAreNil(t *testing.T) {
	c, _, _ := open(t)
	in := &depot.CrateT{Crates: []*depot.CrateT{nil, {Name: "a"}}, Sizes: []*depot.SizeT{{Width: 1}, nil, {Width: 2}}}
	out, err := c.Echo(t.Context(), in)
	if err != nil || len(out.Crates) != 2 || out.Crates[0].Name != "" || out.Crates[1].Name != "a" {
		t.Fatalf("%+v, %v", out, err)
	}
	if s := out.Sizes; len(s) != 3 || *s[0] != (depot.SizeT{Width: 1}) || *s[1] != (depot.SizeT{}) || *s[2] != (depot.SizeT{Width: 2}) {
		t.Errorf("the sizes are %+v, %+v, %+v", s[0], s[1], s[2])
	}
}

func TestStreams(t *testing.T) {
	c, _, _ := open(t)
	ctx := t.Context()
	list, err := c.List(ctx, &depot.QueryT{Place: depot.PlaceShip})
	if err != nil {
		t.Fatal(err)
	}
	var names string
	for c, err := range list.All() {
		if err != nil || c.Place != depot.PlaceShip {
			t.Fatal(c, err)
		}
		names += c.Name
	}
	if names != "abc" {
		t.Errorf("the crates are %s", names)
	}
	load, err := c.Load(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := load.Send(&depot.CrateT{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if part, err := load.CloseAndRecv(); err != nil || part.Name != "a+b" {
		t.Errorf("%+v, %v", part, err)
	}
	move, err := c.MoveAll(ctx)
	if err == nil {
		err = move.Send(crate("moved"))
	}
	if err != nil {
		t.Fatal(err)
	}
	defer move.Close()
	if got, err := move.Recv(); err != nil || got.Name != "moved" || got.Place != depot.PlaceShip {
		t.Errorf("%+v, %v", got, err)
	}
}

// A peer's bytes are refused before anything reads them.
func TestHostileBytes(t *testing.T) {
	_, conn, _ := open(t)
	for _, bytes := range []string{"", "abc", "\xff\xff\xff\xff", strings.Repeat("\x04\x00\x00\x00", 20)} {
		in := []byte(bytes)
		err := conn.Call(t.Context(), string(depot.Depot_Echo), &in, &in, anser.Codec(anyBytes{}))
		if anser.CodeOf(err) != anser.InvalidArgument {
			t.Errorf("%q: %v", bytes, err)
		}
	}
}

// anyBytes sends bytes as a message of FlatBuffers.
type anyBytes struct{ codec.Raw }

func (anyBytes) ID() uint8    { return codec.FlatBuffersID }
func (anyBytes) Name() string { return "flatbuffers" }

func TestJSON(t *testing.T) {
	text, err := json.Marshal(crate("big"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"name":"big","weight":2.5,"place":"Yard","care":"Cold Heavy","size":{"width":1,"height":0,"depth":2},"count":3,` +
		`"content_type":"Part","content":{"name":"bolt","metal":"Iron"},` +
		`"crates":[{"name":"inner","content_type":"Note","content":{"text":"fragile"},"crates":[],"parts":[],"numbers":[],"sizes":[],"tags":[]}],` +
		`"parts":[{"name":"nut"}],"numbers":[1,-4611686018427387904],"sizes":[{"width":0,"height":3,"depth":0}],"bytes":[0,255],"tags":["x","y"]}`
	if string(text) != want {
		t.Errorf("the JSON is %s", text)
	}
	got := new(depot.CrateT)
	if err := json.Unmarshal(text, got); err != nil || !reflect.DeepEqual(got, crate("big")) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := json.Unmarshal([]byte(`{"name": "x", "place": "Moon"}`), got); err == nil || !strings.Contains(err.Error(), `place: "Moon" is not a value of depot.v1.Place: it has Yard, Hall, Ship`) {
		t.Error(err)
	}
}
