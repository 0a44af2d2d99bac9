package netrpc_test

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	stock "net/rpc"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// Keeper keeps its arguments, of types that a message could inflate.
type Keeper struct{}

// Tree is recursive.
type Tree struct {
	Left, Right *Tree
	Names       map[string]int
	Any         any
}

// Keep keeps a tree.
func (Keeper) Keep(in *Tree, out *Reply) error {
	out.C = len(in.Names)
	return nil
}

// Bytes returns n bytes.
func (Keeper) Bytes(n int, out *[]byte) error {
	*out = make([]byte, n)
	return nil
}

// Length takes bytes.
func (Keeper) Length(in []byte, out *int) error {
	*out = len(in)
	return nil
}

// Sum adds numbers.
func (Keeper) Sum(in []int, out *int) error {
	for _, n := range in {
		*out += n
	}
	return nil
}

// message prepends the length to the bytes, as in gob.
func message(b ...byte) []byte {
	if len(b) < 128 {
		return append([]byte{byte(len(b))}, b...)
	}
	n := len(b)
	return append([]byte{0xfd, byte(n >> 16), byte(n >> 8), byte(n)}, b...)
}

// request returns the header of a call, as written by net/rpc.
func request(t testing.TB, method string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(&stock.Request{ServiceMethod: method, Seq: 1}); err != nil {
		t.Fatal(err)
	}
	return append(b.Bytes(), body...)
}

// The types of the messages below, with IDs that net/rpc does not use.
var (
	treeWithMap = message(0xfe, 0x03, 0xe7, 3, 1, 2, 0xfe, 0x03, 0xe8, 0, 1, 1, 1, 5, 'N', 'a', 'm', 'e', 's', 1, 0xfe, 0x03, 0xea, 0, 0, 0)
	mapOfNames  = message(0xfe, 0x03, 0xe9, 4, 1, 2, 0xfe, 0x03, 0xea, 0, 1, 12, 1, 4, 0, 0)
	treeOfTrees = message(0xfe, 0x03, 0xe7, 3, 1, 2, 0xfe, 0x03, 0xe8, 0, 1, 1, 1, 4, 'L', 'e', 'f', 't', 1, 0xfe, 0x03, 0xe8, 0, 0, 0)
	numbers     = message(0xfe, 0x03, 0xe7, 2, 1, 2, 0xfe, 0x03, 0xe8, 0, 1, 4, 0, 0)
	strange     = message(0xfe, 0x03, 0xe7, 3, 1, 2, 0xfe, 0x03, 0xe8, 0, 1, 1, 1, 4, 'S', 'e', 'l', 'f', 1, 0xfe, 0x03, 0xe8, 0, 0, 0)
)

