package rpcxclient_test

import (
	"bufio"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/protocols/internal/rpcxclient"
	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
	"github.com/anser-rpc/anser/wire"
)

// frame is what a client gets.
type frame struct {
	wire.Header
	body []byte
}

// requests are what an Anser client sends: its preface, and a call in JSON.
func requests() []byte {
	b := wire.AppendSettings(wire.AppendPreface(nil), wire.DefaultSettings())
	b = wire.AppendMethod(b, 1, "Arith.Mul")
	return wire.AppendRequest(b, 1, 0, &wire.Request{Method: 1, Codec: 3, Payload: []byte(`{"A":7}`)})
}

// talk connects a client to a server that answers the first heartbeat, reads a request, sends b and
// closes the connection. It returns the frames that the client gets until the end.
func talk(t testing.TB, b []byte) (frames []frame) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	go serve(far, b)
	near.SetDeadline(time.Now().Add(time.Minute))
	nc, err := rpcxclient.New(near, "test:1")
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(time.Minute))
	if _, err := nc.Write(requests()); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(nc)
	io.CopyN(io.Discard, r, wire.PrefaceSize)
	for {
		head := make([]byte, wire.HeaderSize)
		if _, err := io.ReadFull(r, head); err == io.EOF {
			return frames
		} else if err != nil {
			t.Fatal(err)
		}
		h, err := wire.ParseHeader(head)
		if err != nil {
			t.Fatalf("the client gets a malformed frame: %v", err)
		}
		f := frame{h, make([]byte, h.Length)}
		if _, err := io.ReadFull(r, f.body); err != nil {
			t.Fatal(err)
		}
		frames = append(frames, f)
		if h.Type == wire.TypeDrain {
			nc.Write(wire.AppendDrain(nil, wire.FlagAck, 0))
		}
	}
}

// serve answers a heartbeat, reads a request and sends b.
func serve(nc net.Conn, b []byte) {
	defer nc.Close()
	r := bufio.NewReader(nc)
	for i := range 2 {
		head := make([]byte, rpcxwire.HeadSize)
		if _, err := io.ReadFull(r, head); err != nil {
			return
		}
		h, err := rpcxwire.ParseHead(head)
		if err != nil {
			return
		}
		body := make([]byte, h.Size)
		io.ReadFull(r, body)
		if i == 0 {
			h.Flags |= rpcxwire.Response
			nc.Write(rpcxwire.AppendBody(nil, h, body))
		}
	}
	nc.Write(b)
}

// reply is the answer to the request.
func reply(change func(*rpcxwire.Head), metadata map[string]string, payload string) []byte {
	h := rpcxwire.Head{Flags: rpcxwire.Response, Serialization: rpcxwire.JSON, Seq: 1}
	if change != nil {
		change(&h)
	}
	return rpcxwire.Append(nil, h, "Arith", "Mul", metadata, []byte(payload))
}

// Each fault of a server ends its call with an error that says what is wrong.
func TestFaultsOfServers(t *testing.T) {
	for name, row := range map[string]struct {
		send    []byte
		code    wire.Code
		outcome wire.Outcome
		text    string
	}{
		"the end":             {nil, wire.Unavailable, wire.OutcomeUnknown, "the connection to the rpcx server was lost"},
		"half a message":      {reply(nil, nil, `{"C":56}`)[:20], wire.Unavailable, wire.OutcomeUnknown, "unexpected EOF"},
		"half a payload":      {reply(nil, nil, `{"C":56}`)[:45], wire.Unavailable, wire.OutcomeUnknown, "unexpected EOF"},
		"HTTP":                {[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), wire.Unavailable, wire.OutcomeUnknown, "begins with 08 00"},
		"4 GiB":               {[]byte("\x08\x00\x80\x10\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff"), wire.Unavailable, wire.OutcomeUnknown, "declares 4294967295 bytes"},
		"another call":        {reply(func(h *rpcxwire.Head) { h.Seq = 2 }, nil, ""), wire.Unavailable, wire.OutcomeUnknown, "lost"},
		"a message":           {reply(func(h *rpcxwire.Head) { h.Flags = rpcxwire.Oneway }, nil, ""), wire.Unavailable, wire.OutcomeUnknown, "lost"},
		"another codec":       {reply(func(h *rpcxwire.Head) { h.Serialization = rpcxwire.MessagePack }, nil, "\xc0"), wire.InternalError, wire.OutcomeUnknown, "answered in MessagePack"},
		"gzip":                {reply(func(h *rpcxwire.Head) { h.Flags |= rpcxwire.Gzip }, nil, "x"), wire.InternalError, wire.OutcomeUnknown, "was not agreed on"},
		"another compression": {reply(func(h *rpcxwire.Head) { h.Flags |= 3 << 2 }, nil, "x"), wire.InternalError, wire.OutcomeUnknown, "compression 3 of rpcx"},
		"too large":           {reply(nil, nil, strings.Repeat("x", 5<<20)), wire.ResourceExhausted, wire.Executed, "anser.MaxMessage"},
		"no reason":           {reply(func(h *rpcxwire.Head) { h.Flags |= rpcxwire.Failed }, nil, ""), wire.Unknown, wire.Executed, "no reason"},
		"a reason":            {reply(func(h *rpcxwire.Head) { h.Flags |= rpcxwire.Failed }, map[string]string{rpcxwire.ErrorKey: "bad \xff day"}, "ignored"), wire.Unknown, wire.Executed, "bad � day"},
	} {
		var got *wire.ErrorBody
		for _, f := range talk(t, row.send) {
			if f.Type == wire.TypeError && f.ID == 1 && got == nil {
				e, err := wire.ParseError(f.Flags, f.body)
				if err != nil {
					t.Fatal(err)
				}
				got = &e
			} else if f.Type == wire.TypeReply || f.Type == wire.TypeError {
				t.Errorf("%s: another answer %+v", name, f)
			}
		}
		if got == nil || got.Code != row.code || got.Outcome != row.outcome || !strings.Contains(got.Message, row.text) {
			t.Errorf("%s: %+v, want %v %v %q", name, got, row.code, row.outcome, row.text)
		}
	}
}

// A good answer is a reply, with the metadata that is not rpcx's own as trailers.
func TestReply(t *testing.T) {
	for _, f := range talk(t, reply(nil, map[string]string{"Served": "yes", "__own": "x"}, `{"C":56}`)) {
		if f.Type != wire.TypeReply {
			continue
		}
		r, err := wire.ParseReply(f.Flags, f.body)
		if err != nil {
			t.Fatal(err)
		}
		pairs, err := wire.ParseMetadata(r.Metadata, 1000)
		if string(r.Payload) != `{"C":56}` || r.Codec != 3 || err != nil || len(pairs) != 1 || pairs[0] != (wire.Pair{Key: "served", Value: "yes"}) {
			t.Errorf("%+v, %v, %v", r, pairs, err)
		}
		return
	}
	t.Error("there is no reply")
}

// Whatever a server sends, the client neither panics nor hangs, and gets whole frames.
func FuzzServer(f *testing.F) {
	f.Add(reply(nil, map[string]string{"k": "v"}, `{"C":56}`))
	f.Add(reply(func(h *rpcxwire.Head) { h.Flags |= rpcxwire.Failed }, map[string]string{rpcxwire.ErrorKey: "no"}, ""))
	f.Add(reply(func(h *rpcxwire.Head) { h.Flags |= rpcxwire.Heartbeat }, nil, "beat"))
	f.Fuzz(func(t *testing.T, b []byte) { talk(t, b) })
}
