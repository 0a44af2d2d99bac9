package protocols_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
)

// A message of a stream reaches its client while the handler waits before the next one, over every
// protocol: no reply waits in a buffer.
func TestMessagesAreNotHeldBack(t *testing.T) {
	next := make(chan struct{})
	s, address := serve(t)
	anser.ServerStreamMethod[args, reply]("Slow.Count").Handle(s, func(ctx context.Context, in *args, out anser.Sender[reply]) error {
		for i := range in.A {
			if err := out.Send(&reply{i}); err != nil {
				return err
			}
			select {
			case <-next: // the client has got it
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	message := func(text string) string { return "\x00\x00\x00\x00" + string(rune(len(text))) + text }
	for version, c := range clients(t) {
		for name, row := range map[string]struct {
			path, body, first, second string
			headers                   []string
		}{
			"NDJSON":                     {"/Slow.Count", `{"A":2}`, "{\"C\":0}\n", "{\"C\":1}\n", nil},
			"events":                     {"/Slow.Count", `{"A":2}`, "data: {\"C\":0}\n\n", "data: {\"C\":1}\n\n", []string{"Accept", "text/event-stream"}},
			"array":                      {"/Slow.Count", `{"A":2}`, `[{"C":0}`, `,{"C":1}`, []string{"Accept", "application/json"}},
			"NDJSON to one that unpacks": {"/Slow.Count", `{"A":2}`, "{\"C\":0}\n", "{\"C\":1}\n", []string{"Accept-Encoding", "gzip"}},
			"Connect":                    {"/Slow/Count", message(`{"A":2}`), message(`{"C":0}`), message(`{"C":1}`), []string{"Content-Type", "application/connect+json", "Connect-Protocol-Version", "1"}},
			"gRPC-Web":                   {"/Slow/Count", message(`{"A":2}`), message(`{"C":0}`), message(`{"C":1}`), []string{"Content-Type", "application/grpc-web+json"}},
			"gRPC-Web as text":           {"/Slow/Count", base64.StdEncoding.EncodeToString([]byte(message(`{"A":2}`))), base64.StdEncoding.EncodeToString([]byte(message(`{"C":0}`))), base64.StdEncoding.EncodeToString([]byte(message(`{"C":1}`))), []string{"Content-Type", "application/grpc-web-text+json"}},
			"gRPC":                       {"/Slow/Count", message(`{"A":2}`), message(`{"C":0}`), message(`{"C":1}`), []string{"Content-Type", "application/grpc+json", "Te", "trailers"}},
		} {
			if name == "gRPC" && version != "HTTP/2" {
				continue
			}
			t.Run(version+"/"+name, func(t *testing.T) {
				resp := send(t, c, "http://"+address+row.path, row.body, row.headers...)
				for _, want := range []string{row.first, row.second} {
					got := make([]byte, len(want))
					if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
						t.Fatalf("%d %q, %v, want %q", resp.StatusCode, got, err, want)
					}
					next <- struct{}{}
				}
				io.Copy(io.Discard, resp.Body)
			})
		}
	}
	for version, c := range socketClients(t) {
		t.Run(version+"/WebSocket", func(t *testing.T) {
			ws := mustOpenSocket(t, c, address, "/Slow.Count")
			ws.send(`{"A":2}`)
			for _, want := range []string{`{"C":0}`, `{"C":1}`} {
				ws.want(want)
				next <- struct{}{}
			}
			ws.ends(1000, "")
		})
	}
}

// Trailers of a stream follow its messages.
func TestTrailersOfStreams(t *testing.T) {
	s, address := serve(t)
	anser.ServerStreamMethod[args, reply]("Slow.Count").Handle(s, func(ctx context.Context, in *args, out anser.Sender[reply]) error {
		for i := range in.A {
			if err := out.Send(&reply{i}); err != nil {
				return err
			}
		}
		return anser.SetTrailer(ctx, "mood", "good")
	})
	for version, c := range clients(t) {
		for body, where := range map[string]string{`{"A":2}`: "trailer", `{"A":0}`: "header"} {
			resp := send(t, c, "http://"+address+"/Slow.Count", body)
			text(t, resp)
			if header, trailer := resp.Header.Get("Trailer-Mood"), resp.Trailer.Get("Mood"); (header == "good") != (where == "header") || (trailer == "good") != (where == "trailer") {
				t.Errorf("%s, %s: header %q, trailer %q", version, body, header, trailer)
			}
		}
	}
}

// Nothing that a page of another site can make a browser send without asking first calls a method:
// not over any of the protocols, and not with a body that is JSON under another name.
func TestBrowsersOfOtherSites(t *testing.T) {
	called := make(chan string, 1000)
	_, address := serve(t, anser.Intercept(func(next anser.Func) anser.Func {
		return func(ctx context.Context, inv *anser.Invocation) error {
			called <- inv.Method
			return next(ctx, inv)
		}
	}))
	bodies := map[string]string{
		"/Arith.Mul": `{"A":7,"B":8}`, "/Arith/Mul": `{"A":7,"B":8}`, "/jsonrpc": `{"jsonrpc":"2.0","method":"Arith.Mul","params":{"A":7,"B":8},"id":1}`,
	}
	pages := map[string][]string{
		"an old browser":        {"User-Agent", "Mozilla/5.0"},
		"another origin":        {"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"},
		"no origin":             {"Origin", "null", "Sec-Fetch-Site", "cross-site"},
		"a link":                {"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"},
		"another port":          {"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"},
		"a name for this place": {"Origin", "http://evil.example", "Host", "evil.example", "Sec-Fetch-Site", "same-origin"},
	}
	for version, c := range clients(t) {
		for page, headers := range pages {
			for path, body := range bodies {
				kinds := []string{"", "text/plain", "text/plain;charset=UTF-8", "text/plain; application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"}
				if page != "an old browser" { // which asks before it sends this
					kinds = append(kinds, "application/json", "application/json; charset=utf-8", "application/connect+json", "application/grpc-web+json", "application/grpc-web-text", "application/proto", "application/grpc", "application/grpc+json")
				}
				for _, kind := range kinds {
					for _, method := range []string{"POST", "GET", "HEAD"} {
						r, err := http.NewRequestWithContext(t.Context(), method, "http://"+address+path+"?encoding=json&message="+`%7B%7D`, nil)
						if err != nil {
							t.Fatal(err)
						}
						if method == "POST" {
							r.Body, r.ContentLength = io.NopCloser(bytes.NewReader([]byte(body))), int64(len(body))
						}
						if kind != "" {
							r.Header.Set("Content-Type", kind)
						}
						for i := 0; i < len(headers); i += 2 {
							if headers[i] == "Host" {
								r.Host = headers[i+1]
								continue
							}
							r.Header.Set(headers[i], headers[i+1])
						}
						resp, err := c.Do(r)
						if err != nil {
							t.Fatal(err)
						}
						got := text(t, resp)
						resp.Body.Close()
						select {
						case name := <-called:
							t.Errorf("%s, %s, %s %s as %q: calls %s, answered with %d %s", version, page, method, path, kind, name, resp.StatusCode, got)
						default:
						}
						if strings.HasPrefix(got, "{") && strings.Contains(got, "56") {
							t.Errorf("%s, %s, %s %s as %q: %s", version, page, method, path, kind, got)
						}
					}
				}
			}
		}
	}
	for version, c := range socketClients(t) {
		for page, headers := range pages {
			if page == "an old browser" || page == "a link" { // sockets of pages have an origin
				continue
			}
			if _, resp, err := openSocket(t, c, address, "/Arith.Mul", headers...); err == nil || resp == nil || resp.StatusCode != 403 {
				t.Errorf("%s, %s: a socket: %v, %v", version, page, resp, err)
			}
		}
	}
}