// An error on one connection ends only that connection. Meanwhile others are served, memory does
// not grow because of declared lengths, and nothing is left behind.
func TestHostileClients(t *testing.T) {
	ansertest.CheckLeaks(t)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	deep := bytes.Repeat([]byte{1}, 2<<20)
	for name, sent := range map[string]struct {
		bytes []byte
		json  bool
	}{
		"nothing":                   {},
		"one byte":                  {bytes: []byte{7}},
		"zeros":                     {bytes: make([]byte, 1000)},
		"garbage":                   {bytes: bytes.Repeat([]byte{0xde, 0xad, 0xbe, 0xef}, 1000)},
		"an HTTP request":           {bytes: []byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + strings.Repeat("x", 100))},
		"a header of 1 MiB":         {bytes: request(t, strings.Repeat("x", 1<<20), nil)},
		"a length of 2^64":          {bytes: []byte{0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
		"a body of 2^60":            {bytes: request(t, "Keeper.Keep", []byte{0xf8, 0x10, 0, 0, 0, 0, 0, 0, 0})},
		"half a body of 2^21":       {bytes: request(t, "Keeper.Keep", join([]byte{0xfd, 0x20, 0, 0, 4}, make([]byte, 1<<20)))},
		"a map of 2^60":             {bytes: request(t, "Keeper.Keep", join(treeWithMap, mapOfNames, message(0xfe, 0x03, 0xe8, 1, 0xf8, 0x10, 0, 0, 0, 0, 0, 0, 0, 0)))},
		"a slice of 2^30":           {bytes: request(t, "Keeper.Sum", join(numbers, message(0xfe, 0x03, 0xe8, 0, 0xfc, 0x40, 0, 0, 0, 2)))},
		"a tree of 2^21 levels":     {bytes: request(t, "Keeper.Keep", join(treeOfTrees, message(join([]byte{0xfe, 0x03, 0xe8}, deep)...)))},
		"2^21 levels to be skipped": {bytes: request(t, "Keeper.Keep", join(strange, message(join([]byte{0xfe, 0x03, 0xe8}, deep)...)))},
		"2^21 levels, unknown name": {bytes: request(t, "Keeper.No", join(strange, message(join([]byte{0xfe, 0x03, 0xe8}, deep)...)))},
		"JSON: garbage":             {json: true, bytes: []byte("hello\n")},
		"JSON: half an object":      {json: true, bytes: []byte(`{"method":"Keeper.Keep"`)},
		"JSON: invalid":             {json: true, bytes: []byte(`{"method":"Keeper.Keep",,}`)},
		"JSON: 5 MiB":               {json: true, bytes: []byte(`{"method":"Keeper.Keep","params":["` + strings.Repeat("x", 5<<20) + `"]}`)},
		"JSON: 2^20 levels":         {json: true, bytes: []byte(`{"params":` + strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20) + "}")},
		"JSON: 2^20 open levels":    {json: true, bytes: []byte(strings.Repeat("[", 1<<20))},
		"JSON: a batch of 10,000":   {json: true, bytes: []byte("[" + strings.Repeat(`{"jsonrpc":"2.0"},`, 9999) + "1]")},
		"JSON: duplicates":          {json: true, bytes: []byte(`{"method":"Keeper.Keep","params":[{"Left":1e999999,"Left":NaN}],"id":1}`)},
		"JSON: a number of 1 MB":    {json: true, bytes: []byte(`{"method":"Keeper.Bytes","params":[` + strings.Repeat("9", 1<<20) + `],"id":1}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := quiet(Keeper{}, new(Arith))
			gobAddr, jsonAddr := serve(t, s, nil), serve(t, s, jsonrpc.NewServerCodec)
			good := dial(t, gobAddr)
			mustAdd(t, good)
			addr := gobAddr
			if sent.json {
				addr = jsonAddr
			}
			for _, piece := range []int{1 << 30, 1000} {
				grown := allocated(func() { attack(t, addr, sent.bytes, piece) })
				// Received data must be held, more than once while a buffer grows.
				if limit := 8<<20 + 8*uint64(len(sent.bytes)); grown > limit {
					t.Errorf("it took %d bytes of memory: want %d at most", grown, limit)
				}
				mustAdd(t, good)
			}
			if got := s.Stats(); got.Panics > 0 {
				t.Errorf("%d panics", got.Panics)
			}
			good.Close()
		})
	}
}

// attack sends bytes in pieces, reads the answers, and waits for the end of the connection.
func attack(t *testing.T, addr string, sent []byte, piece int) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Minute))
	go func() {
		for rest := sent; len(rest) > 0; {
			n, err := conn.Write(rest[:min(piece, len(rest))])
			if err != nil {
				return
			}
			rest = rest[n:]
		}
		conn.(*net.TCPConn).CloseWrite()
	}()
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, net.ErrClosed) || isTimeout(err) {
		t.Errorf("the connection does not end: %v", err)
	}
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// allocated returns the number of bytes allocated while f runs.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A peer that has begun a message must continue it, and an idle one may stay.
func TestStalledClients(t *testing.T) {
	for name, c := range map[string]struct {
		codec func(io.ReadWriteCloser) netrpc.ServerCodec
		begin string
		whole string
	}{
		"gob":  {nil, "\x7f\x01", string(request(t, "Arith.No", message(6, 0, 0)))},
		"JSON": {jsonrpc.NewServerCodec, `{"method":`, `{"method":"Arith.Add","params":[{}],"id":1}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := quiet(new(Arith))
				s.Stall = time.Second
				connect := serveInMemory(t, s, c.codec)
				// One complete request, and then an hour without data.
				idle := connect()
				defer idle.Close()
				ask := func() {
					b := make([]byte, 1000)
					io.WriteString(idle, c.whole)
					if _, err := idle.Read(b); err != nil {
						t.Errorf("the idle connection: %v, want an answer", err)
					}
				}
				ask()
				// Half a request, and then a byte now and then.
				slow := connect()
				defer slow.Close()
				began := time.Now()
				io.WriteString(slow, c.begin)
				go func() {
					for {
						time.Sleep(300 * time.Millisecond)
						if _, err := slow.Write([]byte(" ")); err != nil {
							return
						}
					}
				}()
				n, err := slow.Read(make([]byte, 1000))
				if took := time.Since(began); err != io.EOF || took != s.Stall {
					t.Errorf("the stalled connection: %d bytes, %v after %v, want the end after %v", n, err, took, s.Stall)
				}
				time.Sleep(time.Hour)
				if name == "JSON" { // the types of the gob request are defined already
					ask()
				}
				if st := s.Stats(); st.Conns != 1 || st.Broken != 1 {
					t.Errorf("counted are %+v, want one connection and one that is broken", st)
				}
			})
		})
	}
}

