package protocols_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"net/rpc/jsonrpc"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/auth"
)

// door is the way of a client to a server.
type door struct {
	address string
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	token   string      // or ""
	tls     *tls.Config // nil: without TLS
}

// open connects, for clients that do not speak TLS themselves.
func (d *door) open(ctx context.Context) (net.Conn, error) {
	nc, err := d.dial(ctx, "tcp", d.address)
	if err != nil || d.tls == nil {
		return nc, err
	}
	tc := tls.Client(nc, d.tls)
	return tc, tc.HandshakeContext(ctx)
}

// visitor is a client of one protocol. Its methods return the subject that the handler has seen.
type visitor struct {
	// call makes a unary call, and is nil for a protocol that has streams only.
	call func(ctx context.Context, method string) (subject string, code anser.Code)
	// watch opens a stream of the server and reads it to its end. seen is called with the first
	// message. It is nil for a protocol without streams.
	watch func(ctx context.Context, method string, seen func(subject string)) anser.Code
	end   func()
}

// visitors are the clients of all protocols.
var visitors = map[string]func(*testing.T, *door) *visitor{
	"Anser":                      visitAnser,
	"gRPC":                       visitGRPC,
	"gRPC-Web":                   overBoth(1, visitWeb),
	"gRPC-Web, HTTP/2":           overBoth(2, visitWeb),
	"Connect":                    overBoth(1, visitConnect),
	"Connect, HTTP/2":            overBoth(2, visitConnect),
	"JSON and lines":             overBoth(1, visitJSON("application/x-ndjson")),
	"JSON and events":            overBoth(1, visitJSON("text/event-stream")),
	"JSON and events, HTTP/2":    overBoth(2, visitJSON("text/event-stream")),
	"WebSocket":                  overBoth(1, visitSocket(false)),
	"WebSocket, token of a page": overBoth(1, visitSocket(true)),
	"JSON-RPC over HTTP":         overBoth(1, visitRPC("%s")),
	"JSON-RPC batch over HTTP":   overBoth(2, visitRPC("[%s]")),
	"JSON-RPC 1.0 over TCP":      visitOld(func(nc net.Conn) *rpc.Client { return jsonrpc.NewClient(nc) }),
	"JSON-RPC batch over TCP":    visitTCPBatch,
	"net/rpc":                    visitOld(func(nc net.Conn) *rpc.Client { return rpc.NewClient(nc) }),
}

func visitAnser(t *testing.T, d *door) *visitor {
	opts := []anser.DialOption{silent, anser.Dialer(d.dial), anser.NoSnapshot(), anser.Attempts(1), anser.Conns(1)}
	if d.token != "" {
		opts = append(opts, auth.Token(d.token))
	}
	if d.tls != nil {
		opts = append(opts, anser.TLS(d.tls))
	}
	c, err := anser.Dial(d.address, opts...)
	if err != nil {
		t.Fatal(err)
	}
	call := func(ctx context.Context, method string) (string, anser.Code) {
		out, err := anser.Call[wrapperspb.StringValue](ctx, c, "test.Doors."+method, new(wrapperspb.StringValue))
		return out.GetValue(), anser.CodeOf(err)
	}
	watch := func(ctx context.Context, method string, seen func(string)) anser.Code {
		st, err := anser.Open[wrapperspb.StringValue, wrapperspb.StringValue](ctx, c, "test.Doors."+method)
		if err == nil {
			err = st.Send(new(wrapperspb.StringValue))
		}
		if err != nil {
			return anser.CodeOf(err)
		}
		for out, err := range st.All() {
			if err != nil {
				return anser.CodeOf(err)
			}
			seen(out.Value)
		}
		return anser.OK
	}
	return &visitor{call, watch, func() { c.Close() }}
}

