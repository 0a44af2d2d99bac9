package protocols_test

import (
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
