package protocols_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/anser-rpc/anser/protocols"
)

// HTTP is recognized by its first bytes, however few of them arrive at first.
func TestHTTPBegins(t *testing.T) {
	p := protocols.HTTP()
	for text, want := range map[string]struct{ is, may bool }{
		"G":                                {false, true},
		"GET":                              {false, true},
		"GET ":                             {false, true},
		"GET /":                            {true, true},
		"POST /Arith.Mul":                  {true, true},
		"ARCHIVE /v1/x":                    {true, true},
		"GET http://a.example/x":           {true, true},
		"POST HTTPS://a.example/x":         {true, true},
		"GET http:/":                       {false, true},
		"GET httpx://a.example/x":          {false, false},
		"OPTIONS * HTTP/1.1":               {true, true},
		"CONNECT a:1":                      {true, true},
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": {true, true},
		"PRI * HTTP/2":                     {false, true},
		"PRI * HTTP/1.0\r\n":               {false, false},
		"get /":                            {false, false},
		" /":                               {false, false},
		"GET x":                            {false, false},
		"SSH-2.0-x":                        {false, false},
		"AVERYLONGMETHODOFHTTP /":          {false, false},
		"\x16\x03\x01":                     {false, false},
		"{\"method\"":                      {false, false},
	} {
		for n := 1; n < len(text); n++ {
			if is, may := p.Begins([]byte(text[:n])); want.is && !is && !may {
				t.Errorf("the first %d bytes of %q are not taken", n, text)
			}
		}
		if is, may := p.Begins([]byte(text)); is != want.is || may != want.may {
			t.Errorf("%q: is %v, may be %v, want %v", text, is, may, want)
		}
	}
}

// A request with an absolute address, as a proxy gets it, is served also as the first one of a
// connection, and its host is the one of the address.
func TestAbsoluteAddresses(t *testing.T) {
	_, address := serve(t)
	for target, row := range map[string]struct {
		header string
		status int
	}{
		"http://localhost/Arith.Mul":      {status: 200},
		"HTTP://LOCALHOST:80/Arith.Mul":   {status: 200},
		"https://localhost/Arith.Mul":     {status: 200},
		"http://localhost/none":           {status: 404},
		"http://localhost/Arith%2eMul":    {status: 404},
		"http://localhost//Arith.Mul":     {status: 404},
		"http://evil.example/Arith.Mul":   {"Origin: http://evil.example\r\n", 403},
		"http://a@evil.example/Arith.Mul": {"Origin: http://localhost\r\n", 403},
	} {
		nc, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(nc, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 13\r\n%s\r\n{\"A\":7,\"B\":8}", target, row.header)
		resp, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != row.status || row.status == 200 && string(b) != `{"C":56}` {
			t.Errorf("%s: %d %q, %v", target, resp.StatusCode, b, err)
		}
		nc.Close()
	}
}
