package httpconnect

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// answered makes a server answer CONNECT with the contents of in, and returns the client's result
// and the number of bytes it has read.
func answered(in io.Reader) (taken int64, err error) {
	client, server := net.Pipe()
	done := make(chan int64, 1)
	go func() {
		defer server.Close()
		if _, err := http.ReadRequest(bufio.NewReader(server)); err != nil {
			done <- 0
			return
		}
		n, _ := io.Copy(server, in)
		done <- n
	}()
	err = exchange(client, &http.Request{Method: http.MethodConnect, URL: &url.URL{Path: Path}, Host: "h:1"}, "h:1")
	client.Close()
	return <-done, err
}

// endless repeats a line forever.
type endless struct{ line string }

func (e endless) Read(p []byte) (n int, err error) {
	for n+len(e.line) <= len(p) {
		n += copy(p[n:], e.line)
	}
	return n, nil
}

// A server cannot fill the client's memory with its answer.
func TestEndlessAnswers(t *testing.T) {
	const limit = 256 << 10 // including bytes in flight
	for name, in := range map[string]io.Reader{
		"status": endless{"HTTP/1.1 200"},
		"header": io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\n"), io.LimitReader(endless{"X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n"}, 16<<20)),
		"body":   io.MultiReader(strings.NewReader("HTTP/1.1 404 Not Found\r\nContent-Length: 1000000000\r\n\r\n"), io.LimitReader(endless{"body"}, 16<<20)),
	} {
		if taken, err := answered(io.LimitReader(in, 16<<20)); err == nil || taken > limit {
			t.Errorf("%s: the client takes %d bytes and then says %v, want at most %d", name, taken, err, limit)
		}
	}
}

// FuzzAnswer checks that a client continues only after a successful answer without trailing data,
// and reads no more than the maximum length of an answer.
func FuzzAnswer(f *testing.F) {
	for _, answer := range []string{
		greeting, "HTTP/1.1 200 OK\r\nX: y\r\n\r\n", greeting + "more", "HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.0 200 OK\r\n\r\n",
		"HTTP/1.1 407 X\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n" + greeting, "220 mail\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "",
	} {
		f.Add(answer)
	}
	f.Fuzz(func(t *testing.T, answer string) {
		if len(answer) > 4096 {
			return // the end may arrive after the client has checked, like later data
		}
		_, err := answered(strings.NewReader(answer))
		_, rest, headed := strings.Cut(strings.ReplaceAll(answer, "\r\n", "\n"), "\n\n")
		if err == nil && (!headed || rest != "" || !strings.Contains(answer, " 2")) {
			t.Fatalf("%q is taken for a success", answer)
		}
		if answer == greeting && err != nil {
			t.Fatal(err)
		}
	})
}
