package desk_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/gen/gentest/desk"
	"github.com/anser-rpc/anser/codec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clerk implements all methods but Now.
type clerk struct {
	desk.UnimplementedDesk
	noted chan string
}

func (c *clerk) Ask(_ context.Context, in *desk.Question) (*desk.Answer, error) {
	return &desk.Answer{Text: in.Text + "?"}, nil
}

func (c *clerk) Price(_ context.Context, in *desk.Question, out *desk.Answer) error {
	out.Text = "2.50"
	return nil
}

func (c *clerk) DivMod(_ context.Context, a, b int) (q, r int, err error) {
	if b == 0 {
		return 0, 0, anser.Errorf(anser.InvalidArgument, "b is 0")
	}
	return a / b, a % b, nil
}

func (c *clerk) Set(_ context.Context, name string, values map[string][]float64, err *desk.Answer) error {
	if name == "" || len(values["x"]) != 2 || err.Text != "text" {
		return anser.Errorf(anser.InvalidArgument, "%q %v %v", name, values, err)
	}
	return nil
}

func (c *clerk) Note(_ context.Context, in *desk.Question) error {
	c.noted <- in.Text
	return nil
}

func (c *clerk) Watch(_ context.Context, in *desk.Question, out anser.Sender[desk.Answer]) error {
	for word := range strings.FieldsSeq(in.Text) {
		if err := out.Send(&desk.Answer{Text: word}); err != nil {
			return err
		}
	}
	return nil
}

func (c *clerk) Collect(_ context.Context, in anser.Receiver[desk.Question]) (*desk.Answer, error) {
	out := new(desk.Answer)
	for q, err := range in.All() {
		if err != nil {
			return nil, err
		}
		out.Text += q.Text
	}
	return out, nil
}

func (c *clerk) Talk(_ context.Context, st *anser.Stream[desk.Answer, desk.Question]) error {
	for q, err := range st.All() {
		if err != nil {
			return err
		}
		if err := st.Send(&desk.Answer{Text: q.Text}); err != nil {
			return err
		}
	}
	return nil
}

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// open serves what add adds and returns a client.
func open(t *testing.T, add func(s *anser.Server) error) *anser.Client {
	t.Helper()
	s := anser.NewServer(silent)
	if err := add(s); err != nil {
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
	return c
}

func TestEveryShape(t *testing.T) {
	server := &clerk{noted: make(chan string, 1)}
	conn := open(t, func(s *anser.Server) error { return desk.RegisterDesk(s, server) })
	c, ctx := desk.NewDeskClient(conn), t.Context()
	for _, opts := range [][]anser.CallOption{nil, {anser.Codec(new(codec.JSON))}} {
		if out, err := c.Ask(ctx, &desk.Question{Text: "why", About: []desk.Topic{{"a"}}}, opts...); err != nil || out.Text != "why?" {
			t.Errorf("Ask: %v, %v", out, err)
		}
		if out, err := c.Price(ctx, new(desk.Question), opts...); err != nil || out.Text != "2.50" {
			t.Errorf("Price: %v, %v", out, err)
		}
		if q, r, err := c.DivMod(ctx, 38, 7, opts...); err != nil || q != 5 || r != 3 {
			t.Errorf("DivMod: %d, %d, %v", q, r, err)
		}
		if q, r, err := c.DivMod(ctx, 38, 0, opts...); anser.CodeOf(err) != anser.InvalidArgument || q != 0 || r != 0 {
			t.Errorf("DivMod by 0: %d, %d, %v", q, r, err)
		}
		if err := c.Set(ctx, "n", map[string][]float64{"x": {1, 2}}, &desk.Answer{Text: "text"}, opts...); err != nil {
			t.Errorf("Set: %v", err)
		}
		if _, _, err := c.Now(ctx, opts...); anser.CodeOf(err) != anser.Unimplemented {
			t.Errorf("Now: %v", err)
		}
		watched, err := c.Watch(ctx, &desk.Question{Text: "a b c"}, opts...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for a, err := range watched.All() {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, a.Text)
		}
		if !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("Watch: %v", got)
		}
	}
	if err := c.Note(ctx, &desk.Question{Text: "note"}); err != nil || <-server.noted != "note" {
		t.Errorf("Note: %v", err)
	}
	collect, err := c.Collect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(collect.Send(&desk.Question{Text: "x"}), collect.Send(&desk.Question{Text: "y"})); err != nil {
		t.Fatal(err)
	}
	if out, err := collect.CloseAndRecv(); err != nil || out.Text != "xy" {
		t.Errorf("Collect: %v, %v", out, err)
	}
}

// by is a server whose methods are found by reflection, with another implementation of Now.
type by struct{ clerk }

func (*by) Now(context.Context) (time.Time, *durationpb.Duration, error) {
	return time.Unix(1, 0).UTC(), durationpb.New(time.Minute), nil
}

// The messages are those of methods that are registered and called by reflection.
func TestSameAsReflection(t *testing.T) {
	conn := open(t, func(s *anser.Server) error {
		return errors.Join(
			s.RegisterFunc("office.Desk.DivMod", new(clerk).DivMod),
			s.RegisterFunc("office.Desk.Now", new(by).Now),
			s.RegisterFunc("office.Desk.Set", new(clerk).Set),
		)
	})
	c := desk.NewDeskClient(conn)
	if q, r, err := c.DivMod(t.Context(), 38, 7); err != nil || q != 5 || r != 3 {
		t.Errorf("DivMod: %d, %d, %v", q, r, err)
	}
	if at, d, err := c.Now(t.Context()); err != nil || !at.Equal(time.Unix(1, 0)) || d.AsDuration() != time.Minute {
		t.Errorf("Now: %v, %v, %v", at, d, err)
	}
	conn = open(t, func(s *anser.Server) error { return desk.RegisterDesk(s, new(by)) })
	var methods struct {
		DivMod func(ctx context.Context, a, b int) (int, int, error)
		Now    func(ctx context.Context) (time.Time, *durationpb.Duration, error)
	}
	if err := anser.Bind(conn, "office.Desk", &methods); err != nil {
		t.Fatal(err)
	}
	if q, r, err := methods.DivMod(t.Context(), 38, 7); err != nil || q != 5 || r != 3 {
		t.Errorf("DivMod: %d, %d, %v", q, r, err)
	}
	if at, d, err := methods.Now(t.Context()); err != nil || !at.Equal(time.Unix(1, 0)) || d.AsDuration() != time.Minute {
		t.Errorf("Now: %v, %v, %v", at, d, err)
	}
}

func TestDescribed(t *testing.T) {
	conn := open(t, func(s *anser.Server) error { return desk.RegisterDesk(s, new(by)) })
	var list anser.MethodList
	if err := conn.Call(t.Context(), anser.MethodsName, new(anser.None), &list, anser.Codec(new(codec.JSON))); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Methods, func(m anser.MethodInfo) bool { return m.Name == "office.Desk.DivMod" })
	if i < 0 {
		t.Fatal("DivMod is not described")
	}
	m := list.Methods[i]
	if m.Doc != "DivMod divides." || m.Request.Type != "(a int, b int)" || string(m.Request.JSON) != `{"a":0,"b":0}` || len(m.Fingerprint) != 16 {
		t.Errorf("DivMod is described as %+v", m)
	}
}
