package doctor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"slices"
	"strings"
	"time"
)

// protocol is a protocol that a port may speak, other than Anser's.
type protocol struct {
	name string
	// ask makes a call that no server has, or a harmless one, and returns "" if the server does not
	// speak the protocol, and otherwise what it said.
	ask func(ctx context.Context, p *probe) string
}

const spoken = "spoken"

var protocols = []protocol{
	{"gRPC", askGRPC},
	{"gRPC-Web", askGRPCWeb},
	{"Connect", askConnect},
	{"JSON over HTTP", askJSON},
	{"JSON-RPC over HTTP", askJSONRPC},
	{"JSON-RPC over TCP", askJSONLines},
	{"net/rpc", askNetRPC},
	{"rpcx", askRPCX},
}

// protocols examines which other protocols the port speaks, and the clock of the server.
func (p *probe) protocols(ctx context.Context) {
	if p.peer == "" || !p.endpoint.direct() {
		return
	}
	said := make([]string, len(protocols))
	var seen clock
	each(len(protocols)+1, func(i int) {
		if i == len(protocols) {
			seen = p.readClock(ctx)
			return
		}
		said[i] = protocols[i].ask(ctx, p)
	})
	var speaks, not []string
	if p.anser {
		speaks = append(speaks, "Anser")
	}
	for i, one := range protocols {
		switch said[i] {
		case "":
			not = append(not, one.name)
		case spoken:
			speaks = append(speaks, one.name)
		default:
			speaks = append(speaks, one.name+" ("+said[i]+")")
		}
	}
	switch {
	case len(speaks) == 0:
		p.add("protocols", Fail, "correct the address: no client of Anser, gRPC or HTTP can call it", "the port speaks none of Anser, %s", strings.Join(not, ", "))
	case len(not) == len(protocols):
		p.note("protocols", "the port speaks Anser only (not the protocols of docs/protocols.md)")
	case len(not) > 0:
		p.pass("protocols", "the port speaks %s; not %s", strings.Join(speaks, ", "), strings.Join(not, ", "))
	default:
		p.pass("protocols", "the port speaks %s", strings.Join(speaks, ", "))
	}
	if at := slices.IndexFunc(protocols, func(one protocol) bool { return one.name == "Connect" }); p.tls && said[0] == "" && said[at] != "" {
		p.add("protocols", Warn, "a proxy that ends TLS must offer h2 by ALPN, and speak HTTP/2 to the server",
			"the port speaks HTTP/1.1 over TLS and not HTTP/2, which clients of gRPC need")
	}
	seen.report(&p.findings, "the server")
}

const health = "/grpc.health.v1.Health/Check"

// web returns an HTTP client for the address, and what ends it.
func (p *probe) web(version func(*http.Protocols, bool)) (*http.Client, func()) {
	t := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, MaxResponseHeaderBytes: 16 << 10}
	version(t.Protocols, true)
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		nc, err := p.dialTo(ctx, p.peer)
		if err != nil {
			return nil, err
		}
		return newAsking(nc), nil
	}
	config := p.tlsConfig()
	config.NextProtos = nil // those of t.Protocols
	t.TLSClientConfig = config
	client := &http.Client{Transport: t, Timeout: p.config.Timeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return client, t.CloseIdleConnections
}

// page is the answer to a request.
type page struct {
	status   int
	header   http.Header
	trailer  http.Header
	body     []byte
	sent, at time.Time // when the request was sent and answered
}

