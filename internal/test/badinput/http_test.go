package badinput_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Rows 123 and 124: an HTTP/1.1 request, and the beginning of HTTP/2, get an HTTP answer and no
// handshake. Over TLS they get it after the TLS handshake, if they negotiate no other protocol.
func TestHTTP(t *testing.T) {
	rows := []struct {
		number  int
		request string
	}{
		{123, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{124, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	}
	for _, over := range transports {
		t.Run(over.name, func(t *testing.T) {
			t.Parallel()
			g := newTarget(t, over)
			for _, row := range rows {
				held.note(t, row.number)
				for manner, write := range manners {
					before := g.Stats()
					request := row.request
					if manner == "bytewise" { // with more, the end could overtake the answer
						request = request[:4]
					}
					r, body := g.request(t, write, request)
					if r.StatusCode != http.StatusBadRequest || !r.Close || !strings.HasPrefix(body, "This is an Anser server") {
						t.Errorf("row %d, %s: %s, %q", row.number, manner, r.Status, body)
					}
					g.turnedAway(t, before)
					if n := g.Stats().Closed["BAD_FRAME"] - before.Closed["BAD_FRAME"]; n != 1 {
						t.Errorf("row %d, %s: BAD_FRAME counted %d times", row.number, manner, n)
					}
				}
			}
		})
	}
}

// request sends an HTTP request in the given manner, and returns the answer.
func (g *target) request(t *testing.T, write func(net.Conn, []byte) error, request string) (*http.Response, string) {
	t.Helper()
	nc, err := net.Dial(g.addr.Network(), g.addr.String())
	if err != nil {
		t.Fatal(err)
	}
	if g.tls {
		_, config := identity()
		nc = tls.Client(nc, config)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(bound))
	write(nc, []byte(request)) // the server may have answered already
	r, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(body)
}
