package protocols_test

import (
	"context"
	"encoding/json"
	"net"
	"net/rpc"
	"strings"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

// What a request with one answer, and one that is a method and a message alone, have no place for.
var (
	streamRows  = []string{"streams of the server", "streams of the client", "streams in both directions"}
	requestRows = []string{"deadline reaches the handler", "metadata", "gzip", "idempotency key", "trace"}
	oneAnswer   = lack{streamRows, "a request has one answer, so there are no streams"}
	bareRequest = lack{requestRows, "a request is a method and a message: it carries no deadline, metadata, compression, idempotency key or trace"}
)

// rpcAnswer is the answer of JSON-RPC 2.0.
type rpcAnswer struct {
	Result Words
	Error  *struct {
		Message string
		Data    struct {
			Code, Outcome string
			Details       json.RawMessage
		}
	}
}

func (a *rpcAnswer) told() told {
	if a.Error == nil {
		return told{text: a.Result.Text}
	}
	return told{code: strings.ReplaceAll(a.Error.Data.Code, "_", " "), message: a.Error.Message, outcome: a.Error.Data.Outcome, details: len(a.Error.Data.Details) > 0}
}

// rpcRequest returns a JSON-RPC 2.0 request.
func rpcRequest(text string) []byte {
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "test.Matrix.Say", "params": Words{text}})
	return body
}

func jsonRPC() language {
	call := func(ctx context.Context, m *matrixServer, text string, a asked) told {
		resp, data := overHTTP(ctx, m, "/jsonrpc", rpcRequest(text), "application/json", a)
		var out rpcAnswer
		if resp == nil {
			return told{}
		}
		if json.Unmarshal(data, &out) != nil {
			return told{message: string(data)}
		}
		got := out.told()
		got.trailer = resp.Header.Get("Trailer-Last")
		return got
	}
	return language{name: "JSON-RPC over HTTP", call: call, lacks: []lack{oneAnswer}}
}

// jsonRPCOverTCP sends the JSON-RPC 2.0 request by itself. A caller gives up by closing the
// connection.
func jsonRPCOverTCP() language {
	call := func(ctx context.Context, m *matrixServer, text string, _ asked) told {
		nc, err := new(net.Dialer).DialContext(ctx, "tcp", m.address)
		if err != nil {
			return told{message: err.Error()}
		}
		defer nc.Close()
		defer context.AfterFunc(ctx, func() { nc.Close() })()
		if _, err := nc.Write(append(rpcRequest(text), '\n')); err != nil {
			return told{}
		}
		var out rpcAnswer
		if json.NewDecoder(nc).Decode(&out) != nil {
			return told{}
		}
		return out.told()
	}
	return language{name: "JSON-RPC over TCP", call: call, lacks: []lack{
		oneAnswer, bareRequest, {[]string{"trailers"}, "an answer is a result or an error, without trailers"},
	}}
}

// netRPC calls with a net/rpc client. A caller gives up by closing the connection.
func netRPC() language {
	call := func(ctx context.Context, m *matrixServer, text string, _ asked) told {
		c, err := rpc.Dial("tcp", m.address)
		if err != nil {
			return told{message: err.Error()}
		}
		defer c.Close()
		var out Words
		call := c.Go("test.Matrix.Say", &Words{text}, &out, make(chan *rpc.Call, 1))
		select {
		case <-call.Done:
		case <-ctx.Done():
			return told{}
		}
		if call.Error != nil {
			return told{message: call.Error.Error()}
		}
		return told{text: out.Text}
	}
	return language{name: "net/rpc", call: call, lacks: []lack{
		oneAnswer, bareRequest,
		{[]string{"trailers", "code of an error", "details of an error", "outcome of an error"}, "an answer is a result, or an error as a text: there are no trailers, and no code, details or outcome of an error"},
	}}
}

// rpcx calls with an Anser client that speaks the protocol of rpcx.
func rpcx() language {
	l := throughAnser("rpcx", "rpcx://", func() anser.DialOption { return protocols.RPCX() })
	l.lacks = []lack{oneAnswer, {[]string{"details of an error"}, "an error is a text; metadata carries its code and outcome, but no details"}}
	return l
}
