package sysconn

import (
	"net"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect returns both ends of a connection, which the end of the test closes.
func connect(t *testing.T, network, address string) (out, in net.Conn) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if out, err = net.Dial(network, l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	if in, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	return out, in
}
