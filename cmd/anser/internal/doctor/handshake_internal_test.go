package doctor

import (
	"io"
	"net"
	"strings"
	"testing"
	"unicode"

	"github.com/anser-rpc/anser/wire"
)

// FuzzHello takes anything for the answer of a server: it ends with settings, a reason or an error,
// and no control character reaches a finding.
func FuzzHello(f *testing.F) {
	preface := wire.AppendPreface(nil)
	f.Add(wire.AppendSettings(preface, wire.DefaultSettings()))
	f.Add(wire.AppendClose(preface, wire.Unauthenticated, "no \x1b[2J"))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Add([]byte{0x15, 0x03, 0x01, 0x00, 0x02, 0x02, 0x0a})
	f.Add([]byte("SSH-2.0-\x1b]0;x\x07\r\n"))
	f.Add(append(preface, 0xff, 0xff, 0xff, 0x7f, 1))
	f.Fuzz(func(t *testing.T, said []byte) {
		client, server := net.Pipe()
		done := make(chan struct{})
		go func() {
			defer close(done)
			io.ReadFull(server, make([]byte, wire.PrefaceSize)) // the client writes in one piece
			go io.Copy(io.Discard, server)
			server.Write(said)
			server.Close()
		}()
		a := hello(client)
		client.Close()
		<-done
		if a.err == nil && !a.closed && len(a.begin) == 0 && a.settings.MaxFrame == 0 {
			t.Errorf("%q is an answer without a meaning: %+v", said, a)
		}
		p := &probe{findings: findings{subject: "x"}, config: new(Config)}
		if a.closed {
			p.refused(&a)
		}
		if err := a.fault(); err != nil {
			p.note("handshake", "%v", err)
		}
		p.note("handshake", "%q, %s", a.begin, a.begin)
		for _, f := range p.list {
			if strings.ContainsFunc(f.Text+f.Advice, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
				t.Errorf("a terminal gets %q", f.Text)
			}
		}
	})
}
