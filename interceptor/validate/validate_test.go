package validate_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/interceptor/validate"
)

var silent = anser.Logger(slog.New(slog.DiscardHandler))

// order validates itself, and reports several fields.
type order struct{ Count, Price int }

func (o *order) Validate() error {
	var errs []error
	if o.Count < 1 {
		errs = append(errs, errors.New("Count: want at least 1"))
	}
	if o.Price < 1 {
		errs = append(errs, errors.New("Price: want at least 1"))
	}
	return errors.Join(errs...)
}

// generated has the methods of protoc-gen-validate: Validate stops at the first field, ValidateAll
// does not.
type generated struct{ A, B string }

type multi []error

func (m multi) Error() string      { return "several" }
func (m multi) AllErrors() []error { return m }

func (g *generated) Validate() error { return errors.New("only the first field") }
func (g *generated) ValidateAll() error {
	var m multi
	for _, f := range []string{g.A, g.B} {
		if f == "" {
			m = append(m, fmt.Errorf("invalid generated.%c: value is required", 'A'+byte(len(m))))
		}
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// plain has no method Validate.
type plain struct{ Name string }

type reply struct{ OK bool }

// serve runs a server on a socket; ran counts the calls of its handlers.
func serve(t *testing.T, ran *atomic.Int64, opts ...anser.ServerOption) string {
	t.Helper()
	s := anser.NewServer(append(opts, silent)...)
	anser.Handle(s, "Shop.Order", handle[order](ran))
	anser.Handle(s, "Shop.Generated", handle[generated](ran))
	anser.Handle(s, "Shop.Plain", handle[plain](ran))
	anser.Handle(s, "Shop.Bytes", handle[[]byte](ran))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return l.Addr().String()
}

func handle[A any](ran *atomic.Int64) func(context.Context, *A) (*reply, error) {
	return func(context.Context, *A) (*reply, error) {
		ran.Add(1)
		return &reply{true}, nil
	}
}

func dial(t *testing.T, address string, opts ...anser.DialOption) *anser.Client {
	t.Helper()
	c, err := anser.Dial(address, append(opts, silent)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func rules(t *testing.T) anser.Interceptor {
	t.Helper()
	v, err := validate.New(
		validate.Func(func(p *plain) error {
			if p.Name == "" {
				return errors.New("Name: is required")
			}
			return nil
		}),
		validate.Func(func(p *plain) error {
			if strings.Contains(p.Name, " ") {
				return errors.New("Name: no spaces")
			}
			return nil
		}),
		validate.Structs(func(m any) error {
			if p, ok := m.(*plain); ok && len(p.Name) > 5 {
				return errors.New("line one\nline two")
			}
			return nil
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var cases = []struct {
	method  string
	request any
	want    string // end of the message; "" if it is valid
}{
	{"Shop.Order", &order{Count: 1, Price: 1}, ""},
	{"Shop.Order", &order{}, ": Count: want at least 1; Price: want at least 1"},
	{"Shop.Generated", &generated{"a", "b"}, ""},
	{"Shop.Generated", &generated{}, ": invalid generated.A: value is required; invalid generated.B: value is required"},
	{"Shop.Plain", &plain{"x"}, ""},
	{"Shop.Plain", &plain{}, ": Name: is required"},
	{"Shop.Plain", &plain{"a b c d"}, ": Name: no spaces; line one; line two"},
	{"Shop.Bytes", &[]byte{1}, ""},
}

func TestServer(t *testing.T) {
	var ran atomic.Int64
	c := dial(t, serve(t, &ran, anser.Intercept(rules(t))))
	check(t, c, &ran, anser.Refused)
}

// A client does not send an invalid request.
func TestClient(t *testing.T) {
	var ran atomic.Int64
	c := dial(t, serve(t, &ran), anser.Intercept(rules(t)))
	check(t, c, &ran, anser.NotSent)
}

func check(t *testing.T, c *anser.Client, ran *atomic.Int64, outcome anser.Outcome) {
	for _, test := range cases {
		before := ran.Load()
		var out reply
		err := c.Call(context.Background(), test.method, test.request, &out)
		if test.want == "" {
			if err != nil || ran.Load() != before+1 {
				t.Errorf("%+v: %v, ran %d times", test, err, ran.Load()-before)
			}
			continue
		}
		e, ok := errors.AsType[*anser.Error](err)
		if !ok || e.Code != anser.InvalidArgument || e.Outcome != outcome || len(e.Attempts) > 1 || e.Method != test.method {
			t.Fatalf("%+v: %+v", test, err)
		}
		if !strings.HasPrefix(e.Message, "the request is not valid: ") || !strings.HasSuffix(e.Message, test.want) {
			t.Errorf("%+v: %s", test, e.Message)
		}
		if ran.Load() != before {
			t.Errorf("%+v: the handler ran", test)
		}
	}
}

// A request with very many invalid fields does not cause a message of the same size.
func TestManyFields(t *testing.T) {
	v, err := validate.New(validate.Func(func(*plain) error {
		var errs []error
		for i := range 10_000 {
			errs = append(errs, fmt.Errorf("Field%d: wrong", i))
		}
		return errors.Join(errs...)
	}))
	if err != nil {
		t.Fatal(err)
	}
	err = v(nil)(context.Background(), &anser.Invocation{Request: &plain{}, Server: true})
	if err == nil || !strings.HasSuffix(err.Error(), "and 9968 more") || len(err.Error()) > 2000 {
		t.Error(err)
	}
}

func TestMistakes(t *testing.T) {
	_, err := validate.New(nil, validate.Func[order](nil), validate.Structs(nil))
	if err == nil || len(strings.Split(err.Error(), "\n")) != 3 {
		t.Error(err)
	}
}
