package workload_test

import (
	"context"
	"errors"
	"testing"

	"github.com/anser-rpc/anser/arena/workload"
)

// server is a Conn without a network; wrong makes its replies wrong.
type server struct {
	addr   string
	wrong  bool
	calls  int
	closed int
	seen   []int32
}

func (s *server) Say(context.Context, *workload.BenchmarkMessage) (workload.Said, error) {
	s.calls++
	out := new(workload.BenchmarkMessage)
	if !s.wrong {
		new(workload.ServerOptions).Answer(out)
	}
	return out, nil
}

func (s *server) Add(_ context.Context, in *workload.AddRequest) (*workload.AddReply, error) {
	s.calls++
	s.seen = append(s.seen, in.A)
	out := &workload.AddReply{X: in.A + in.B}
	if s.wrong {
		out.X++
	}
	return out, nil
}

func (s *server) Close() error { s.closed++; return nil }

type asyncServer struct{ *server }

func (s asyncServer) StartSay(ctx context.Context, in *workload.BenchmarkMessage) func() (workload.Said, error) {
	return func() (workload.Said, error) { return s.Say(ctx, in) }
}

func (s asyncServer) StartAdd(ctx context.Context, in *workload.AddRequest) func() (*workload.AddReply, error) {
	return func() (*workload.AddReply, error) { return s.Add(ctx, in) }
}

// conns records what was dialled.
type conns struct {
	wrong bool
	all   []*server
}

func (c *conns) dial(_ context.Context, addr string) (workload.Conn, error) {
	if addr == "" {
		return nil, errors.New("no address")
	}
	c.all = append(c.all, &server{addr: addr, wrong: c.wrong})
	return c.all[len(c.all)-1], nil
}

func (c *conns) dialAsync(ctx context.Context, addr string) (workload.AsyncConn, error) {
	s, err := c.dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	return asyncServer{s.(*server)}, nil
}

func options(name string, callers, conns int) *workload.ClientOptions {
	return &workload.ClientOptions{
		Addrs: []string{"h:1", "h:2"}, Workload: name, Callers: callers, Conns: conns, Window: 1, Payload: workload.StandardPayload,
	}
}