func (g *page) kind() string {
	kind, _, _ := strings.Cut(g.header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// mostBody is how much of an answer is read.
const mostBody = 64 << 10

// fetch sends a request to the address.
func (p *probe) fetch(ctx context.Context, version func(*http.Protocols, bool), method, path, kind, body string, headers ...string) (*page, error) {
	client, end := p.web(version)
	defer end()
	ctx, cancel := p.config.within(ctx)
	defer cancel()
	scheme, host := "http://", "unix"
	if p.tls {
		scheme = "https://"
	}
	if p.network == "tcp" {
		host = p.peer
	}
	r, err := http.NewRequestWithContext(ctx, method, scheme+host+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	g := &page{sent: time.Now()}
	resp, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	g.at, g.status, g.header = time.Now(), resp.StatusCode, resp.Header
	g.body, err = io.ReadAll(io.LimitReader(resp.Body, mostBody))
	g.trailer = resp.Trailer
	return g, err
}

func http1(p *http.Protocols, on bool) { p.SetHTTP1(on) }

func http2(p *http.Protocols, on bool) { p.SetHTTP2(on); p.SetUnencryptedHTTP2(on) }

// noMessage is an empty message with the prefix of gRPC.
const noMessage = "\x00\x00\x00\x00\x00"

func askGRPC(ctx context.Context, p *probe) string {
	g, err := p.fetch(ctx, http2, http.MethodPost, health, "application/grpc", noMessage, "TE", "trailers")
	if err != nil || !strings.HasPrefix(g.kind(), "application/grpc") {
		return ""
	}
	status := g.trailer.Get("Grpc-Status")
	if status == "" {
		status = g.header.Get("Grpc-Status")
	}
	return grpcState(status, g.body)
}

// grpcState says what the answer of the health service means.
func grpcState(status string, body []byte) string {
	switch status {
	case "0":
		if len(body) >= len(noMessage)+2 && body[len(noMessage)] == 0x08 { // field 1
			if state := body[len(noMessage)+1]; state != 1 {
				return map[byte]string{0: "health unknown", 2: "NOT_SERVING", 3: "service unknown"}[state]
			}
			return "SERVING"
		}
	case "16", "7":
		return "authentication needed"
	}
	return spoken
}

func askGRPCWeb(ctx context.Context, p *probe) string {
	g, err := p.fetch(ctx, http1, http.MethodPost, health, "application/grpc-web+proto", noMessage)
	if err != nil || !strings.HasPrefix(g.kind(), "application/grpc-web") {
		return ""
	}
	return spoken
}

func askConnect(ctx context.Context, p *probe) string {
	g, err := p.fetch(ctx, http1, http.MethodPost, health, "application/proto", "", "Connect-Protocol-Version", "1")
	var failed struct{ Code string } // errors are in JSON
	switch {
	case err != nil:
		return ""
	case g.status == http.StatusOK && g.kind() == "application/proto":
		return spoken
	case g.kind() != "application/json" || json.Unmarshal(g.body, &failed) != nil || failed.Code == "":
		return ""
	case failed.Code == "unauthenticated" || failed.Code == "permission_denied":
		return "authentication needed"
	}
	return spoken
}

// askJSON sends a type of content that no method takes, so that none is called.
func askJSON(ctx context.Context, p *probe) string {
	if len(p.methods) > 0 {
		g, err := p.fetch(ctx, http1, http.MethodPost, "/"+p.methods[0].Name, "application/x-none", "")
		if err == nil && g.kind() == "application/problem+json" {
			return spoken
		}
		return ""
	}
	g, err := p.fetch(ctx, http1, http.MethodGet, "/openapi.json", "", "")
	var said struct{ OpenAPI string }
	if err == nil && (json.Unmarshal(g.body, &said) == nil && said.OpenAPI != "" || g.kind() == "application/problem+json") {
		return spoken
	}
	return ""
}

// noMethod is a method that no server has.
const noMethod = "AnserDoctor.None"

func askJSONRPC(ctx context.Context, p *probe) string {
	g, err := p.fetch(ctx, http1, http.MethodPost, "/jsonrpc", "application/json", `{"jsonrpc":"2.0","id":1,"method":"`+noMethod+`"}`)
	if err != nil {
		return ""
	}
	return jsonState(g.body)
}

// jsonState says whether the text is an answer of JSON-RPC 2.0.
func jsonState(text []byte) string {
	var said struct {
		JSONRPC string
		Error   *struct{ Code int }
	}
	if json.Unmarshal(text, &said) != nil || said.JSONRPC != "2.0" || said.Error == nil {
		return ""
	}
	return spoken
}

func askJSONLines(ctx context.Context, p *probe) string {
	nc, err := p.open(ctx)
	if err != nil {
		return ""
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, `{"jsonrpc":"2.0","id":1,"method":"`+noMethod+`"}`+"\n"); err != nil {
		return ""
	}
	line, _ := bufio.NewReader(io.LimitReader(nc, mostBody)).ReadBytes('\n')
	return jsonState(line)
}

func askNetRPC(ctx context.Context, p *probe) string {
	nc, err := p.open(ctx)
	if err != nil {
		return ""
	}
	// A decoder of gob would make room for what the server announces.
	c := rpc.NewClient(struct {
		io.Reader
		io.WriteCloser
	}{io.LimitReader(nc, mostBody), nc})
	defer c.Close()
	err = c.Call(noMethod, struct{}{}, new(struct{}))
	if _, answered := errors.AsType[rpc.ServerError](err); answered {
		return spoken
	}
	return ""
}

// heartbeat is a message of rpcx that the server sends back.
func heartbeat() []byte {
	b := []byte{0x08, 0x00, 0x40, 0x30}
	b = binary.BigEndian.AppendUint64(b, 1)  // sequence
	b = binary.BigEndian.AppendUint32(b, 16) // the rest: four lengths
	return append(b, make([]byte, 16)...)    // of path, method, metadata and payload
}

func askRPCX(ctx context.Context, p *probe) string {
	nc, err := p.open(ctx)
	if err != nil {
		return ""
	}
	defer nc.Close()
	if _, err := nc.Write(heartbeat()); err != nil {
		return ""
	}
	head := make([]byte, 12)
	if _, err := io.ReadFull(nc, head); err != nil || !bytes.HasPrefix(head, []byte{0x08, 0x00}) || head[2]&0x80 == 0 {
		return ""
	}
	return spoken
}
