package netrpc_test

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser/netrpc"
	"github.com/anser-rpc/anser/netrpc/jsonrpc"
)

// An HTTP client learns what the port is, over each codec, in one write and byte by byte, and the
// log says it once.
func TestAnswersHTTP(t *testing.T) {
	for name, codec := range map[string]func(io.ReadWriteCloser) netrpc.ServerCodec{"gob": nil, "JSON-RPC": jsonrpc.NewServerCodec} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			s := &netrpc.Server{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- s.Serve(l, codec) }()
			for range 3 {
				resp, err := http.Get("http://" + l.Addr().String() + "/")
				if err != nil {
					t.Fatal(err)
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "net/rpc") {
					t.Errorf("%d %s", resp.StatusCode, text)
				}
			}
			if codec == nil { // a codec for JSON can end at the first byte
				nc, err := net.Dial("tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer nc.Close()
				nc.SetDeadline(time.Now().Add(time.Minute))
				for _, b := range []byte("GET ") {
					nc.Write([]byte{b})
				}
				if text, err := io.ReadAll(nc); err != nil || !strings.HasPrefix(string(text), "HTTP/1.1 400 ") {
					t.Errorf("%q, %v", text, err)
				}
			}
			http.DefaultClient.CloseIdleConnections()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			<-served
			if n := strings.Count(log.String(), "request of HTTP"); n != 1 {
				t.Errorf("the log says it %d times: %s", n, log.String())
			}
			if n := s.Stats().Broken; n < 3 {
				t.Errorf("%d connections are counted as broken", n)
			}
		})
	}
}
