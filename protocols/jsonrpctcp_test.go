package protocols_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
)

// A message over the limit of JSON-RPC over TCP is an error of its call, and the connection goes
// on.
func TestLargeMessagesOverTCP(t *testing.T) {
	_, address := serve(t, anser.MaxMessage(1000))
	x := strings.Repeat("x", 100_000)
	for name, row := range map[string]struct{ request, want string }{
		"2.0":           {`{"jsonrpc":"2.0","method":"Arith.Mul","params":["` + x + `"],"id":"a"}`, `"code":-32000,"message":"rpc: the request of 100061 bytes is over the server's limit of 1000: `},
		"2.0, id first": {`{"id":[1],"id":"a","jsonrpc":"2.0","params":{"id":7,"x":["` + x + `\"}"]},"method":"Arith.Mul"}`, `"id":"a"}`},
		"1.0":           {`{"method":"Arith.Mul","params":["` + x + `"],"id":7}`, `{"id":7,"result":null,"error":"rpc: the request of 100043 bytes is over`},
		"no method":     {`{"jsonrpc":"2.0","params":["` + x + `"],"id":"a"}`, `-32600`},
		"notification":  {`{"jsonrpc":"2.0","method":"Arith.Mul","params":["` + x + `"]}`, ``},
		"batch":         {`[{"jsonrpc":"2.0","method":"Arith.Mul","params":["` + x + `"],"id":"a"}]`, `"code":-32600,"message":"jsonrpc: a message is over the limit of 1000 bytes`},
	} {
		got := overTCP(t, address, row.request+`{"jsonrpc":"2.0","method":"Arith.Mul","params":{"A":7,"B":8},"id":2}`)
		first, second, two := strings.Cut(got, "\n")
		if !two {
			first, second = "", first
		}
		if !strings.Contains(first, row.want) || (row.want == "") != (first == "") || second != `{"jsonrpc":"2.0","result":{"C":56},"id":2}` {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A message whose end is not found ends the connection, and its client can read why.
func TestEndlessMessagesOverTCP(t *testing.T) {
	_, address := serve(t, anser.MaxMessage(1<<20))
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	written := make(chan struct{})
	go func() {
		defer close(written)
		piece := []byte(strings.Repeat("x", 1<<20))
		_, err := io.WriteString(nc, `{"jsonrpc":"2.0","method":"Arith.Mul","id":1,"params":["`)
		for err == nil {
			_, err = nc.Write(piece)
		}
	}()
	got, err := io.ReadAll(nc)
	if err != nil || !strings.Contains(string(got), `"code":-32600,"message":"jsonrpc: a message is over the limit of 1048576 bytes`) {
		t.Errorf("%s, %v", got, err)
	}
	<-written
}

// A client that sends no JSON can read why its connection ends, although it sends more.
func TestBrokenMessagesOverTCP(t *testing.T) {
	_, address := serve(t)
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	io.WriteString(nc, `[]{"jsonrpc":"2.0",,}`+strings.Repeat(" ", 200_000)+strings.Repeat("x", 200_000))
	got, err := io.ReadAll(nc)
	if err != nil || !strings.Contains(string(got), "-32700") {
		t.Errorf("%s, %v", got, err)
	}
}
