package anser

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/codec"
	"github.com/anser-rpc/anser/wire"
)

// defaultsOf returns the limits of a server without options, as docs/limits.md writes them, by
// name.
func defaultsOf(o *serverOptions) map[string]string {
	return map[string]string{
		"bytes of an encoded message, and of one after decompression":           bytesText(o.maxMessage),
		"bytes of a frame without its message":                                  bytesText(frameOverhead),
		"how many times a message of more than 1 MiB may grow in decompression": number(o.maxExpansion),
		"bytes of large requests that arrive, wait or run":                      map[int]string{8: "an eighth of memory"}[memoryShare],
		"bytes of large replies of a connection whose client does not read":     "half of `MaxMemory`", // checked by TestBacklogHoldsHalf of package membudget
		"bytes of metadata":           bytesText(maxMetadata),
		"keys of metadata":            number(wire.MaxPairs),
		"bytes of a metadata key":     number(wire.MaxKeySize),
		"bytes of an idempotency key": number(wire.MaxIdempotencyKey),
		"depth of nesting in JSON, MessagePack and the codecs in modules": number(codec.MaxJSONDepth),
		"depth of nesting in protobuf":                                    "100", // checked by TestDepth100 of package protobuf
		"calls and streams in flight on the server":                       number(o.maxInFlight),
		"calls in flight of a method":                                     "none",
		"calls that may run at once, as they slow each other down":        none(o.adaptive == nil),
		"time that a call may wait before it runs":                        none(o.queueTime == 0),
		"calls that are open on a connection":                             number(o.maxCalls),
		"streams that are open on a connection":                           number(o.maxStreams),
		"unread bytes of a stream":                                        bytesText(o.streamWindow),
		"bytes of all streams of a connection, likewise":                  bytesText(o.connWindow),
		"bytes of idempotency keys and their replies":                     bytesText(o.memory.Bytes),
		"connections":                                   number(o.maxConns),
		"connections in their handshake":                number(o.maxHandshakes),
		"time of a handshake":                           timeText(o.handshakeTimeout),
		"bytes of a frame before the handshake is over": bytesText(maxHello),
		"entries of SETTINGS":                           "64", // checked by package limits
		"time without progress of a write, or of a frame that arrives with less than 4 KiB a second": timeText(o.writeStall),
		"time from the first byte of a frame to its last one":                                        none(o.readTimeout == 0),
		"least time between two pings of a client":                                                   timeText(o.minPing),
		"silence after which the other side is asked":                                                timeText(o.keepaliveIdle),
		"names of methods on a connection":                                                           number(wire.MaxMethods),
		"bytes of the name of a method":                                                              number(wire.MaxMethodName),
		"sessions of clients without a connection":                                                   "as `MaxConns`",
		"logins with one key of `auth.Signed` that are remembered, for 2 to 4 minutes each":          "65,536", // checked by TestOneKeyDoesNotLockOutOthers of package auth
		"time after the end of an identity for which its connection is kept, for a late renewal":     timeText(o.handshakeTimeout),
	}
}

func none(ok bool) string { return map[bool]string{true: "none", false: "some"}[ok] }

func timeText(d time.Duration) string { return fmt.Sprintf("%g s", d.Seconds()) }

func bytesText(n int) string {
	if n%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// number formats n with commas.
func number(n int) string {
	s := fmt.Sprint(n)
	if len(s) <= 3 {
		return s
	}
	return s[:len(s)-3] + "," + s[len(s)-3:]
}

// docs/limits.md is correct: its options exist, its defaults and counters are those of a server,
// and its settings are those of the protocol.
func TestPageOfLimits(t *testing.T) {
	page, err := os.ReadFile("docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	protocol, err := os.ReadFile("docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	s := NewServer()
	defaults, options, counters := defaultsOf(&s.o), exportedFuncs(t), map[string]bool{}
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 6 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		name, value, option, counter, setting := cells[0], cells[1], strings.Trim(cells[2], "`"), cells[4], cells[5]
		if name == "limit" || strings.HasPrefix(name, "--") {
			continue
		}
		if want, ok := defaults[name]; !ok || value != want {
			t.Errorf("%q: the page says %q, it is %q", name, value, want)
		}
		delete(defaults, name)
		if option != "–" && !options[option] {
			t.Errorf("%q: there is no option %s", name, option)
		}
		if counter != "–" {
			if !slices.Contains(limitNames[noLimit+1:], counter) {
				t.Errorf("%q: there is no counter %q", name, counter)
			}
			counters[counter] = true
		}
		if setting != "–" && !strings.Contains(string(protocol), "| "+setting+" |") {
			t.Errorf("%q: there is no setting %s", name, setting)
		}
	}
	for name := range defaults {
		t.Errorf("the page has no limit %q", name)
	}
	for _, c := range limitNames[noLimit+1:] {
		if !counters[c] {
			t.Errorf("the page does not tell of the counter %q", c)
		}
	}
}

// exportedFuncs returns the exported functions of the package.
func exportedFuncs(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.IsExported() {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

func TestMemoryLimit(t *testing.T) {
	if n := processMemory(); n <= 0 {
		t.Fatalf("the process may use %d bytes", n)
	}
	s := NewServer()
	if want := max(processMemory()/memoryShare, memoryFrames*(4<<20+frameOverhead)); processMemory() != math.MaxInt64 && s.memory.Limit() != want {
		t.Errorf("the default is %d, want %d", s.memory.Limit(), want)
	}
	if s := NewServer(MaxMemory(1000)); len(s.mistakes) != 1 || !strings.Contains(s.mistakes[0].Error(), "want at least 16777216 bytes, 4 times anser.MaxMessage") {
		t.Error(s.mistakes)
	}
	if s := NewServer(MaxMemory(4000), MaxMessage(1000)); len(s.mistakes) != 0 || s.memory.Limit() != 4000 {
		t.Error(s.mistakes, s.memory.Limit())
	}
}
