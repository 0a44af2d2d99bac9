package gateway_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/gateway"
	"github.com/anser-rpc/anser/registry"
)

// sendRaw sends a request of HTTP as it is, and returns the status and the body of the answer.
func sendRaw(t *testing.T, addr, request string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp.Status
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status + " " + string(b)
}

// A server of HTTP gets nothing that it could take for another request than the routes do,
// and no name of a caller that the caller has chosen.
func TestProxyHostile(t *testing.T) {
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if protocol := r.Header.Get("Upgrade"); protocol != "" {
			c, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " + protocol + "\r\n\r\n")
			rw.Flush()
			return
		}
		fmt.Fprintf(w, "%s %s caller=%v,%v", r.Method, r.RequestURI, r.Header["Gateway-Caller"], r.Header["Gateway_caller"])
	}))
	t.Cleanup(back.Close)
	g, addr := start(t, registry.NewMemory(), parse(t, `
routes:
- {path: /public, strip: true, to: [{url: "`+back.URL+`/base"}]}
- {path: /, to: [{url: "`+back.URL+`"}]}
`))
	for _, c := range []struct{ line, headers, want string }{
		{"GET /public/../../secret", "", `400 Bad Request {"title":"invalid argument"`},
		{"GET /public/%2e%2e/secret", "", "400 Bad Request"},
		{"GET /x/..%2fadmin", "", "400 Bad Request"},
		{"GET /x/./y", "", "400 Bad Request"},
		{"CONNECT 127.0.0.1:80", "", "501 Not Implemented"},
		{"GET /public/a%2Fb%20c?x=1;y", "", "200 OK GET /base/a%2Fb%20c?x=1;y caller=[],[]"},
		{"GET /pub%6Cic%2Fa%2Fb", "", "200 OK GET /base/%2Fa%2Fb caller=[],[]"},
		{"GET /public/..a/b..", "", "200 OK GET /base/..a/b.. caller=[],[]"},
		{"GET /x%2Fy", "", "200 OK GET /x%2Fy caller=[],[]"},
		{"GET /x", "Gateway-Caller: me\r\nGateway_Caller: me\r\nConnection: Gateway-Caller\r\n", "200 OK GET /x caller=[],[]"},
		{"GET /x", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n", "200 OK GET /x caller=[],[]"},
		{"GET /x", "Connection: Upgrade\r\nUpgrade: websocket, h2c\r\n", "200 OK GET /x caller=[],[]"},
		{"GET /x", "Connection: Upgrade\r\nUpgrade: WebSocket\r\n", "101 Switching Protocols"},
	} {
		if got := sendRaw(t, addr, c.line+" HTTP/1.1\r\nHost: 127.0.0.1\r\n"+c.headers+"\r\n"); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %q: %s\nwant %s", c.line, c.headers, got, c.want)
		}
	}
	if s := g.Stats(); s.Refused != 5 {
		t.Errorf("%d refused", s.Refused)
	}
}

// A service cannot take the name of another one's method by a name with a slash.
func TestNameOfAnotherService(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	serve(t, r, registry.Instance{Service: "other"}, func(s *anser.Server) {
		anser.Handle(s, "arith/Arith.Mul", func(context.Context, *args) (*reply, error) { return &reply{666}, nil })
	})
	g, addr := start(t, r, parse(t, `routes: [{headers: {x-to: arith}, to: [{service: arith}]}]`))
	await(t, g, "arith", 1)
	await(t, g, "other", 1)
	c := dialAnser(t, addr)
	for _, to := range []string{"", "arith"} {
		if status, body := post(t, "http://"+addr+"/arith/Arith.Mul", `{"A":7,"B":8}`, "X-To", to); status != 200 || body != `{"C":56}` {
			t.Errorf("%d %s", status, body)
		}
		ctx := anser.WithMetadata(t.Context(), anser.Metadata{"x-to": to})
		if out, err := anser.Call[reply](ctx, c, "arith/Arith.Mul", &args{7, 8}); err != nil || out.C != 56 {
			t.Errorf("%v, %v", out, err)
		}
		if out, err := anser.Call[reply](ctx, c, "other/arith/Arith.Mul", &args{7, 8}); err != nil || out.C != 666 {
			t.Errorf("%v, %v", out, err)
		}
	}
}

