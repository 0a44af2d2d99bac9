package anser_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/codec/protobuf"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// Math is a service whose methods have several arguments and results.
type Math struct{}

// DivMod divides.
func (*Math) DivMod(_ context.Context, a, b int) (q, r int, err error) {
	if b == 0 {
		return 7, 7, anser.Errorf(anser.InvalidArgument, "division by zero")
	}
	return a / b, a % b, nil
}

// Sum adds.
func (*Math) Sum(_ context.Context, list []int) (int, error) {
	sum := 0
	for _, n := range list {
		sum += n
	}
	return sum, nil
}

// Check returns only an error.
func (*Math) Check(_ context.Context, name string, limits map[string]float64) error {
	if limits[name] == 0 {
		return anser.NotFound
	}
	return nil
}

// Mixed has a protobuf message among its parameters and results.
func (*Math) Mixed(_ context.Context, m *benchpb.BenchmarkMessage, in *Args, more []byte) (*benchpb.BenchmarkMessage, *Reply, []byte, error) {
	if m == nil {
		return nil, nil, nil, nil
	}
	return m, &Reply{in.A * in.B}, append(more, '!'), nil
}

// Close must not be served: it has neither parameters nor results.
func (*Math) Close(context.Context) error { return errors.New("closed by a stranger") }

var named = anser.Params("DivMod(a, b) (q, r)", "Sum(list) total", "Check(name, limits)", "Mixed(message, args, more) (message, reply, more)")

// mathFuncs are the functions of the service, for Bind.
type mathFuncs struct {
	DivMod func(ctx context.Context, a, b int) (q, r int, err error)
	Add    func(ctx context.Context, list []int) (int, error) `anser:"Sum"`
	Check  func(ctx context.Context, name string, limits map[string]float64) error
	Mixed  func(ctx context.Context, m *benchpb.BenchmarkMessage, in *Args, more []byte) (*benchpb.BenchmarkMessage, *Reply, []byte, error)
	other  func()
}

func serveMath(t testing.TB, opts ...anser.HandleOption) string {
	t.Helper()
	l := listen(t)
	s := anser.NewServer(silent)
	if err := s.Register(new(Math), opts...); err != nil {
		t.Fatal(err)
	}
	if err := s.RegisterFunc("Math.Mul", mul); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Stats().Methods["Math.Close"]; ok {
		t.Error("Close is served")
	}
	run(t, s, l)
	return l.Addr().String()
}

func TestBind(t *testing.T) {
	target := serveMath(t)
	for name, cd := range map[string]codec.Codec{"chosen": nil, "json": protobuf.NewJSON()} {
		t.Run(name, func(t *testing.T) {
			var opts []anser.DialOption
			if cd != nil {
				opts = append(opts, anser.Codec(cd))
			}
			c := dial(t, target, opts...)
			var math mathFuncs
			if err := anser.Bind(c, "Math", &math); err != nil {
				t.Fatal(err)
			}
			ctx := context.Background()
			if q, r, err := math.DivMod(ctx, 38, 7); q != 5 || r != 3 || err != nil {
				t.Error(q, r, err)
			}
			q, r, err := math.DivMod(ctx, 38, 0)
			if wantFault(t, err, anser.InvalidArgument, anser.Executed); q != 0 || r != 0 {
				t.Error(q, r)
			}
			if sum, err := math.Add(ctx, []int{1, 2, 3}); sum != 6 || err != nil {
				t.Error(sum, err)
			}
			if sum, err := math.Add(ctx, nil); sum != 0 || err != nil {
				t.Error(sum, err)
			}
			if err := math.Check(ctx, "a", map[string]float64{"a": 0.5}); err != nil {
				t.Error(err)
			}
			wantFault(t, math.Check(ctx, "b", nil), anser.NotFound, anser.Executed)
			m, reply, more, err := math.Mixed(ctx, benchpb.Filled(), &Args{7, 8}, []byte{0, 255})
			if err != nil || m.GetField1() != filled.GetField1() || reply.C != 56 || string(more) != "\x00\xff!" {
				t.Error(m, reply, more, err)
			}
			if m, reply, more, err := math.Mixed(ctx, nil, nil, nil); err != nil || m != nil || reply != nil || more != nil {
				t.Error(m, reply, more, err)
			}
			var product func(ctx context.Context, in *Args) (*Reply, error)
			if err := anser.Bind(c, "Math.Mul", &product); err != nil {
				t.Fatal(err)
			}
			if out, err := product(ctx, &Args{7, 8}); err != nil || out.C != 56 {
				t.Error(out, err)
			}
			var fill func(ctx context.Context, in *Args, out *Reply) error
			if err := anser.Bind(c, "Math.Mul", &fill); err != nil {
				t.Fatal(err)
			}
			var out Reply
			if err := fill(ctx, &Args{7, 8}, &out); err != nil || out.C != 56 {
				t.Error(out, err)
			}
			if _, _, err := math.DivMod(nil, 1, 2); anser.CodeOf(err) != anser.InvalidArgument { //nolint:staticcheck // a nil context is what is tested
				t.Error(err)
			}
		})
	}
}

