package netrpc_test

import (
	"errors"
	"io"
	"net/http"
	stock "net/rpc"
	stockjson "net/rpc/jsonrpc"
	"reflect"
	"sync"
	"testing"

	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// caller is the common interface of both packages' clients.
type caller interface {
	Call(method string, args, reply any) error
	Go(method string, args, reply any, done chan *stock.Call) *stock.Call
	io.Closer
}

// Every client can call every server, over every wire format.
func TestInterop(t *testing.T) {
	ours := quiet(new(Arith))
	mux := http.NewServeMux()
	ours.HandleHTTPMux(mux, netrpc.DefaultRPCPath, "")
	theirs := stock.NewServer()
	theirs.Register(new(Arith))
	stockMux := http.NewServeMux()
	stockMux.Handle(netrpc.DefaultRPCPath, theirs)
	gob, json, web := serve(t, ours, nil), serve(t, ours, jsonrpc.NewServerCodec), serveHTTP(t, mux)
	stockGob := stockServe(t, nil, new(Arith))
	stockJSON := stockServe(t, stockjson.NewServerCodec, new(Arith))
	stockWeb := serveHTTP(t, stockMux)
	// A net/rpc server with our codec, and ours with theirs: the types are the same.
	mixed := stockServe(t, jsonrpc.NewServerCodec, new(Arith))
	mixedToo := serve(t, quiet(new(Arith)), stockjson.NewServerCodec)

	type dials map[string]func() (caller, error)
	stockDial := func(addr string) func() (caller, error) {
		return func() (caller, error) { return stock.Dial("tcp", addr) }
	}
	dialGob := func(addr string) func() (caller, error) {
		return func() (caller, error) { return netrpc.Dial("tcp", addr) }
	}
	for name, dial := range (dials{
		"net/rpc to netrpc, gob":     stockDial(gob),
		"netrpc to netrpc, gob":      dialGob(gob),
		"netrpc to net/rpc, gob":     dialGob(stockGob),
		"net/rpc to netrpc, CONNECT": func() (caller, error) { return stock.DialHTTP("tcp", web) },
		"netrpc to netrpc, CONNECT":  func() (caller, error) { return netrpc.DialHTTP("tcp", web) },
		"netrpc to net/rpc, CONNECT": func() (caller, error) { return netrpc.DialHTTP("tcp", stockWeb) },
		"net/rpc to netrpc, JSON":    func() (caller, error) { return stockjson.Dial("tcp", json) },
		"netrpc to netrpc, JSON":     func() (caller, error) { return jsonrpc.Dial("tcp", json) },
		"netrpc to net/rpc, JSON":    func() (caller, error) { return jsonrpc.Dial("tcp", stockJSON) },
		"netrpc to netrpc, JSON 2":   func() (caller, error) { return jsonrpc.Dial2("tcp", json) },
		"our codec in net/rpc":       func() (caller, error) { return jsonrpc.Dial("tcp", mixed) },
		"our codec in net/rpc, 2":    func() (caller, error) { return jsonrpc.Dial2("tcp", mixed) },
		"their codec in netrpc":      func() (caller, error) { return stockjson.Dial("tcp", mixedToo) },
	}) {
		t.Run(name, func(t *testing.T) {
			c, err := dial()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			talk(t, c)
		})
	}
}

// talk makes a series of calls of an Arith.
func talk(t *testing.T, c caller) {
	mustAdd(t, c)
	var quotient Reply
	if err := c.Call("Arith.Div", &Args{1, 0}, &quotient); err == nil || err.Error() != "divide by zero" {
		t.Errorf("Div: %v", err)
	}
	if err := c.Call("Arith.Nothing", &Args{}, &quotient); err == nil || err.Error() != "rpc: can't find method Arith.Nothing" {
		t.Errorf("an unknown method: %v", err)
	}
	if err := c.Call("Nobody.Add", &Args{}, &quotient); err == nil || err.Error() != "rpc: can't find service Nobody.Add" {
		t.Errorf("an unknown service: %v", err)
	}
	if err := c.Call("Arith.Add", "text", &quotient); err == nil {
		t.Error("an argument of another type passes")
	}
	counts := make(map[rune]int)
	if err := c.Call("Arith.Count", "anser", &counts); err != nil || !reflect.DeepEqual(counts, map[rune]int{'a': 1, 'n': 1, 's': 1, 'e': 1, 'r': 1}) {
		t.Errorf("Count: %v, %v", counts, err)
	}
	var group sync.WaitGroup
	for i := range 50 {
		group.Go(func() {
			var reply Reply
			if err := c.Call("Arith.Mul", &Args{i, 3}, &reply); err != nil || reply.C != 3*i {
				t.Errorf("Mul: %v, %v", reply, err)
			}
		})
	}
	group.Wait()
	done := make(chan *stock.Call, 20)
	for i := range cap(done) {
		c.Go("Arith.Mul", &Args{i, 2}, new(Reply), done)
	}
	for range cap(done) {
		call := <-done
		if got, want := call.Reply.(*Reply).C, 2*call.Args.(*Args).A; call.Error != nil || got != want {
			t.Errorf("Go: %v, want %v, %v", got, want, call.Error)
		}
	}
}

// The errors are the same values and types, whichever package a program uses.
func TestSameErrors(t *testing.T) {
	s := quiet(new(Arith))
	c := dial(t, serve(t, s, nil))
	err := c.Call("Arith.Div", &Args{1, 0}, new(Reply))
	if _, ok := err.(stock.ServerError); !ok {
		t.Errorf("got %T, want a ServerError", err)
	}
	c.Close()
	if err := c.Call("Arith.Add", Args{}, new(Reply)); err != stock.ErrShutdown {
		t.Errorf("after Close: %v, want ErrShutdown", err)
	}
	if err := c.Close(); !errors.Is(err, netrpc.ErrShutdown) {
		t.Errorf("a second Close: %v, want ErrShutdown", err)
	}
}
