package rpcxwire_test

import (
	"bytes"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anser-rpc/anser/protocols/internal/rpcxwire"
)

// golden reads what a stock rpcx client or server has sent.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// parse parses a whole message.
func parse(t testing.TB, b []byte) (rpcxwire.Head, rpcxwire.Front, []byte) {
	t.Helper()
	h, err := rpcxwire.ParseHead(b)
	if err != nil {
		t.Fatal(err)
	}
	f, need, err := rpcxwire.ParseFront(&h, b[rpcxwire.HeadSize:])
	if err != nil || need != 0 {
		t.Fatal(need, err)
	}
	payload := b[rpcxwire.HeadSize+f.Size:]
	if len(payload) != f.Payload {
		t.Fatalf("the payload has %d bytes, declared are %d", len(payload), f.Payload)
	}
	return h, f, payload
}

// What stock rpcx sends is read, and written again as the same bytes.
func TestGolden(t *testing.T) {
	for name, want := range map[string]struct {
		flags    byte
		codec    rpcxwire.Serialization
		seq      uint64
		path     string
		metadata map[string]string
	}{
		"request":   {0, rpcxwire.MessagePack, 7, "Arith", map[string]string{"tenant": "blue"}},
		"json":      {0, rpcxwire.JSON, 8, "Arith", nil},
		"oneway":    {rpcxwire.Oneway, rpcxwire.MessagePack, 9, "Arith", nil},
		"heartbeat": {rpcxwire.Heartbeat, rpcxwire.MessagePack, 10, "", nil},
		"gzip":      {rpcxwire.Gzip, rpcxwire.JSON, 11, "Arith", nil},
		"reply":     {rpcxwire.Response, rpcxwire.MessagePack, 7, "Arith", map[string]string{"served": "yes"}},
		"error":     {rpcxwire.Response | rpcxwire.Failed, rpcxwire.MessagePack, 12, "Arith", map[string]string{rpcxwire.ErrorKey: "rpcx: can't find method Div"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := golden(t, name)
			h, f, payload := parse(t, b)
			md, err := rpcxwire.Pairs(f.Metadata)
			if err != nil || h.Flags != want.flags || h.Serialization != want.codec || h.Seq != want.seq || string(f.Path) != want.path || !maps.Equal(md, want.metadata) {
				t.Fatalf("%+v, %q, %q, %v", h, f.Path, md, err)
			}
			if h.IsGzip() != (name == "gzip") || h.IsFailed() != (name == "error") || h.CheckCompression() != nil {
				t.Errorf("%+v", h)
			}
			if again := rpcxwire.Append([]byte("x"), h, string(f.Path), string(f.Method), md, payload); !bytes.Equal(again[1:], b) {
				t.Errorf("written as\n%x, want\n%x", again[1:], b)
			}
			if again := rpcxwire.AppendBody([]byte("x"), h, b[rpcxwire.HeadSize:]); !bytes.Equal(again[1:], b) {
				t.Errorf("written as\n%x, want\n%x", again[1:], b)
			}
		})
	}
}

// A message may arrive in any pieces: each call says how much must arrive for the next one.
func TestPieces(t *testing.T) {
	b := golden(t, "request")
	h, want, _ := parse(t, b)
	body := b[rpcxwire.HeadSize:]
	for n := range body {
		f, need, err := rpcxwire.ParseFront(&h, body[:n])
		if err != nil || need == 0 && (n < want.Size || f.Payload != want.Payload) || need != 0 && (need <= n || need > want.Size) {
			t.Fatalf("of %d bytes: %+v, need %d, %v", n, f, need, err)
		}
	}
}