func visitGRPC(t *testing.T, d *door) *visitor {
	creds := insecure.NewCredentials()
	if d.tls != nil {
		creds = credentials.NewTLS(d.tls)
	}
	conn, err := grpc.NewClient("passthrough:///"+d.address, grpc.WithTransportCredentials(creds), grpc.WithIdleTimeout(0),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return d.dial(ctx, "tcp", address) }))
	if err != nil {
		t.Fatal(err)
	}
	with := func(ctx context.Context) context.Context {
		if d.token == "" {
			return ctx
		}
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+d.token)
	}
	call := func(ctx context.Context, method string) (string, anser.Code) {
		out := new(wrapperspb.StringValue)
		err := conn.Invoke(with(ctx), "/test.Doors/"+method, new(wrapperspb.StringValue), out)
		return out.Value, anser.Code(status.Code(err))
	}
	watch := func(ctx context.Context, method string, seen func(string)) anser.Code {
		st, err := conn.NewStream(with(ctx), &grpc.StreamDesc{ServerStreams: true}, "/test.Doors/"+method)
		if err == nil {
			err = st.SendMsg(new(wrapperspb.StringValue))
		}
		for err == nil {
			in := new(wrapperspb.StringValue)
			if err = st.RecvMsg(in); err == nil {
				seen(in.Value)
			}
		}
		if err == io.EOF {
			return anser.OK
		}
		return anser.Code(status.Code(err))
	}
	return &visitor{call, watch, func() { conn.Close() }}
}

// web is an HTTP client.
type web struct {
	*door
	client http.Client
}

// overBoth makes a client of one version of HTTP.
func overBoth(version int, visit func(*web) *visitor) func(*testing.T, *door) *visitor {
	return func(t *testing.T, d *door) *visitor {
		transport := &http.Transport{DialContext: d.dial, TLSClientConfig: d.tls, Protocols: new(http.Protocols)}
		transport.Protocols.SetHTTP1(version == 1)
		transport.Protocols.SetHTTP2(version == 2)
		transport.Protocols.SetUnencryptedHTTP2(version == 2)
		v := visit(&web{door: d, client: http.Client{Transport: transport}})
		v.end = transport.CloseIdleConnections
		return v
	}
}

func (w *web) url(path string) string {
	if w.tls != nil {
		return "https://" + w.address + path
	}
	return "http://" + w.address + path
}

// post sends a request. Without an answer the code is not OK.
func (w *web) post(ctx context.Context, path, kind, accept, body string) (*http.Response, anser.Code) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url(path), strings.NewReader(body))
	if err != nil {
		return nil, anser.Internal
	}
	r.Header.Set("Content-Type", kind)
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return nil, lost(ctx)
	}
	return resp, anser.OK
}

// all reads the rest of an answer.
func all(resp *http.Response) []byte {
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return b
}

// lost is the code of a call whose connection has ended.
func lost(ctx context.Context) anser.Code {
	if ctx.Err() != nil {
		return anser.DeadlineExceeded
	}
	return anser.Unavailable
}

// codeNamed returns a code by its name in JSON.
func codeNamed(name string) anser.Code {
	for c := anser.Canceled; c <= anser.Unauthenticated; c++ {
		if strings.ReplaceAll(c.String(), " ", "_") == name {
			return c
		}
	}
	return anser.Unknown
}

// answer is JSON with a text, or with an error.
func answer(b []byte) (string, anser.Code) {
	var text string
	if json.Unmarshal(b, &text) == nil {
		return text, anser.OK
	}
	var e struct {
		Code  string
		Error struct{ Code string }
	}
	if json.Unmarshal(b, &e) != nil || e.Code == "" && e.Error.Code == "" {
		return "", anser.Unknown
	}
	return "", codeNamed(e.Code + e.Error.Code)
}

func visitConnect(w *web) *visitor {
	call := func(ctx context.Context, method string) (string, anser.Code) {
		resp, code := w.post(ctx, "/test.Doors/"+method, "application/json", "", `""`)
		if resp == nil {
			return "", code
		}
		b := all(resp)
		if resp.StatusCode == http.StatusNotFound {
			return "", anser.Unimplemented
		}
		return answer(b)
	}
	return &visitor{call: call, watch: func(ctx context.Context, method string, seen func(string)) anser.Code {
		return w.envelopes(ctx, method, "application/connect+json", seen, func(flags byte, part []byte) (anser.Code, bool) {
			if flags&2 == 0 {
				return 0, false
			}
			if bytes.Equal(part, []byte("{}")) {
				return anser.OK, true
			}
			_, code := answer(part)
			return code, true
		})
	}}
}

func visitWeb(w *web) *visitor {
	trailers := func(flags byte, part []byte) (anser.Code, bool) {
		code := uint32(anser.Unknown)
		for line := range strings.SplitSeq(string(part), "\r\n") {
			fmt.Sscanf(line, "grpc-status: %d", &code)
		}
		return anser.Code(code), flags&0x80 != 0
	}
	watch := func(ctx context.Context, method string, seen func(string)) anser.Code {
		return w.envelopes(ctx, method, "application/grpc-web+json", seen, trailers)
	}
	call := func(ctx context.Context, method string) (subject string, code anser.Code) {
		code = watch(ctx, method, func(s string) { subject = s })
		return subject, code
	}
	return &visitor{call: call, watch: watch}
}

