package protocols_test

import (
	"context"
	"flag"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/protocols"
)

var update = flag.Bool("update", false, "write the table of docs/protocols.md")

// asked is what a call carries.
type asked struct {
	metadata map[string]string
	timeout  time.Duration
	trace    bool
	gzip     bool
	key      string
}

// told is what the caller got.
type told struct {
	text, trailer, code, message, outcome string
	details                               bool
}

// language is one protocol, as a client speaks it.
type language struct {
	name string
	call func(ctx context.Context, m *matrixServer, text string, a asked) told
	// stream makes a stream on which the client and the server send two messages, or one, and returns
	// what has arrived; nil: the protocol has no streams.
	stream func(ctx context.Context, m *matrixServer, client, server bool) string
}

// row is one property of calls.
type row struct {
	name string
	has  func(t *testing.T, l *language, m *matrixServer) bool
}

func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func says(text string, a asked, want func(told) bool) func(*testing.T, *language, *matrixServer) bool {
	return func(t *testing.T, l *language, m *matrixServer) bool {
		return want(l.call(within(t, 20*time.Second), m, text, a))
	}
}

func streams(client, server bool, want string) func(*testing.T, *language, *matrixServer) bool {
	return func(t *testing.T, l *language, m *matrixServer) bool {
		if l.stream == nil {
			return false
		}
		got := l.stream(within(t, 20*time.Second), m, client, server)
		if got != want {
			t.Logf("%s: %q", l.name, got)
		}
		return got == want
	}
}

var rows = []row{
	{"unary calls", says("x", asked{}, func(a told) bool { return a.text == "X" })},
	{"streams of the server", streams(false, true, "xx")},
	{"streams of the client", streams(true, false, "xx")},
	{"streams in both directions", streams(true, true, "xx")},
	{"deadline reaches the handler", says("deadline", asked{timeout: 10 * time.Second}, func(a told) bool { return a.text == "true" })},
	{"a caller that gives up cancels the handler", cancels},
	{"metadata", says("metadata", asked{metadata: map[string]string{"tenant": "tea"}}, func(a told) bool { return a.text == "tea" })},
	{"trailers", says("trailer", asked{}, func(a told) bool { return a.trailer == "trailer" })},
	{"message of an error", says("error", asked{}, func(a told) bool { return strings.Contains(a.message, "not now") })},
	{"code of an error", says("error", asked{}, func(a told) bool { return a.code == "unavailable" })},
	{"details of an error", says("error", asked{}, func(a told) bool { return a.details })},
	{"outcome of an error", says("error", asked{}, func(a told) bool { return a.outcome == "executed" })},
	{"gzip", func(t *testing.T, l *language, m *matrixServer) bool {
		before := m.proxy.up.Load()
		a := l.call(within(t, 20*time.Second), m, strings.Repeat("x", 100_000), asked{gzip: true})
		return len(a.text) == 100_000 && m.proxy.up.Load()-before < 10_000
	}},
	{"idempotency key", func(t *testing.T, l *language, m *matrixServer) bool {
		first := l.call(within(t, 20*time.Second), m, "count", asked{key: strings.ReplaceAll(l.name, " ", "-")}).text
		return first != "" && l.call(within(t, 20*time.Second), m, "count", asked{key: strings.ReplaceAll(l.name, " ", "-")}).text == first
	}},
	{"trace", says("trace", asked{trace: true}, func(a told) bool { return strings.HasPrefix(a.text, "0100") })},
	{"error for a message over the limit", func(t *testing.T, l *language, m *matrixServer) bool {
		a := l.call(within(t, 20*time.Second), m, strings.Repeat("x", 2<<20), asked{})
		return strings.Contains(a.message, "limit") || strings.Contains(a.message, "larger") || strings.Contains(a.message, "exceeds")
	}},
	{"calls in flight end when the server drains", drains},
}

func cancels(t *testing.T, l *language, m *matrixServer) bool {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var call sync.WaitGroup
	call.Go(func() { l.call(ctx, m, "wait", asked{}) })
	<-m.began
	cancel()
	call.Wait()
	select {
	case <-m.ended:
		return true
	case <-time.After(2 * time.Second):
		return false
	}
}

// drains has a server of its own.
func drains(t *testing.T, l *language, _ *matrixServer) bool {
	m, s := startMatrix(t)
	m.address = m.direct // the proxy does not close one direction alone
	var answer told
	var call sync.WaitGroup
	call.Go(func() { answer = l.call(within(t, 20*time.Second), m, "linger", asked{}) })
	<-m.began
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(within(t, 20*time.Second)) }()
	for {
		nc, err := net.Dial("tcp", m.direct)
		if err != nil {
			break // it drains
		}
		nc.Close()
	}
	close(m.leave)
	call.Wait()
	err := <-down
	if err != nil || answer.text != "linger" {
		t.Logf("%s: %+v, %v", l.name, answer, err)
	}
	return err == nil && answer.text == "linger"
}

// What the protocols carry is found by calls, and docs/protocols.md says it. With -update the test
// writes it there.
func TestMatrix(t *testing.T) {
	m, _ := startMatrix(t)
	languages := []language{
		throughAnser("Anser", "", nil),
		throughAnser("gRPC", "grpc://", func() anser.DialOption { return protocols.GRPC() }),
		throughAnser("gRPC-Web", "http://", func() anser.DialOption { return protocols.GRPCWeb(protocols.UnencryptedHTTP2()) }),
		throughAnser("Connect", "http://", func() anser.DialOption { return protocols.Connect(protocols.UnencryptedHTTP2()) }),
		plainJSON(), jsonRPC(), rpcClient("JSON-RPC over TCP", jsonrpc.Dial), rpcClient("net/rpc", rpc.Dial),
	}
	var b strings.Builder
	b.WriteString("|")
	for _, l := range languages {
		b.WriteString(" | " + l.name)
	}
	b.WriteString(" |\n|---" + strings.Repeat("|---", len(languages)) + "|\n")
	for _, r := range rows {
		b.WriteString("| " + r.name)
		for i := range languages {
			if r.has(t, &languages[i], m) {
				b.WriteString(" | yes")
			} else {
				b.WriteString(" | no")
			}
		}
		b.WriteString(" |\n")
	}
	const name, begin, end = "../../../docs/protocols.md", "<!-- matrix: begin -->\n", "<!-- matrix: end -->\n"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	old, tail, ends := strings.Cut(rest, end)
	if !ok || !ends {
		t.Fatalf("%s has no place for the matrix", name)
	}
	if old == b.String() {
		return
	}
	if *update {
		if err := os.WriteFile(name, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s has\n%s\nand it is\n%s\nRun go test -run TestMatrix -update", name, old, &b)
}