// Lengths that do not fit are refused, before anything is allocated for them.
func TestHostile(t *testing.T) {
	head := func(size string) string { return "08000030" + "0000000000000001" + size }
	for name, text := range map[string]string{
		"magic":                     "09000030" + "0000000000000001" + "00000010",
		"version":                   "08010030" + "0000000000000001" + "00000010",
		"shorter than its lengths":  head("0000000f"),
		"path of 4 GiB":             head("ffffffff") + "ffffffff",
		"path beyond the message":   head("00000010") + "00000010",
		"method of 4 GiB":           head("ffffffff") + "00000000" + "ffffffff",
		"metadata of 4 GiB":         head("ffffffff") + "00000000" + "00000000" + "ffffffff",
		"metadata over the limit":   head("00020000") + "00000000" + "00000000" + "00010001",
		"payload longer than rest":  head("00000010") + "00000000" + "00000000" + "00000000" + "00000001",
		"payload shorter than rest": head("00000011") + "00000000" + "00000000" + "00000000" + "00000000",
	} {
		b, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		allocated := testing.AllocsPerRun(1, func() {
			h, err := rpcxwire.ParseHead(b)
			if err == nil {
				if _, _, err = rpcxwire.ParseFront(&h, b[rpcxwire.HeadSize:]); err == nil {
					t.Errorf("%s: no error", name)
				}
			}
		})
		if allocated > 20 { // some more with the race detector
			t.Errorf("%s: %v allocations", name, allocated)
		}
	}
	for name, text := range map[string]string{
		"key of 4 GiB": "ffffffff", "value of 4 GiB": "00000001" + "61" + "ffffffff", "key without a value": "00000001" + "61", "half a length": "0000",
	} {
		b, _ := hex.DecodeString(text)
		if md, err := rpcxwire.Pairs(b); err == nil {
			t.Errorf("%s: %q and no error", name, md)
		}
	}
	many := rpcxwire.AppendPairs(nil, map[string]string{"a": ""})
	for i := range rpcxwire.MaxPairs {
		many = rpcxwire.AppendPairs(many, map[string]string{strings.Repeat("k", i+2): ""})
	}
	if md, err := rpcxwire.Pairs(many); err == nil {
		t.Errorf("%d keys and no error", len(md))
	}
}

func TestBegins(t *testing.T) {
	for begin, want := range map[string][2]bool{
		"\x08": {false, true}, "\x08\x00": {false, true}, "\x08\x00\x00": {true, true}, "\x08\x00\x40\x30": {true, true},
		"\x08\x01": {false, false}, "\x08\x00\x80": {false, false}, "\x16": {false, false}, "{": {false, false},
	} {
		if is, may := rpcxwire.Begins([]byte(begin)); is != want[0] || may != want[1] {
			t.Errorf("%q: %v, %v", begin, is, may)
		}
	}
}

// Whatever is accepted fits into what has arrived, and is written as the same bytes.
func FuzzMessage(f *testing.F) {
	for _, name := range []string{"request", "json", "oneway", "heartbeat", "gzip", "reply", "error"} {
		f.Add(golden(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := rpcxwire.ParseHead(b)
		if err != nil {
			return
		}
		body := b[rpcxwire.HeadSize:]
		front, need, err := rpcxwire.ParseFront(&h, body)
		if err != nil {
			return
		}
		if need > 0 {
			if need <= len(body) || need > int(h.Size) || need > rpcxwire.MaxFront {
				t.Fatalf("of %d bytes %d are needed", len(body), need)
			}
			return
		}
		if front.Size > len(body) || front.Size+front.Payload != int(h.Size) {
			t.Fatalf("%+v of %d bytes", front, len(body))
		}
		md, err := rpcxwire.Pairs(front.Metadata)
		if err != nil || len(md) > 1 || front.Size+front.Payload > len(body) {
			return
		}
		again := rpcxwire.Append(nil, h, string(front.Path), string(front.Method), md, body[front.Size:front.Size+front.Payload])
		if len(md) == 1 || len(front.Metadata) == 0 {
			if h2, f2, p2 := parse(t, again); h2.Seq != h.Seq || !bytes.Equal(f2.Path, front.Path) || !bytes.Equal(p2, body[front.Size:front.Size+front.Payload]) {
				t.Fatalf("%x was written as %x", b, again)
			}
		}
	})
}
