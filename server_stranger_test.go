package anser_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/testlog"
)

// An HTTP client gets an answer that it understands, whatever its method. The server's log does
// not grow with the number of requests.
func TestAnswersHTTP(t *testing.T) {
	bubble(t, func(t *testing.T, network *ansertest.Network) {
		log := new(testlog.Buffer)
		s := serve(t, network.Listen("a:1"), map[string]handler{"Echo.Say": echo}, anser.Logger(log.Logger()))
		ask := func(method string) *http.Response {
			nc, err := network.Dial(t.Context(), "tcp", "a:1")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := io.WriteString(nc, method+" / HTTP/1.1\r\nHost: secret\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			r, err := http.ReadResponse(bufio.NewReader(nc), nil)
			if err != nil {
				t.Fatalf("%s: %v", method, err)
			}
			body, err := io.ReadAll(r.Body)
			if r.StatusCode != http.StatusBadRequest || !r.Close || err != nil ||
				!strings.HasPrefix(string(body), "This is an Anser server") || strings.Contains(string(body), "secret") {
				t.Fatalf("%s: %s, %v, %q, %v", method, r.Status, r.Header, body, err)
			}
			return r
		}
		methods := []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "PRI"}
		for _, m := range methods {
			ask(m)
		}
		const many = 10_000
		for range many {
			ask("GET")
		}
		synctest.Wait()
		total := int64(many + len(methods))
		if st := s.Stats(); st.Closed["BAD_FRAME"] != total || st.HandshakeFailed != total || st.Conns != 0 {
			t.Errorf("%+v", st)
		}
		if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "HTTP") {
			t.Errorf("the log of the first requests: %q", text)
		}
		time.Sleep(time.Minute)
		ask("GET")
		synctest.Wait()
		if text := log.Take(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "requests=10010") {
			t.Errorf("the log a minute later: %q", text)
		}
	})
}