// Connections and callers are spread evenly over the servers.
func TestOpenSpreads(t *testing.T) {
	for _, name := range []string{"say", "add"} {
		for _, test := range []struct{ callers, conns, dialled, calls int }{
			{callers: 12, conns: 4, dialled: 4, calls: 3},
			{callers: 6, conns: 0, dialled: 6, calls: 1},
		} {
			c := new(conns)
			caller, closing, err := workload.Open(c.dial)(t.Context(), options(name, test.callers, test.conns))
			if err != nil {
				t.Fatal(err)
			}
			for i := range test.callers {
				if err := caller(i)(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			closing()
			if len(c.all) != test.dialled {
				t.Errorf("%d connections instead of %d", len(c.all), test.dialled)
			}
			for i, s := range c.all {
				if want := []string{"h:1", "h:2"}[i%2]; s.addr != want || s.calls != test.calls || s.closed != 1 {
					t.Errorf("connection %d to %s, want %s: %d calls, closed %d times", i, s.addr, want, s.calls, s.closed)
				}
			}
		}
	}
}

func TestOpenFresh(t *testing.T) {
	c := new(conns)
	o := options("add", 2, 0)
	o.Fresh = true
	caller, closing, err := workload.Open(c.dial)(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	call := caller(1)
	for range 3 {
		if err := call(t.Context()); err != nil {
			t.Error(err)
		}
	}
	closing()
	// The first two found out that the servers are there.
	if len(c.all) != 5 || c.all[0].addr != "h:1" || c.all[0].closed != 1 || c.all[1].addr != "h:2" || c.all[1].closed != 1 {
		t.Fatalf("%d connections for 3 calls", len(c.all))
	}
	for i, s := range c.all[2:] {
		if s.addr != "h:2" || s.closed != 1 || len(s.seen) != 1 || s.seen[0] != int32(i) {
			t.Errorf("connection %d to %s: saw %v, closed %d times", i, s.addr, s.seen, s.closed)
		}
	}
}

func TestOpenChecksReplies(t *testing.T) {
	for _, name := range []string{"say", "add"} {
		for _, fresh := range []bool{false, true} {
			c := &conns{wrong: true}
			o := options(name, 1, 1)
			o.Fresh = fresh
			caller, _, err := workload.Open(c.dial)(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := caller(0)(t.Context()); !errors.Is(err, workload.ErrWrong) {
				t.Errorf("%s, fresh %v: %v", name, fresh, err)
			}
		}
		c := &conns{wrong: true}
		caller, _, err := workload.OpenAsync(c.dialAsync)(t.Context(), options(name, 1, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := caller(0)(t.Context())(); !errors.Is(err, workload.ErrWrong) {
			t.Errorf("%s, asynchronous: %v", name, err)
		}
	}
}

func TestOpenAsync(t *testing.T) {
	c := new(conns)
	caller, closing, err := workload.OpenAsync(c.dialAsync)(t.Context(), options("add", 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	start := caller(0)
	first, second := start(t.Context()), start(t.Context())
	if err := errors.Join(first(), second()); err != nil {
		t.Error(err)
	}
	closing()
	if len(c.all) != 1 || len(c.all[0].seen) != 2 || c.all[0].seen[1] != 1 || c.all[0].closed != 1 {
		t.Errorf("connections %+v", c.all)
	}
	o := options("add", 1, 1)
	o.Fresh = true
	if _, _, err := workload.OpenAsync(c.dialAsync)(t.Context(), o); err == nil {
		t.Error("opened with --fresh")
	}
}

// A client that connects with its first call has made one before the measurement, unless each call
// has a client of its own.
func TestOpenLazy(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		c := new(conns)
		o := options("say", 1, 1)
		o.Fresh = fresh
		caller, closing, err := workload.OpenLazy(c.dial)(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(c.all[0].seen) != 1 {
			t.Errorf("fresh %v: %d calls of add", fresh, len(c.all[0].seen))
		}
		if err := caller(0)(t.Context()); err != nil {
			t.Error(err)
		}
		if last := c.all[len(c.all)-1]; fresh && len(last.seen) != 0 {
			t.Error("a call of add on a connection of one call")
		}
		closing()
		for i, s := range c.all {
			if s.closed != 1 {
				t.Errorf("fresh %v: connection %d closed %d times", fresh, i, s.closed)
			}
		}
	}
}

// views is a server that counts its views.
type views struct {
	*server
	views int
}

func (v *views) Caller() workload.Conn { v.views++; return v.server }

func TestOpenGivesEachCallerAView(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		var all []*views
		dial := func(_ context.Context, addr string) (workload.Conn, error) {
			all = append(all, &views{server: &server{addr: addr}})
			return all[len(all)-1], nil
		}
		o := options("add", 3, 1)
		o.Fresh = fresh
		caller, closing, err := workload.Open(dial)(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			call := caller(i)
			for range 2 {
				if err := call(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
		closing()
		if fresh && (len(all) != 2+6 || all[7].views != 1) || !fresh && (len(all) != 1 || all[0].views != 3 || all[0].calls != 6) {
			t.Errorf("fresh %v: %d connections, %d views of the last", fresh, len(all), all[len(all)-1].views)
		}
	}
}

// A connection that cannot be made ends the program, and the others are closed.
func TestOpenFails(t *testing.T) {
	c := new(conns)
	o := options("say", 2, 0)
	o.Addrs[1] = ""
	if _, _, err := workload.Open(c.dial)(t.Context(), o); err == nil || len(c.all) != 1 || c.all[0].closed != 1 {
		t.Errorf("error %v, connections %+v", err, c.all)
	}
	o.Fresh = true
	if _, _, err := workload.Open(c.dial)(t.Context(), o); err == nil {
		t.Error("opened for fresh connections to nowhere")
	}
}
