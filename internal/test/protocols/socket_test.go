package protocols_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/coder/websocket"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/test/protocols/librarypb"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
)

// patient is a library whose Watch goes on until it is cancelled.
type patient struct{ sample.Library }

func (*patient) Watch(ctx context.Context, _ *librarypb.ListBooksRequest, _ anser.Sender[librarypb.Book]) error {
	<-ctx.Done()
	return ctx.Err()
}

// Streams with paths of their own run over WebSocket on these, and the path and the query are in
// each message.
func TestSocketsOfAnnotations(t *testing.T) {
	address := serve(t, func(s *anser.Server) { librarypb.RegisterLibraryServer(s, new(sample.Library)) })
	for name, row := range map[string]struct {
		path   string
		send   []string
		status websocket.StatusCode
		want   string // the messages before the end
	}{
		"the address is the message":    {"/v1/shelves/7/books:watch?pageSize=2&authors=x&authors=y", nil, 1000, `{"name":"7a"}{"name":"7b"}`},
		"and its end may be sent":       {"/v1/shelves/7/books:watch", []string{""}, 1000, `{"name":"7a"}{"name":"7b"}`},
		"a field that is not there":     {"/v1/shelves/7/books:watch?paegSize=2", nil, 4003, ""},
		"the body of each message":      {"/v1/shelves/7/books:import", []string{`{"title":"a"}`, `{"title":"b"}`, ""}, 1000, `{"books":[{"name":"shelves/7","title":"a"},{"name":"shelves/7","title":"b"}]}`},
		"a member that is not there":    {"/v1/shelves/7/books:import", []string{`{"titel":"a"}`}, 4003, ""},
		"timeout is one of the message": {"/v1/shelves/7/books:import?timeout=1", []string{`{"title":"a"}`}, 4003, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t)
			ws, _, err := websocket.Dial(ctx, "ws://"+address+row.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer ws.CloseNow()
			for _, m := range row.send {
				_ = ws.Write(ctx, websocket.MessageText, []byte(m)) // the server may have closed it
			}
			got := ""
			for {
				_, data, err := ws.Read(ctx)
				if err != nil {
					if status := websocket.CloseStatus(err); status != row.status {
						t.Errorf("the end is %v, want %d", err, row.status)
					}
					break
				}
				var m map[string]any
				if err := json.Unmarshal(data, &m); err != nil {
					t.Errorf("%s: %v", data, err)
				}
				if m["error"] == nil {
					data, _ = json.Marshal(m)
					got += string(data)
				}
			}
			if got != row.want {
				t.Errorf("the messages are %s, want %s", got, row.want)
			}
		})
	}
	for path, status := range map[string]int{"/v1/shelves/1/books/2": 400, "/v1/nothing": 404} {
		ws, resp, err := websocket.Dial(context.Background(), "ws://"+address+path, nil)
		if err == nil || resp == nil || resp.StatusCode != status {
			t.Errorf("%s: %v, %v, %v", path, ws, resp, err)
		}
	}
}

// Where the address is the message, the client sends none.
func TestSocketsOfAddresses(t *testing.T) {
	address := serve(t, func(s *anser.Server) { librarypb.RegisterLibraryServer(s, new(patient)) })
	ctx := within(t)
	ws, _, err := websocket.Dial(ctx, "ws://"+address+"/v1/shelves/7/books:watch", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	for _, m := range []string{"", "{}"} {
		if err := ws.Write(ctx, websocket.MessageText, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	for err == nil { // the last message is the error
		_, _, err = ws.Read(ctx)
	}
	if status := websocket.CloseStatus(err); status != websocket.StatusPolicyViolation {
		t.Errorf("the end is %v", err)
	}
}
