package badinput_test

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/gob"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	stock "net/rpc"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/testusage"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// oldRow is one bad input for a server of netrpc, in one of net/rpc's wire formats.
type oldRow struct {
	number int
	name   string
	json   bool   // JSON-RPC instead of gob
	auth   bool   // the server requires a login
	send   []byte // the bad input; followed by a good call, unless the connection closes
	answer string // part of the answer; "" is anything
	kind   kind   // works, closes or fails
	manner
	impatient bool // the server has the default HandshakeTimeout
}

// OldTree is the argument of the bad methods: it could be inflated in several ways.
type OldTree struct {
	Left    *OldTree
	Names   map[string]int
	Numbers []int
	Any     any
}

// OldArgs is the argument of the good method.
type OldArgs struct{ A, B int }

// oldMessage prepends the length to a gob message.
func oldMessage(b ...byte) []byte {
	if len(b) < 128 {
		return append([]byte{byte(len(b))}, b...)
	}
	return append([]byte{0xfd, byte(len(b) >> 16), byte(len(b) >> 8), byte(len(b))}, b...)
}

// oldCalls encodes calls like net/rpc, in one stream.
func oldCalls(calls ...any) []byte {
	var b bytes.Buffer
	enc := gob.NewEncoder(&b)
	for i := 0; i < len(calls); i += 2 {
		method := calls[i].(string)
		if err := errors.Join(enc.Encode(&stock.Request{ServiceMethod: method, Seq: uint64(i)}), enc.Encode(calls[i+1])); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func oldRows() []oldRow {
	header := oldCalls("Bad.Tree", 0)
	header = header[:len(header)-len(oldMessage(4, 0, 0))] // without its body
	with := func(parts ...[]byte) []byte { return append(bytes.Clone(header), bytes.Join(parts, nil)...) }
	// The types 500, a struct with one field, and 501, the type of that field.
	holder := func(field string, of byte) []byte {
		b := append([]byte{0xfe, 0x03, 0xe7, 3, 1, 2, 0xfe, 0x03, 0xe8, 0, 1, 1, 1, byte(len(field))}, field...)
		return oldMessage(append(b, 1, 0xfe, 0x03, of, 0, 0, 0)...)
	}
	aMap := oldMessage(0xfe, 0x03, 0xe9, 4, 1, 2, 0xfe, 0x03, 0xea, 0, 1, 12, 1, 4, 0, 0)
	aSlice := oldMessage(0xfe, 0x03, 0xe9, 2, 1, 2, 0xfe, 0x03, 0xea, 0, 1, 4, 0, 0)
	value := func(b ...byte) []byte { return oldMessage(append([]byte{0xfe, 0x03, 0xe8, 1}, b...)...) }
	random := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{30}).Read(random)
	good := func(bad ...any) []byte { return oldCalls(append(bad, "Good.Add", OldArgs{7, 8})...) }
	jsonGood := `{"jsonrpc":"2.0","method":"Good.Add","params":{"A":7,"B":8},"id":"good"}`
	rpc2 := func(number int, name, sent, answer string) oldRow {
		return oldRow{number: number, name: "JSON-RPC 2.0: " + name, json: true, kind: works, send: []byte(sent + jsonGood), answer: answer}
	}
	nested := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	token := strings.Repeat("x", 64<<10)
	return []oldRow{
		{number: 1, name: "gob: something else", kind: closes, send: bytes.Repeat([]byte("hello"), 100)},
		{number: 6, name: "gob: a header over the limit", kind: closes, send: oldCalls("Bad."+strings.Repeat("x", 64<<10), 0)},
		{number: 6, name: "gob: a body over the limit", kind: fails, send: good("Bad.Bytes", make([]byte, 4<<20)), answer: "Server.MaxMessage"},
		{number: 7, name: "gob: length 2^64", kind: closes, send: with([]byte{0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})},
		{number: 8, name: "gob: far more declared than sent", kind: closes, send: with([]byte{0xfd, 0x20, 0, 0, 4}, make([]byte, 100)), manner: manner{stall: true}},
		{number: 8, name: "JSON: half a message", json: true, kind: closes, send: []byte(`{"method":`), manner: manner{stall: true}},
		{number: 8, name: "gob: part of a message, and a ReadTimeout", kind: closes, send: with([]byte{0xfd, 0x20, 0, 0, 4}, make([]byte, 100)), manner: manner{stall: true, late: true}},
		{number: 8, name: "JSON: part of a message, and a ReadTimeout", json: true, kind: closes, send: []byte(`{"method":`), manner: manner{stall: true, late: true}},
		{number: 9, name: "gob: inner length beyond outer", kind: closes, send: with(holder("Left", 0xe8), oldMessage(0xfe, 0x03, 0xe8, 1, 1, 1))},
		{number: 12, name: "gob: half a header, then the end", kind: works, send: header[:len(header)-1], manner: manner{hangup: true}},
		{number: 13, name: "gob: a byte now and then", kind: closes, send: header[:1], manner: manner{stall: true, trickle: true}},
		{number: 13, name: "JSON: a byte now and then", json: true, kind: closes, send: []byte("{"), manner: manner{stall: true, trickle: true}},
		{number: 30, name: "gob: random 1 MiB", kind: closes, send: random},
		{number: 30, name: "JSON: random 1 MiB", json: true, kind: closes, send: random},
		{number: 46, name: "gob: half a body, then the end", kind: works, send: with(holder("Names", 0xea), aMap, value(1)[:3]), manner: manner{hangup: true}},
		{number: 47, name: "gob: a slice of 2^31", kind: closes, send: with(holder("Numbers", 0xea), aSlice, value(0xfc, 0x80, 0, 0, 0, 0))},
		{number: 48, name: "gob: a map of 2^31", kind: closes, send: with(holder("Names", 0xea), aMap, value(0xfc, 0x80, 0, 0, 0, 0))},
		{number: 49, name: "gob: 100,000 levels", kind: closes, send: with(holder("Left", 0xe8), value(bytes.Repeat([]byte{1}, 100_000)...))},
		{number: 49, name: "JSON: 100,000 levels", json: true, kind: closes, send: []byte(`{"method":"Bad.Tree","params":` + nested + `,"id":1}`)},
		{number: 52, name: "JSON: NaN", json: true, kind: closes, send: []byte(`{"method":"Bad.Tree","params":[{"Numbers":[NaN]}],"id":1}`)},
		{number: 52, name: "JSON: 1e999999", json: true, kind: fails, send: []byte(`{"method":"Bad.Tree","params":[{"Any":1e999999}],"id":1}` + jsonGood), answer: "1e999999"},
		{number: 53, name: "JSON: a number of 1 MB", json: true, kind: fails, send: []byte(`{"method":"Bad.Tree","params":[{"Numbers":[` + strings.Repeat("9", 1<<20) + `]}],"id":1}` + jsonGood)},
		{number: 61, name: "gob: wrong type", kind: fails, send: good("Bad.Tree", "text"), answer: "Bad.Tree"},
		{number: 61, name: "JSON: wrong type", json: true, kind: fails, send: []byte(`{"method":"Bad.Tree","params":["text"],"id":1}` + jsonGood), answer: `"id":1`},
		rpc2(77, "a notification without params", `{"jsonrpc":"2.0","method":"Bad.Tree"}`, ""),
		rpc2(78, "a call without params", `{"jsonrpc":"2.0","method":"Bad.Tree","id":1}`, "-32602"),
		rpc2(79, "params null", `{"jsonrpc":"2.0","method":"Bad.Tree","params":null,"id":1}`, "-32602"),
		rpc2(79, "params a number", `{"jsonrpc":"2.0","method":"Bad.Tree","params":7,"id":1}`, "-32602"),
		rpc2(80, "a batch of 10,000", "["+strings.Repeat(`{"jsonrpc":"2.0","method":"Bad.Tree","params":{}},`, 9999)+"1]", "-32600"),
		rpc2(81, "an empty batch", "[]", "-32600"),
		rpc2(82, "an id that is an object", `{"jsonrpc":"2.0","method":"Bad.Tree","params":{},"id":{}}`, "-32600"),
		{number: 83, name: "JSON-RPC 2.0: invalid JSON", json: true, kind: closes, send: []byte(`{"jsonrpc":"2.0","method":"No"}{"jsonrpc":"2.0",,}`), answer: "-32700"},
		{number: 84, name: "JSON: 5 MiB", json: true, kind: fails, send: []byte(`{"method":"Bad.Tree","params":["` + strings.Repeat("x", 5<<20) + `"],"id":1}` + jsonGood), answer: "Server.MaxMessage"},
		{number: 101, name: "gob: no token", auth: true, kind: closes, send: oldCalls("Bad.Tree", OldTree{}), answer: "unauthenticated"},
		{number: 102, name: "gob: a wrong token", auth: true, kind: closes, send: oldCalls(netrpc.LoginMethod, "a tokem"), answer: "unauthenticated"},
		{number: 102, name: "gob: a wrong token of another length", auth: true, kind: closes, send: oldCalls(netrpc.LoginMethod, "no"), answer: "unauthenticated"},
		{number: 105, name: "gob: a token of 64 KiB", auth: true, kind: closes, send: oldCalls(netrpc.LoginMethod, token), answer: "unauthenticated"},
		{number: 117, name: "JSON: a call without a login", json: true, auth: true, kind: closes, send: []byte(`{"method":"Bad.Tree","params":[{}],"id":1}`), answer: "unauthenticated"},
	}
}

// oldTarget is a server of netrpc with good clients.
type oldTarget struct {
	*netrpc.Server
	addr net.Addr
	tls  bool
	bad  atomic.Int64 // runs of methods that must not run
	good []*netrpc.Client

	dialer netrpc.Dialer // of good clients
}

func newOldTarget(t *testing.T, over transport, r oldRow) *oldTarget {
	t.Helper()
	g := &oldTarget{Server: &netrpc.Server{Logger: slog.New(slog.DiscardHandler), HandshakeTimeout: time.Minute}, tls: over.tls}
	switch {
	case r.impatient:
		g.HandshakeTimeout = handshakeTimeout
	case r.late:
		g.Stall, g.ReadTimeout = time.Hour, stall
	case r.stall:
		g.Stall = stall
	}
	if r.auth {
		g.Authenticate = func(_ context.Context, c *netrpc.Credentials) (any, error) {
			if subtle.ConstantTimeCompare([]byte(c.Token), []byte("a token")) == 1 {
				return "good", nil
			}
			return nil, errors.New("no")
		}
	}
	for name, f := range map[string]any{
		"Bad.Tree":  func(*OldTree, *OldArgs) error { g.bad.Add(1); return nil },
		"Bad.Bytes": func([]byte, *OldArgs) error { g.bad.Add(1); return nil },
		"Good.Add":  func(in *OldArgs, out *int) error { *out = in.A + in.B; return nil },
	} {
		if err := g.RegisterFunc(name, f); err != nil {
			t.Fatal(err)
		}
	}
	network, address, _ := strings.Cut(over.address(t), "://")
	if address == "" {
		network, address = "tcp", network
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	g.addr = l.Addr()
	if over.tls {
		config, _ := identity()
		l = tls.NewListener(l, config)
	}
	codec := jsonrpc.NewServerCodec
	if !r.json {
		codec = nil
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l, codec) }()
	t.Cleanup(func() {
		for _, c := range g.good {
			c.Close()
		}
		end := time.Now().Add(bound) // Close itself waits for a second only
		err := g.Close()
		for err != nil && time.Now().Before(end) {
			err = g.Close()
		}
		if err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	g.dialer.Timeout = time.Minute
	if over.tls {
		_, g.dialer.TLS = identity()
	}
	if r.auth {
		g.dialer.Token = "a token"
	}
	if r.json {
		g.dialer.Codec = jsonrpc.NewClientCodec2
	}
	for range neighbours {
		g.good = append(g.good, g.client(t))
	}
	g.others(t)
	return g
}

// client returns a good client.
func (g *oldTarget) client(t *testing.T) *netrpc.Client {
	t.Helper()
	c, err := g.dialer.Dial(t.Context(), g.addr.Network(), g.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// window returns the p99 latency of calls on the good connections.
func (g *oldTarget) window(t *testing.T) time.Duration {
	t.Helper()
	return window(t, len(g.good), func(i int) error { return g.good[i].Call("Good.Add", &OldArgs{i, 1}, new(int)) }, func() {})
}

// others checks that the good connections answer.
func (g *oldTarget) others(t *testing.T) {
	t.Helper()
	var wg sync.WaitGroup
	for i, c := range g.good {
		wg.Go(func() {
			var sum int
			if err := c.Call("Good.Add", &OldArgs{i, 1}, &sum); err != nil || sum != i+1 {
				t.Errorf("a good connection: %v, %v", sum, err)
			}
		})
	}
	wg.Wait()
}

func TestBadNetRPCClients(t *testing.T) {
	testusage.Leaves(t, func() { t.Run("rows", testBadNetRPCClients) })
}

func testBadNetRPCClients(t *testing.T) {
	seen := make(map[int]int)
	for _, r := range oldRows() {
		name := fmt.Sprintf("row%02d", r.number)
		if n := seen[r.number]; n > 0 {
			name += string(rune('a' + n))
		}
		seen[r.number]++
		if r.stall && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(r.name)
			held.note(t, r.number)
			if r.stall { // they wait together for a long time
				everywhere(t, func(t *testing.T, over transport, write func(net.Conn, []byte) error) {
					newOldTarget(t, over, r).attack(t, r, write)
				})
				return
			}
			for _, over := range transports {
				t.Run(over.name, func(t *testing.T) {
					g := newOldTarget(t, over, r)
					for name, write := range manners {
						t.Run(name, func(t *testing.T) { g.attack(t, r, write) })
					}
				})
			}
		})
	}
}

// attack sends a row and checks its effect.
func (g *oldTarget) attack(t *testing.T, r oldRow, write func(net.Conn, []byte) error) {
	before := g.Stats()
	nc, err := net.Dial(g.addr.Network(), g.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	if g.tls {
		_, config := identity()
		nc = tls.Client(nc, config)
	}
	answered := make(chan string, 1)
	gone := make(chan struct{})
	lives := r.kind != closes && !r.hangup
	go func() {
		defer close(gone)
		var all bytes.Buffer
		b := make([]byte, 4<<10)
		for !lives || !goodAnswer(all.Bytes(), r.json) {
			n, err := nc.Read(b)
			all.Write(b[:n])
			if err != nil {
				if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
					t.Errorf("nothing comes after %q: %v", all.String(), err)
				}
				break
			}
		}
		answered <- all.String()
	}()
	if err := write(nc, r.send); err == nil { // otherwise the server has already closed
		r.follow(nc, gone, stall)
	}
	got := <-answered
	nc.Close()
	if lives && !goodAnswer([]byte(got), r.json) {
		t.Errorf("the good call of the connection got %q", got)
	}
	// If the peer continues to send, the end of the connection can destroy data in flight to it.
	if !strings.Contains(got, r.answer) && (lives || got != "") {
		t.Errorf("the answer is %q: want %q", got, r.answer)
	}
	g.others(t)
	if n := g.bad.Load(); n != 0 {
		t.Errorf("the method ran %d times", n)
	}
	counted := func() bool {
		after := g.Stats()
		return after.Panics == 0 && after.Conns == neighbours && (r.kind != closes || after.Broken == before.Broken+1) && (r.kind != fails || after.Refused == before.Refused+1)
	}
	for end := time.Now().Add(time.Minute); !counted(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the counters were %+v and are %+v", before, g.Stats())
		}
	}
}

// goodAnswer reports whether the good call after a bad one was answered with its sum, 15.
func goodAnswer(got []byte, json bool) bool {
	if json {
		return bytes.Contains(got, []byte(`"result":15,"id":"good"`))
	}
	dec := gob.NewDecoder(bytes.NewReader(got))
	for {
		var r stock.Response
		if dec.Decode(&r) != nil {
			return false
		}
		var sum int
		var body any = &sum
		if r.Error != "" {
			body = new(struct{})
		}
		if dec.Decode(body) != nil {
			return false
		}
		if sum == 15 {
			return true
		}
	}
}
