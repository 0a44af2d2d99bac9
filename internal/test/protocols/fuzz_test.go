package protocols_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/test/protocols/sample"
	"github.com/anser-rpc/anser/protocols"
)

// fuzzed starts a server that a target sends its inputs to, and returns what looks after each of
// them: nothing has panicked, and nothing is held.
func fuzzed(f *testing.F) (address string, client *http.Client, look func(*testing.T)) {
	f.Helper()
	s := anser.NewServer(protocols.All(), anser.NoSignals(), silent, anser.MaxMessage(64<<10))
	addLibrary(new(sample.Library))(s)
	anser.Handle(s, "test.Echo.Say", func(_ context.Context, in *wrapperspb.BytesValue) (*wrapperspb.BytesValue, error) { return in, nil })
	anser.HandleStream(s, "test.Echo.All", func(_ context.Context, st *anser.Stream[wrapperspb.BytesValue, wrapperspb.BytesValue]) error {
		for {
			in, err := st.Recv()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if err := st.Send(in); err != nil {
				return err
			}
		}
	})
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	tr := new(http.Transport)
	f.Cleanup(func() {
		tr.CloseIdleConnections()
		s.Close()
		<-served
	})
	return l.Addr().String(), &http.Client{Transport: tr, Timeout: time.Minute}, func(t *testing.T) {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			st := s.Stats()
			if st.Panics > 0 {
				t.Fatal("it panicked")
			}
			if st.Memory == 0 && st.InFlight == 0 {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%d bytes and %d calls are left", st.Memory, st.InFlight)
			}
		}
	}
}

// Any bytes at the beginning of a connection, in two pieces.
func FuzzPort(f *testing.F) {
	for _, begin := range []string{
		"POST /test.Echo.Say HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n\"\"", "GET / HTTP/1.1\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", `{"method":"test.Echo.Say","params":[{}],"id":1}`, "\xa5NSR\x01\x00\x00\x00",
		"\x16\x03\x01", "PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", "CONNECT /rpc HTTP/1.0\n\n",
		"\x08\x00\x00\x30\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"POST /jsonrpc HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add([]byte(begin), 3)
	}
	address, _, look := fuzzed(f)
	f.Fuzz(func(t *testing.T, begin []byte, cut int) {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		nc.SetDeadline(time.Now().Add(time.Minute))
		n := max(0, min(cut, len(begin)))
		nc.Write(begin[:n])
		nc.Write(begin[n:])
		nc.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, nc)
		look(t)
	})
}

// Any body of any kind to a call and to a stream.
func FuzzBodies(f *testing.F) {
	kinds := []string{
		"application/json", "application/proto", "application/connect+proto", "application/connect+json", "application/grpc-web", "application/grpc-web-text",
		"application/grpc-web+json", "application/x-ndjson", "application/grpc", "text/plain",
	}
	for i := range kinds {
		f.Add([]byte("\x00\x00\x00\x00\x03\x0a\x01x"), uint8(i), "", "")
		f.Add([]byte("\x01\x00\x00\x00\x03\x0a\x01x"), uint8(i+128), "gzip", "text/event-stream")
		f.Add([]byte(`"AQ=="`), uint8(i), "identity", "application/json;q=0.1,*/*")
	}
	address, client, look := fuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte, kind uint8, encoding, accept string) {
		paths := []string{"/test.Echo/Say", "/test.Echo.Say", "/test.Echo/All", "/test.Echo.All"}
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+address+paths[int(kind)%len(paths)], bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", kinds[int(kind)%len(kinds)])
		for _, name := range []string{"Content-Encoding", "Connect-Content-Encoding", "Grpc-Encoding", "Grpc-Timeout", "Connect-Timeout-Ms", "Request-Timeout"} {
			if value := strings.Map(printable, encoding); value != "" {
				r.Header.Set(name, value)
			}
		}
		r.Header.Set("Accept", strings.Map(printable, accept))
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err == nil && resp.StatusCode == 200 && strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && !json.Valid(b) {
			t.Errorf("the answer is %q", b)
		}
		look(t)
	})
}

// Any query of a call with GET.
func FuzzConnectGet(f *testing.F) {
	f.Add("proto", "CgF4", "1", "", "v1")
	f.Add("json", `{"name":"x"}`, "", "gzip", "v2")
	address, client, look := fuzzed(f)
	f.Fuzz(func(t *testing.T, encoding, message, base64, compression, version string) {
		query := url.Values{"encoding": {encoding}, "message": {message}, "base64": {base64}, "compression": {compression}, "connect": {version}}
		resp, err := client.Get("http://" + address + "/test.library.v1.Library/GetBook?" + query.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if b, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode == 404 || resp.Header.Get("Content-Type") == "application/json" && !json.Valid(b) {
			t.Errorf("%d, %q, %v", resp.StatusCode, b, err)
		}
		look(t)
	})
}

// Any body of JSON-RPC: the answer is none, or JSON with an id for each of its parts.
func FuzzJSONRPC(f *testing.F) {
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"test.Echo.Say","params":["AQ=="],"id":1}`, `[{"jsonrpc":"2.0","method":"test.Echo.Say","params":["AQ=="]},1]`, `[]`,
		`{"jsonrpc":"2.0","method":"x","params":{},"id":null}`, `{"jsonrpc":"2.0","method":"test.Echo.All","id":"a"}`,
	} {
		f.Add([]byte(body))
	}
	address, client, look := fuzzed(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		resp, err := client.Post("http://"+address+"/jsonrpc", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		switch {
		case err != nil:
			t.Fatal(err)
		case resp.StatusCode == 204 && len(b) == 0, resp.StatusCode == 429:
		case resp.StatusCode != 200 || !json.Valid(b):
			t.Errorf("%d %q", resp.StatusCode, b)
		default:
			var one struct{ ID json.RawMessage }
			var list []struct{ ID json.RawMessage }
			if json.Unmarshal(b, &one) != nil && json.Unmarshal(b, &list) != nil || b[0] == '{' && one.ID == nil {
				t.Errorf("the answer is %q", b)
			}
		}
		look(t)
	})
}
