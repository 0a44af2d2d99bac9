package jsonrpc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	stockjson "net/rpc/jsonrpc"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

// Args and Reply are the messages of Arith.
type (
	Args  struct{ A, B int }
	Reply struct{ C int }
)

// Arith is a service.
type Arith struct{}

// Add adds.
func (Arith) Add(in *Args, out *Reply) error {
	out.C = in.A + in.B
	return nil
}

// Length takes an argument that is not an object.
func (Arith) Length(in string, out *int) error {
	*out = len(in)
	return nil
}

// Denied fails with a code.
func (Arith) Denied(context.Context, *Args) (*Reply, error) {
	return nil, anser.Errorf(anser.PermissionDenied, "adding is not for everybody")
}

// Inf returns a value that JSON does not support.
func (Arith) Inf(_ *Args, out *float64) error {
	*out = math.Inf(1)
	return nil
}

func newServer(t testing.TB) *netrpc.Server {
	t.Helper()
	s := &netrpc.Server{Logger: slog.New(slog.DiscardHandler)}
	if err := s.Register(Arith{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// connect returns a connection to a JSON-RPC server.
func connect(t testing.TB) net.Conn {
	t.Helper()
	s := newServer(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, jsonrpc.NewServerCodec) }()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		s.Close()
		<-served
	})
	return conn
}

// newClient returns a client of 2.0, or of 1.0.
var newClient = map[bool]func(io.ReadWriteCloser) *netrpc.Client{true: jsonrpc.NewClient2, false: jsonrpc.NewClient}

// The client of each version writes requests as defined by that version.
func TestRequests(t *testing.T) {
	for _, c := range []struct {
		second bool
		in     any
		want   string
	}{
		{false, &Args{1, 2}, `{"method":"M","params":[{"A":1,"B":2}],"id":0}`},
		{false, "x", `{"method":"M","params":["x"],"id":0}`},
		{false, nil, `{"method":"M","params":[null],"id":0}`},
		{true, &Args{1, 2}, `{"jsonrpc":"2.0","method":"M","params":{"A":1,"B":2},"id":0}`},
		{true, "x", `{"jsonrpc":"2.0","method":"M","params":["x"],"id":0}`},
		{true, []int{1, 2}, `{"jsonrpc":"2.0","method":"M","params":[[1,2]],"id":0}`},
	} {
		one, two := ansertest.Pipe()
		client := newClient[c.second](one)
		client.Go("M", c.in, new(Reply), nil)
		got, err := bufio.NewReader(two).ReadString('\n')
		if err != nil || strings.TrimSpace(got) != c.want {
			t.Errorf("%v: %s, %v\nwant %s", c.in, got, err, c.want)
		}
		client.Close()
		two.Close()
	}
}

// Answers of a server, with the results of the call.
func TestResponses(t *testing.T) {
	for _, c := range []struct {
		second         bool
		response, want string // of the error; "" for none
	}{
		{false, `{"id":0,"result":{"C":3},"error":null}`, ""},
		{false, `{"id":0,"result":null,"error":"no"}`, "no"},
		{false, `{"id":0,"result":null,"error":""}`, "unspecified error"},
		{false, `{"id":0,"result":null,"error":{"code":1}}`, `{"code":1}`},
		{false, `{"id":0,"result":null,"error":null}`, "neither a result nor an error"},
		{false, `{"id":0,"result":{"C":"x"},"error":null}`, "reading body"},
		{true, `{"jsonrpc":"2.0","id":0,"result":{"C":3}}`, ""},
		{true, `{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"no such method"}}`, "no such method"},
		{true, `{"jsonrpc":"2.0","id":0,"error":{"code":7}}`, "error 7"},
		{true, `{"jsonrpc":"2.0","id":0}`, "neither a result nor an error"},
		{true, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`, "did not understand"},
		{true, `{"jsonrpc":"2.0","id":0,"result":}`, "broken"},
	} {
		one, two := ansertest.Pipe()
		client := newClient[c.second](one)
		var reply Reply
		call := client.Go("M", &Args{}, &reply, nil)
		if _, err := io.WriteString(two, c.response); err != nil {
			t.Fatal(err)
		}
		err := (<-call.Done).Error
		switch {
		case c.want == "" && (err != nil || reply.C != 3):
			t.Errorf("%s: %v, %v", c.response, reply, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.response, err, c.want)
		}
		client.Close()
		two.Close()
	}
}

// The code of an error of Anser is sent in addition to its text.
func TestCodesOfErrors(t *testing.T) {
	c := jsonrpc.NewClient2(connect(t))
	defer c.Close()
	err := c.Call("Arith.Denied", &Args{}, new(Reply))
	known, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok || known.Code != jsonrpc.CodeServer || known.Message != "adding is not for everybody" || string(known.Data) != `{"code":"permission denied"}` {
		t.Errorf("got %v, %+v", err, known)
	}
	if err := c.Call("Arith.Inf", &Args{}, new(float64)); err == nil || !strings.Contains(err.Error(), "cannot encode the reply of Arith.Inf") {
		t.Errorf("a reply that JSON does not have: %v", err)
	}
	var n int
	if err := c.Call("Arith.Length", "four", &n); err != nil || n != 4 {
		t.Errorf("after it: %v, %v", n, err)
	}
}

// Clients of 1.0 and 2.0 may share a connection, and an invalid message gets an answer in 2.0.
func TestBrokenMessages(t *testing.T) {
	for _, c := range []struct{ sent, want string }{
		{`{"jsonrpc":"2.0","method":"Arith.Add","params":[{"A":1,"B":2}],"id":1}{"jsonrpc":"2.0",,}`, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"the message is not valid JSON"},"id":null}`},
		{`[{"jsonrpc":"2.0"`, ""},
		{`{"method":7,"params":[],"id":1}`, ""},
		{`"text"`, ""},
	} {
		conn := connect(t)
		if _, err := io.WriteString(conn, c.sent); err != nil {
			t.Fatal(err)
		}
		conn.(*net.TCPConn).CloseWrite()
		all, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(all); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s is answered with %s, want %s", c.sent, got, c.want)
		}
	}
}

// ServeConn uses the default server, and also serves net/rpc's clients.
func TestServeConn(t *testing.T) {
	name := fmt.Sprintf("Arith%d", time.Now().UnixNano()) // a name cannot be removed from the default server, even if the test runs again
	if err := netrpc.RegisterName(name, Arith{}); err != nil {
		t.Fatal(err)
	}
	one, two := net.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		jsonrpc.ServeConn(one)
	}()
	c := stockjson.NewClient(two)
	var reply Reply
	if err := c.Call(name+".Add", &Args{1, 2}, &reply); err != nil || reply.C != 3 {
		t.Errorf("Add: %v, %v", reply, err)
	}
	c.Close()
	<-served
}