// A peer that sends requests and does not read the answers is disconnected, and does not block
// others.
func TestClientsThatDoNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quiet(Keeper{}, new(Arith))
		s.Stall = time.Second
		connect := serveInMemory(t, s, nil)
		conn := connect()
		defer conn.Close()
		enc := gob.NewEncoder(conn)
		for i := range 100 {
			if err := errors.Join(enc.Encode(&stock.Request{ServiceMethod: "Keeper.Bytes", Seq: uint64(i)}), enc.Encode(64<<10)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		c := netrpc.NewClient(connect())
		defer c.Close()
		mustAdd(t, c)
		if st := s.Stats(); st.Conns != 2 || st.InFlight == 0 {
			t.Errorf("at first there are %+v: want two connections and calls that wait", st)
		}
		time.Sleep(s.Stall)
		synctest.Wait()
		if st := s.Stats(); st.Conns != 1 || st.InFlight != 0 {
			t.Errorf("in the end there are %+v: want one connection and no call", st)
		}
		mustAdd(t, c)
	})
}

func TestMaxMessage(t *testing.T) {
	s := quiet(Keeper{}, new(Arith))
	s.MaxMessage = 1000
	c := dial(t, serve(t, s, nil))
	var n int
	if err := c.Call("Keeper.Length", make([]byte, 900), &n); err != nil || n != 900 {
		t.Errorf("within the limit: %v, %v", n, err)
	}
	// The error contains advice, and the connection stays open.
	err := c.Call("Keeper.Length", make([]byte, 1000), &n)
	if err == nil || !strings.Contains(err.Error(), "over the server's limit of 1000") || !strings.Contains(err.Error(), "Server.MaxMessage") {
		t.Errorf("over the limit: %v", err)
	}
	mustAdd(t, c)
	// JSON has no lengths, so the message is read to its end.
	j, err := jsonrpc.Dial("tcp", serve(t, s, jsonrpc.NewServerCodec))
	client(t, j, err)
	mustAdd(t, j)
	err = j.Call("Keeper.Length", make([]byte, 2000), &n)
	if err == nil || !strings.Contains(err.Error(), "over the server's limit of 1000") || !strings.Contains(err.Error(), "Server.MaxMessage") {
		t.Errorf("JSON over the limit: %v", err)
	}
	mustAdd(t, j)
}

func TestMaxMessageOfClients(t *testing.T) {
	s := quiet(Keeper{}, new(Arith))
	addr := serve(t, s, nil)
	c, err := (&netrpc.Dialer{MaxMessage: 1000}).Dial(t.Context(), "tcp", addr)
	client(t, c, err)
	var b []byte
	if err := c.Call("Keeper.Bytes", 900, &b); err != nil || len(b) != 900 {
		t.Errorf("within the limit: %d, %v", len(b), err)
	}
	err = c.Call("Keeper.Bytes", 1000, &b)
	if err == nil || !strings.Contains(err.Error(), "over the limit of 1000") || !strings.Contains(err.Error(), "Dialer.MaxMessage") {
		t.Errorf("over the limit: %v", err)
	}
	mustAdd(t, c)
	// The default is 4 MiB.
	if err := dial(t, addr).Call("Keeper.Bytes", 4<<20, &b); err == nil {
		t.Error("a reply over 4 MiB passes")
	}
}

