package protocols_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/rpc"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
)

// visitRPC makes JSON-RPC 2.0 calls over HTTP, with a text around each of them.
func visitRPC(around string) func(*web) *visitor {
	return func(w *web) *visitor {
		return &visitor{call: func(ctx context.Context, method string) (string, anser.Code) {
			one := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"test.Doors.%s","params":[""]}`, method)
			resp, code := w.post(ctx, "/jsonrpc", "application/json", "", fmt.Sprintf(around, one))
			if resp == nil {
				return "", code
			}
			return rpcAnswered(bytes.Trim(bytes.TrimSpace(all(resp)), "[]"))
		}}
	}
}

// rpcAnswered returns what an answer of JSON-RPC says. A text in the result of a struct counts too.
func rpcAnswered(b []byte) (string, anser.Code) {
	var a struct {
		Result any
		Error  *struct {
			Code    int
			Message string
			Data    struct{ Code string }
		}
	}
	if json.Unmarshal(b, &a) != nil {
		return "", anser.Unknown
	}
	switch e := a.Error; {
	case e != nil && e.Code == -32601:
		return "", anser.Unimplemented
	case e != nil && e.Data.Code != "":
		return "", codeNamed(strings.ReplaceAll(e.Data.Code, " ", "_"))
	case e != nil:
		return "", codeInText(e.Message)
	}
	switch r := a.Result.(type) {
	case string:
		return r, anser.OK
	case map[string]any:
		text, _ := r["value"].(string)
		return text, anser.OK
	}
	return "", anser.Unknown
}

// codeInText returns the code of an error of which only the text arrives.
func codeInText(text string) anser.Code {
	if strings.Contains(text, "limit") {
		return anser.ResourceExhausted
	}
	for c := anser.Canceled; c <= anser.Unauthenticated; c++ {
		if strings.Contains(text, c.String()) {
			return c
		}
	}
	return anser.Unknown
}

// visitOld makes calls with a client of the standard library. A connection has one identity.
func visitOld(client func(net.Conn) *rpc.Client) func(*testing.T, *door) *visitor {
	return func(t *testing.T, d *door) *visitor {
		var c *rpc.Client
		login := func(ctx context.Context) anser.Code {
			if c != nil {
				return anser.OK
			}
			nc, err := d.open(ctx)
			if err != nil {
				return anser.Unavailable
			}
			c = client(nc)
			if d.token == "" {
				return anser.OK
			}
			var ok bool
			if err := c.Call("Anser.Login", d.token, &ok); err != nil {
				return codeInText(err.Error())
			}
			return anser.OK
		}
		call := func(ctx context.Context, method string) (string, anser.Code) {
			if code := login(ctx); code != anser.OK {
				return "", code
			}
			var out struct{ Value string }
			call := c.Go("test.Doors."+method, struct{}{}, &out, make(chan *rpc.Call, 1))
			select {
			case <-call.Done:
			case <-ctx.Done():
				return "", anser.DeadlineExceeded
			}
			switch {
			case call.Error == nil:
				return out.Value, anser.OK
			case errors.Is(call.Error, io.ErrUnexpectedEOF), errors.Is(call.Error, rpc.ErrShutdown):
				return "", anser.Unavailable
			}
			return "", codeInText(call.Error.Error())
		}
		return &visitor{call: call, end: func() {
			if c != nil {
				c.Close()
			}
		}}
	}
}

// visitTCPBatch sends a login and calls of JSON-RPC 2.0 in batches over one connection.
func visitTCPBatch(t *testing.T, d *door) *visitor {
	var nc net.Conn
	var in *json.Decoder
	ask := func(ctx context.Context, one string) (string, anser.Code) {
		if _, err := fmt.Fprintf(nc, "[%s]\n", one); err != nil {
			return "", anser.Unavailable
		}
		var raw json.RawMessage
		stop := context.AfterFunc(ctx, func() { nc.Close() })
		defer stop()
		if err := in.Decode(&raw); err != nil {
			return "", lost(ctx)
		}
		return rpcAnswered(bytes.Trim(raw, "[]"))
	}
	call := func(ctx context.Context, method string) (string, anser.Code) {
		if nc == nil {
			var err error
			if nc, err = d.open(ctx); err != nil {
				nc = nil
				return "", anser.Unavailable
			}
			in = json.NewDecoder(nc)
			if d.token != "" {
				if _, code := ask(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"Anser.Login","params":[%q]}`, d.token)); code != anser.OK && code != anser.Unknown {
					return "", code
				}
			}
		}
		return ask(ctx, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"test.Doors.%s","params":[{}]}`, method))
	}
	return &visitor{call: call, end: func() {
		if nc != nil {
			nc.Close()
		}
	}}
}