// A caller cannot pass for one at another address.
func TestForwardedFor(t *testing.T) {
	r := registry.NewMemory()
	type where struct{ From string }
	serve(t, r, registry.Instance{Service: "where"}, func(s *anser.Server) {
		anser.Handle(s, "Where.From", func(ctx context.Context, _ *anser.None) (*where, error) {
			return &where{anser.MetadataFrom(ctx)["x-forwarded-for"]}, nil
		})
	})
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "where", 1)
	ctx := anser.WithMetadata(t.Context(), anser.Metadata{"x-forwarded-for": "10.0.0.1"})
	if out, err := anser.Call[where](ctx, dialAnser(t, addr), "Where.From", new(anser.None)); err != nil || out.From != "10.0.0.1, 127.0.0.1" {
		t.Errorf("%v, %v", out, err)
	}
	if status, body := post(t, "http://"+addr+"/Where.From", `{}`, "X-Forwarded-For", "10.0.0.1"); status != 200 || body != `{"From":"10.0.0.1, 127.0.0.1"}` {
		t.Errorf("%d %s", status, body)
	}
}

// callRPCX sends a payload as a client of rpcx does, and returns the answer after its head.
func callRPCX(t *testing.T, addr, service, method string, serialization byte, payload string) string {
	t.Helper()
	var body []byte
	for _, part := range []string{service, method, "", payload} {
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(part))), part...)
	}
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	request := []byte{8, 0, 0, serialization << 4, 0, 0, 0, 0, 0, 0, 0, 1}
	c.Write(append(binary.BigEndian.AppendUint32(request, uint32(len(body))), body...))
	head := make([]byte, 16)
	if _, err := io.ReadFull(c, head); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(head[12:]))
	if _, err := io.ReadFull(c, answer); err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// A client of rpcx is told which payloads the gateway forwards. A few bytes do not make the
// gateway allocate much, and are not forwarded.
func TestRPCXPayloads(t *testing.T) {
	r := registry.NewMemory()
	serve(t, r, registry.Instance{Service: "arith"}, arith)
	serve(t, r, registry.Instance{Service: "echo"}, echo(t))
	serve(t, r, registry.Instance{Service: "json"}, func(s *anser.Server) {
		anser.Handle(s, "Json.Mul", func(_ context.Context, in *args) (*reply, error) { return &reply{in.A * in.B}, nil }, anser.OnlyCodecs(new(codec.JSON)))
	})
	g, addr := start(t, r, new(gateway.Config))
	await(t, g, "arith", 1)
	await(t, g, "echo", 4)
	await(t, g, "json", 1)
	const raw, inJSON, messagePack, thrift = 0, 1, 3, 4
	for _, c := range []struct {
		service, method string
		serialization   byte
		payload, want   string
	}{
		{"Arith", "Mul", raw, "x", "raw bytes is not served for method \"Arith.Mul\", which a gateway forwards: use MessagePack, JSON or protobuf"},
		{"Arith", "Mul", inJSON, `{"A":7,"B":8}`, `{"C":56}`},
		{"Arith", "Mul", messagePack, "\x82\xa1A\x07\xa1B\x08", "\x81\xa1C"},
		{"Arith", "Mul", messagePack, `{"A":7,"B":8}`, "decode the message with msgpack: bytes follow the MessagePack value"},
		{"Arith", "Mul", messagePack, "\xdd\xff\xff\xff\xff", "decode the message with msgpack: MessagePack ends before it is complete"},
		{"Arith", "Mul", messagePack, "\x81\xa1A\xdf\xff\xff\xff\xff", "MessagePack ends before it is complete"},
		{"Arith", "Mul", messagePack, "\xc6\xff\xff\xff\xff", "MessagePack ends before it is complete"},
		{"Arith", "Mul", messagePack, strings.Repeat("\x91", 100_000) + "\xc0", "nested deeper than 64 levels"},
		{"Arith", "Mul", messagePack, "", "MessagePack ends before it is complete"},
		{"Arith", "Mul", thrift, "", "Thrift is not served"},
		{"Json", "Mul", messagePack, "\x82\xa1A\x07\xa1B\x08", "does not take the codec msgpack: choose one of 3 json"},
		{"demo.v1.Echo", "Say", messagePack, "\x80", "MessagePack is not served for method \"demo.v1.Echo.Say\", which a gateway forwards: use protobuf or JSON"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		got := callRPCX(t, addr, c.service, c.method, c.serialization, c.payload)
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 4<<20 {
			t.Errorf("%s %.20q: %d bytes were allocated", c.method, c.payload, after.TotalAlloc-before.TotalAlloc)
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%s %d %.20q: %q, want %s", c.method, c.serialization, c.payload, got, c.want)
		}
	}
	if s := g.Stats(); s.Calls != 3 || s.Failed != 1 {
		t.Errorf("%d calls were forwarded", s.Calls)
	}
}