// A bad server cannot affect a client beyond its connection.
func TestHostileServers(t *testing.T) {
	ansertest.CheckLeaks(t)
	var reply bytes.Buffer
	enc := gob.NewEncoder(&reply)
	enc.Encode(&stock.Response{ServiceMethod: "Keeper.Keep", Seq: 0})
	header := bytes.Clone(reply.Bytes())
	enc.Encode(&Tree{Names: map[string]int{"a": 1}})
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, sent := range map[string][]byte{
		"nothing":           nil,
		"garbage":           bytes.Repeat([]byte{0xde, 0xad, 0xbe, 0xef}, 1000),
		"half a reply":      reply.Bytes()[:reply.Len()-1],
		"a header only":     header,
		"a map of 2^60":     join(header, treeWithMap, mapOfNames, message(0xfe, 0x03, 0xe8, 1, 0xf8, 0x10, 0, 0, 0, 0, 0, 0, 0, 0)),
		"a tree too deep":   join(header, treeOfTrees, message(join([]byte{0xfe, 0x03, 0xe8}, bytes.Repeat([]byte{1}, 2<<20))...)),
		"a reply of 2^60":   join(header, []byte{0xf8, 0x10, 0, 0, 0, 0, 0, 0, 0}),
		"another type":      join(header, message(12, 0, 1, 'x')),
		"for nobody":        join(encodeGob(t, &stock.Response{Seq: 99}), message(12, 0, 1, 'x')),
		"a header too long": encodeGob(t, &stock.Response{Error: strings.Repeat("x", 1<<20)}),
	} {
		t.Run(name, func(t *testing.T) {
			one, two := net.Pipe()
			go func() {
				go io.Copy(io.Discard, two)
				two.Write(sent)
				two.Close()
			}()
			c := netrpc.NewClient(one)
			defer c.Close()
			var got Tree
			grown := allocated(func() {
				if err := c.Call("Keeper.Keep", &Args{}, &got); err == nil {
					t.Error("the call succeeds")
				}
			})
			if grown > 32<<20 {
				t.Errorf("it took %d bytes of memory", grown)
			}
			if err := c.Call("Keeper.Keep", &Args{}, &got); err == nil {
				t.Error("a second call succeeds")
			}
		})
	}
	for _, sent := range []string{"hello", "{", `{"id":"x","result":1}`, `{"id":0}`, `{"id":null,"error":"x"}`, `{"id":0,"result":{"Names":7}}`, `[]`} {
		for _, dial := range []func(io.ReadWriteCloser) *netrpc.Client{jsonrpc.NewClient, jsonrpc.NewClient2} {
			one, two := net.Pipe()
			go func() {
				b := make([]byte, 1000)
				two.Read(b)
				io.WriteString(two, sent)
				two.Close()
			}()
			c := dial(one)
			if err := c.Call("Keeper.Keep", &Args{}, new(Tree)); err == nil {
				t.Errorf("%s: the call succeeds", sent)
			}
			c.Close()
		}
	}
}

func encodeGob(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The first bytes of a client vary: in a program that has used gob before, the numbers of its
// types continue from there.
func TestPreambleOfOthers(t *testing.T) {
	addr := serve(t, quiet(new(Arith)), nil)
	usual := encodeGob(t, &stock.Request{})
	// The same types as in other programs, with other numbers and more fields.
	type Request struct {
		ServiceMethod string
		Seq           uint64
		Trace         map[string][]string
	}
	type Arguments struct {
		B, A  int
		Extra []any
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var b bytes.Buffer
	enc := gob.NewEncoder(&b)
	enc.Encode(&Request{ServiceMethod: "Arith.Add", Seq: 5, Trace: map[string][]string{"id": {"1", "2"}}})
	enc.Encode(&Arguments{A: 1, B: 2, Extra: []any{"x", 1}})
	if bytes.HasPrefix(b.Bytes(), usual[:20]) {
		t.Fatal("the preamble is the usual one")
	}
	conn.Write(b.Bytes())
	dec := gob.NewDecoder(conn)
	var header stock.Response
	var reply Reply
	if err := errors.Join(dec.Decode(&header), dec.Decode(&reply)); err != nil || header.Seq != 5 || reply.C != 3 {
		t.Errorf("got %+v, %+v, %v", header, reply, err)
	}
}

// FuzzServer sends bytes to a server, both as gob and as JSON.
func FuzzServer(f *testing.F) {
	f.Add(request(f, "Keeper.Keep", encodeGob(f, &Tree{Names: map[string]int{"a": 1}})))
	f.Add(request(f, "Arith.Add", encodeGob(f, Args{1, 2})))
	f.Add([]byte(`{"method":"Arith.Add","params":[{"A":1,"B":2}],"id":1}`))
	f.Add([]byte(`[{"jsonrpc":"2.0","method":"Keeper.Keep","params":{"Names":{"a":1}},"id":1},{"jsonrpc":"2.0","method":"Arith.Add"}]`))
	s := quiet(Keeper{}, new(Arith))
	f.Fuzz(func(t *testing.T, data []byte) {
		s.ServeConn(&script{in: bytes.NewReader(data)})
		out := new(script)
		out.in = bytes.NewReader(data)
		s.ServeCodec(jsonrpc.NewServerCodec(out))
		for dec := json.NewDecoder(&out.out); ; {
			var v any
			if err := dec.Decode(&v); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("the answer %q is not JSON: %v", out.out.String(), err)
			}
		}
		if n := s.Stats().Panics; n > 0 {
			t.Fatal(fmt.Sprint(n), "panics")
		}
	})
}

// script is a connection whose input has already arrived.
type script struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (s *script) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error) { return s.out.Write(p) }
func (s *script) Close() error                { return nil }
