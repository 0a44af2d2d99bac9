package protocols_test

import (
	"context"
	"encoding/json"
	"net/rpc"
	"strings"
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

func jsonRPC() language {
	return language{name: "JSON-RPC over HTTP", call: func(ctx context.Context, m *matrixServer, text string, a asked) told {
		body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "test.Matrix.Say", "params": Words{text}})
		resp, data := overHTTP(ctx, m, "/jsonrpc", body, "application/json", a)
		var out rpcAnswer
		if resp == nil {
			return told{}
		}
		if json.Unmarshal(data, &out) != nil {
			return told{message: string(data)}
		}
		answer := out.told()
		answer.trailer = resp.Header.Get("Trailer-Last")
		return answer
	}}
}

// rpcClient calls with a client of net/rpc, which carries the message and nothing else.
func rpcClient(name string, dial func(network, address string) (*rpc.Client, error)) language {
	return language{name: name, call: func(ctx context.Context, m *matrixServer, text string, a asked) told {
		if a.metadata != nil || a.trace || a.gzip || a.key != "" {
			return told{}
		}
		c, err := dial("tcp", m.address)
		if err != nil {
			return told{message: err.Error()}
		}
		defer c.Close()
		if a.timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, a.timeout)
			defer cancel()
		}
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
	}}
}
