package protocols_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"

	"github.com/anser-rpc/anser/compress"
)

// overHTTP makes a call with a POST.
func overHTTP(ctx context.Context, m *matrixServer, path string, body []byte, kind string, a asked) (*http.Response, []byte) {
	if a.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
		defer cancel()
	}
	if a.gzip {
		packed, err := compress.Gzip().Append(nil, body)
		if err != nil {
			return nil, nil
		}
		body = packed
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+m.address+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil
	}
	r.Header.Set("Content-Type", kind)
	for k, v := range a.metadata {
		r.Header.Set(k, v)
	}
	if a.timeout > 0 {
		r.Header.Set("Request-Timeout", fmt.Sprint(a.timeout.Seconds()))
	}
	if a.gzip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	if a.key != "" {
		r.Header.Set("Idempotency-Key", a.key)
	}
	if a.trace {
		r.Header.Set("Traceparent", "00-01000000000000000000000000000000-0200000000000000-01")
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return nil, nil
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return resp, data
}

// overWebSocket makes a stream in both directions.
func overWebSocket(ctx context.Context, m *matrixServer) string {
	ws, _, err := websocket.Dial(ctx, "ws://"+m.address+"/test.Matrix.Chat", nil)
	if err != nil {
		return err.Error()
	}
	defer ws.CloseNow()
	got := ""
	for range 2 { // the second message follows the answer to the first one
		if err := ws.Write(ctx, websocket.MessageText, []byte(`{"Text":"x"}`)); err != nil {
			return err.Error()
		}
		_, data, err := ws.Read(ctx)
		if err != nil {
			return err.Error()
		}
		var w Words
		_ = json.Unmarshal(data, &w)
		got += w.Text
	}
	_ = ws.Write(ctx, websocket.MessageText, nil)
	if _, _, err := ws.Read(ctx); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		return fmt.Sprint(err)
	}
	return got
}

func plainJSON() language {
	call := func(ctx context.Context, m *matrixServer, text string, a asked) told {
		body, _ := json.Marshal(Words{text})
		resp, data := overHTTP(ctx, m, "/test.Matrix.Say", body, "application/json", a)
		if resp == nil {
			return told{}
		}
		var out struct {
			Text, Code, Detail, Outcome string
			Details                     json.RawMessage
		}
		_ = json.Unmarshal(data, &out)
		return told{out.Text, resp.Header.Get("Trailer-Last"), strings.ReplaceAll(out.Code, "_", " "), out.Detail, out.Outcome, len(out.Details) > 0}
	}
	stream := func(ctx context.Context, m *matrixServer, client, server bool) string {
		if client && server {
			return overWebSocket(ctx, m)
		}
		path, kind, body := "/test.Matrix.Tell", "application/json", `{"Text":"x"}`
		if client {
			path, kind, body = "/test.Matrix.Hear", "application/x-ndjson", `{"Text":"x"}`+"\n"+`{"Text":"x"}`+"\n"
		}
		_, data := overHTTP(ctx, m, path, []byte(body), kind, asked{})
		got := ""
		for dec := json.NewDecoder(bytes.NewReader(data)); ; {
			var w Words
			if dec.Decode(&w) != nil {
				return got
			}
			got += w.Text
		}
	}
	return language{name: "JSON over HTTP", call: call, stream: stream}
}