// A caller without the types sends an array, or an object for named elements, and gets the same
// back.
func TestTuplesAsJSON(t *testing.T) {
	for name, opts := range map[string][]anser.HandleOption{"named": {named}, "numbered": nil} {
		c := dial(t, serveMath(t, opts...), anser.Codec(new(codec.JSON)))
		say := func(method, request string) (string, error) {
			in := json.RawMessage(request)
			out, err := anser.Call[json.RawMessage](context.Background(), c, method, &in)
			if err != nil {
				return "", err
			}
			return string(*out), nil
		}
		type row struct{ method, request, want string }
		rows := []row{
			{"Math.DivMod", `[38, 7]`, `[5,3]`},
			{"Math.Sum", `[[1, 2]]`, `[3]`},
			{"Math.Sum", `[null]`, `[0]`},
			{"Math.Check", `["a", {"a": 1}]`, `[]`},
		}
		wrong := []row{
			{"Math.DivMod", `[38]`, "1 arguments: want ("},
			{"Math.DivMod", `7`, "want an array or an object with the arguments ("},
			{"Math.DivMod", `{"x": 7}`, `there is no argument "x": want (`},
			{"Math.DivMod", `[1, "2"]`, "argument "},
		}
		if opts != nil {
			rows = append(rows, row{"Math.DivMod", `{"b": 7, "a": 38}`, `{"q":5,"r":3}`}, row{"Math.Sum", `{}`, `{"total":0}`})
			wrong = append(wrong, row{"Math.DivMod", `[38]`, "1 arguments: want (a int, b int)"}, row{"Math.DivMod", `[38, "7"]`, "argument b: "})
		} else {
			rows = append(rows, row{"Math.DivMod", `{"arg2": 7, "arg1": 38}`, `{"result1":5,"result2":3}`})
		}
		for _, r := range rows {
			if got, err := say(r.method, r.request); err != nil || got != r.want {
				t.Errorf("%s: %s(%s) = %s, %v; want %s", name, r.method, r.request, got, err, r.want)
			}
		}
		for _, r := range wrong {
			_, err := say(r.method, r.request)
			if e := wantFault(t, err, anser.InvalidArgument, anser.Refused); !strings.Contains(e.Message, r.want) {
				t.Errorf("%s: %s(%s): %v; want %s", name, r.method, r.request, err, r.want)
			}
		}
	}
}

func TestTuplesAreDescribed(t *testing.T) {
	for want, opts := range map[string][]anser.HandleOption{
		`(a int, b int) {"a":0,"b":0} (q int, r int) {"q":0,"r":0}`:   {named},
		`(arg1 int, arg2 int) [0,0] (result1 int, result2 int) [0,0]`: nil,
	} {
		c := dial(t, serveMath(t, opts...), anser.Codec(new(codec.JSON)))
		list, err := anser.Call[anser.MethodList](context.Background(), c, anser.MethodsName, new(anser.None))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Methods {
			if m.Name != "Math.DivMod" {
				continue
			}
			if got := strings.Join([]string{m.Request.Type, string(m.Request.JSON), m.Reply.Type, string(m.Reply.JSON)}, " "); got != want {
				t.Errorf("%s\nwant %s", got, want)
			}
		}
	}
}