// envelopes makes a call whose messages have a flag and a length. last returns the code in the last
// one.
func (w *web) envelopes(ctx context.Context, method, kind string, seen func(string), last func(byte, []byte) (anser.Code, bool)) anser.Code {
	resp, code := w.post(ctx, "/test.Doors/"+method, kind, "", "\x00\x00\x00\x00\x02"+`""`)
	if resp == nil {
		return code
	}
	defer all(resp) // so that the connection can be used again
	if text := resp.Header.Get("Grpc-Status"); text != "" {
		fmt.Sscan(text, &code)
		return code
	}
	if resp.StatusCode == http.StatusNotFound {
		return anser.Unimplemented
	}
	for {
		var head [5]byte
		if _, err := io.ReadFull(resp.Body, head[:]); err != nil {
			return lost(ctx)
		}
		part := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(resp.Body, part); err != nil {
			return lost(ctx)
		}
		if code, ok := last(head[0], part); ok {
			return code
		}
		text, _ := answer(part)
		seen(text)
	}
}

func visitJSON(accept string) func(*web) *visitor {
	return func(w *web) *visitor {
		call := func(ctx context.Context, method string) (string, anser.Code) {
			resp, code := w.post(ctx, "/test.Doors."+method, "application/json", "", `""`)
			if resp == nil {
				return "", code
			}
			b := all(resp)
			if resp.StatusCode == http.StatusNotFound {
				return "", anser.Unimplemented
			}
			return answer(b)
		}
		watch := func(ctx context.Context, method string, seen func(string)) anser.Code {
			resp, code := w.post(ctx, "/test.Doors."+method, "application/json", accept, `""`)
			if resp == nil {
				return code
			}
			defer all(resp) // so that the connection can be used again
			if resp.StatusCode == http.StatusNotFound {
				return anser.Unimplemented
			}
			if resp.StatusCode != http.StatusOK {
				_, code := answer(all(resp))
				return code
			}
			kind, lines := "", bufio.NewScanner(resp.Body)
			for lines.Scan() {
				line := lines.Text()
				if name, ok := strings.CutPrefix(line, "event: "); ok {
					kind = name
				}
				if line = strings.TrimPrefix(line, "data: "); line == "" || line[0] != '"' && line[0] != '{' {
					continue
				}
				text, code := answer([]byte(line))
				switch {
				case kind == "end":
					return anser.OK
				case code != anser.OK:
					return code
				}
				seen(text)
			}
			if accept == "application/x-ndjson" && lines.Err() == nil {
				return anser.OK
			}
			return lost(ctx)
		}
		return &visitor{call: call, watch: watch}
	}
}

func visitSocket(page bool) func(*web) *visitor {
	return func(w *web) *visitor {
		return &visitor{watch: func(ctx context.Context, method string, seen func(string)) anser.Code {
			o := &websocket.DialOptions{HTTPClient: &w.client, HTTPHeader: make(http.Header)}
			switch {
			case w.token != "" && page:
				o.Subprotocols = []string{"anser.json", "anser.bearer." + base64.RawURLEncoding.EncodeToString([]byte(w.token))}
			case w.token != "":
				o.HTTPHeader.Set("Authorization", "Bearer "+w.token)
			}
			ws, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(w.url("/test.Doors."+method), "http"), o)
			if err != nil {
				if resp == nil || resp.Body == nil {
					return lost(ctx)
				}
				if resp.StatusCode == http.StatusNotFound {
					return anser.Unimplemented
				}
				_, code := answer(all(resp))
				return code
			}
			defer ws.CloseNow()
			_ = ws.Write(ctx, websocket.MessageText, []byte(`""`))
			for {
				_, b, err := ws.Read(ctx)
				switch got := websocket.CloseStatus(err); {
				case err == nil:
					if text, code := answer(b); code == anser.OK {
						seen(text)
					}
				case got == websocket.StatusNormalClosure:
					return anser.OK
				case got >= 4000:
					return anser.Code(got - 4000)
				default:
					return lost(ctx)
				}
			}
		}}
	}
}
