package protocols_test

import (
	"context"
	"flag"
	"net"
	"os"
	"slices"
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
	// stream makes a stream on which the client and the server send two messages, or one, and
	// returns what has arrived; nil: lacks says why there are no streams.
	stream func(ctx context.Context, m *matrixServer, client, server bool) string
	lacks  []lack
}

// lack is what a protocol has no place for, so that no call can show it.
type lack struct {
	rows []string
	why  string // a sentence, without its stop
}

// without reports whether the protocol has no place for the property of a row.
func (l *language) without(row string) bool {
	return slices.ContainsFunc(l.lacks, func(k lack) bool { return slices.Contains(k.rows, row) })
}

// row is one property of calls.
type row struct {
	name string
	has  func(t *testing.T, l *language, m *matrixServer) bool
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func says(text string, a asked, want func(told) bool) func(*testing.T, *language, *matrixServer) bool {
	return func(t *testing.T, l *language, m *matrixServer) bool {
		return want(l.call(within(t), m, text, a))
	}
}

func streams(client, server bool, want string) func(*testing.T, *language, *matrixServer) bool {
	return func(t *testing.T, l *language, m *matrixServer) bool {
		got := l.stream(within(t), m, client, server)
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
	{"deadline reaches the handler", says("deadline", asked{timeout: time.Minute}, func(a told) bool { return a.text == "true" })},
	{"a caller that gives up cancels the handler", cancels},
	{"metadata", says("metadata", asked{metadata: map[string]string{"tenant": "tea"}}, func(a told) bool { return a.text == "tea" })},
	{"trailers", says("trailer", asked{}, func(a told) bool { return a.trailer == "trailer" })},
	{"message of an error", says("error", asked{}, func(a told) bool { return strings.Contains(a.message, "not now") })},
	{"code of an error", says("error", asked{}, func(a told) bool { return a.code == "unavailable" })},
	{"details of an error", says("error", asked{}, func(a told) bool { return a.details })},
	{"outcome of an error", says("error", asked{}, func(a told) bool { return a.outcome == "executed" })},
	{"gzip", func(t *testing.T, l *language, m *matrixServer) bool {
		before := m.proxy.up.Load()
		a := l.call(within(t), m, strings.Repeat("x", 100_000), asked{gzip: true})
		return len(a.text) == 100_000 && m.proxy.up.Load()-before < 10_000
	}},
	{"idempotency key", func(t *testing.T, l *language, m *matrixServer) bool {
		first := l.call(within(t), m, "count", asked{key: strings.ReplaceAll(l.name, " ", "-")}).text
		return first != "" && l.call(within(t), m, "count", asked{key: strings.ReplaceAll(l.name, " ", "-")}).text == first
	}},
	{"trace", says("trace", asked{trace: true}, func(a told) bool { return strings.HasPrefix(a.text, "0100") })},
	{"error for a message over the limit", func(t *testing.T, l *language, m *matrixServer) bool {
		a := l.call(within(t), m, strings.Repeat("x", 2<<20), asked{})
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
	case <-time.After(time.Minute):
		return false
	}
}

// drains has a server of its own.
func drains(t *testing.T, l *language, _ *matrixServer) bool {
	m, s := startMatrix(t)
	m.address = m.direct // the proxy does not close one direction alone
	var answer told
	var call sync.WaitGroup
	call.Go(func() { answer = l.call(within(t), m, "linger", asked{}) })
	<-m.began
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(within(t)) }()
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
		plainJSON(), jsonRPC(), jsonRPCOverTCP(), netRPC(), rpcx(),
	}
	written := matrix(t, m, languages)
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
	if old == written {
		return
	}
	if *update {
		if err := os.WriteFile(name, []byte(head+begin+written+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s has\n%s\nand it is\n%s\nRun go test -run TestMatrix -update", name, old, written)
}

// matrix makes the calls of all cells. A cell for which the protocol has no place is a dash, and a
// sentence below the table says why.
func matrix(t *testing.T, m *matrixServer, languages []language) string {
	var b strings.Builder
	b.WriteString("|")
	for _, l := range languages {
		b.WriteString(" | " + l.name)
	}
	b.WriteString(" |\n|---" + strings.Repeat("|---", len(languages)) + "|\n")
	for _, r := range rows {
		b.WriteString("| " + r.name)
		for i := range languages {
			switch l := &languages[i]; {
			case l.without(r.name):
				b.WriteString(" | –")
			case r.has(t, l, m):
				b.WriteString(" | yes")
			default:
				b.WriteString(" | no")
			}
		}
		b.WriteString(" |\n")
	}
	b.WriteString("\nA dash: the protocol has no place for it.\n\n")
	var reasons []string // in their order
	names := make(map[string][]string)
	for _, l := range languages {
		for _, k := range l.lacks {
			for _, name := range k.rows {
				if !slices.ContainsFunc(rows, func(r row) bool { return r.name == name }) {
					t.Errorf("%s lacks %q, which is not a row", l.name, name)
				}
			}
			if names[k.why] == nil {
				reasons = append(reasons, k.why)
			}
			names[k.why] = append(names[k.why], l.name)
		}
	}
	for _, why := range reasons {
		b.WriteString(wrapped("- "+strings.Join(names[why], ", ")+": "+why+".", "  "))
	}
	return b.String()
}

// wrapped returns a text in lines of 100 characters at most.
func wrapped(text, indent string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i == 0:
		case width+1+n > 99:
			b.WriteString("\n" + indent)
			width = len(indent)
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String() + "\n"
}