// An interceptor sees the elements and their names.
func TestTupleInInterceptors(t *testing.T) {
	network := new(ansertest.Network)
	var seen []string
	s := anser.NewServer(silent, anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			in := inv.Request.(*anser.Tuple)
			err := next(ctx, inv)
			out := inv.Reply.(*anser.Tuple)
			if in.Len() != 2 || in.At(0) != 38 || out.Len() != 2 || out.At(1) != 3 {
				t.Error(in, out)
			}
			seen = append(seen, in.Name(0), out.Name(1))
			return err
		}
	}))
	if err := s.Register(new(Math), named); err != nil {
		t.Fatal(err)
	}
	run(t, s, network.Listen("a:1"))
	var divMod func(ctx context.Context, a, b int) (q, r int, err error)
	if err := anser.Bind(dial(t, "a:1", anser.Dialer(network.Dial)), "Math.DivMod", &divMod); err != nil {
		t.Fatal(err)
	}
	if _, _, err := divMod(context.Background(), 38, 7); err != nil || !reflect.DeepEqual(seen, []string{"a", "r"}) {
		t.Error(err, seen)
	}
}

func TestMistakesOfBindAndParams(t *testing.T) {
	c := dial(t, "127.0.0.1:1")
	bind := func(target any) func(*anser.Server) error {
		return func(*anser.Server) error { return anser.Bind(c, "Math.X", target) }
	}
	params := func(p string) func(*anser.Server) error {
		return func(s *anser.Server) error { return s.Register(new(Math), anser.Params(p)) }
	}
	var function func(context.Context, int) (int, int, error)
	for want, f := range map[string]func(*anser.Server) error{
		"is no pointer to a function variable":         bind(function),
		"<nil> is no pointer":                          bind(nil),
		"*int is no pointer":                           bind(new(int)),
		"has no exported field of a function type":     bind(new(struct{ other func() })),
		"field Bad: the signature func() cannot":       bind(new(struct{ Bad func() })),
		"the function has no context":                  bind(new(func(*Args, *Reply) error)),
		"argument 1, cannot travel":                    bind(new(func(context.Context, chan int) (int, int, error))),
		"the type anser_test.hidden is not exported":   bind(new(func(context.Context, hidden) (int, int, error))),
		"is not of the form":                           params("DivMod"),
		`"a" is not a name, or is there twice`:         params("DivMod(a, a) (q, r)"),
		`has 1 arguments, the function has 2`:          params("DivMod(a) (q, r)"),
		`has 1 results, the function has 2`:            params("DivMod(a, b) q"),
		`is of no method of *anser_test.Math`:          params("Div(a, b) (q, r)"),
		`it has one message and no list of arguments:`: func(s *anser.Server) error { return s.RegisterFunc("Math.Mul", mul, anser.Params("Mul(a) b")) },
	} {
		if err := f(anser.NewServer(silent)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
	if got := reflect.TypeFor[mathFuncs]().NumField(); got != 5 {
		t.Error(got)
	}
	var m mathFuncs
	if err := anser.Bind(c, "Math", &m); err != nil || m.other != nil {
		t.Error(err)
	}
}

// Arbitrary input is either accepted as a tuple or refused, without excess memory.
func FuzzTuple(f *testing.F) {
	tuple := func(t testing.TB) *anser.Tuple {
		var got *anser.Tuple
		s := anser.NewServer(silent, anser.Intercept(func(next anser.Func) anser.Func {
			return func(ctx context.Context, inv *anser.Invocation) error {
				got = inv.Request.(*anser.Tuple)
				return next(ctx, inv)
			}
		}))
		s.Register(new(Math), named)
		network := new(ansertest.Network)
		run(t, s, network.Listen("a:1"))
		var check func(context.Context, string, map[string]float64) error
		anser.Bind(dial(t, "a:1", anser.Dialer(network.Dial)), "Math.Check", &check)
		check(context.Background(), "", nil)
		return got
	}(f)
	f.Add([]byte(`["a", {"a": 1}]`))
	f.Add([]byte(`{"name": "a"}`))
	f.Add([]byte("\x92\xa1a\x81\xa1a\xcb\x3f\xe0\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("\x81\xa4name\xa1a"))
	f.Add([]byte("\xdf\xff\xff\xff\xff\xa1a"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if rest, err := tuple.UnmarshalMsg(data); err == nil {
			out, err := tuple.MarshalMsg(nil)
			if err != nil || len(rest) > len(data) {
				t.Fatalf("% x was taken and cannot be given: %v", data, err)
			}
			if _, err := tuple.UnmarshalMsg(out); err != nil {
				t.Fatalf("% x was made of % x and is not taken: %v", out, data, err)
			}
		}
		if tuple.UnmarshalJSON(data) == nil {
			if _, err := tuple.MarshalJSON(); err != nil {
				t.Fatalf("%q was taken and cannot be given: %v", data, err)
			}
		}
	})
}
