package servers

import (
	"fmt"
	"net"
	"testing"
)

// The ports that Ports gives away. Linux takes those of connections from 32768 on.
const (
	firstPort = 22_000
	lastPort  = 32_000
)

// Ports returns the first of n free ports in a row on 127.0.0.1, for servers that cannot say at which port they serve.
// Until the test ends no other test gets them, in no process: the port behind them is kept open as the sign of that.
func Ports(t testing.TB, n int) (first int) {
	t.Helper()
	for first := firstPort; first+n < lastPort; first += n + 1 {
		sign, err := listen(first + n)
		if err != nil {
			continue
		}
		if allFree(first, n) {
			t.Cleanup(func() { sign.Close() })
			return first
		}
		sign.Close()
	}
	t.Fatalf("there are no %d free ports in a row from %d to %d", n, firstPort, lastPort)
	return 0
}

func allFree(first, n int) bool {
	for i := range n {
		l, err := listen(first + i)
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}
