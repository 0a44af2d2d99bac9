package servers

import (
	"fmt"
	"net"
	"testing"
)

// The range of Ports. Linux uses ports from 32768 on for outgoing connections, so a server that is
// restarted finds its port free. For each port of the range there is a second one, the same
// distance below, that is kept open to mark it as taken.
const (
	firstPort = 24_000
	endPort   = 32_000
	below     = 8_000
)

// Ports returns the first of n consecutive free ports on 127.0.0.1, for servers that cannot report
// their port, or that are restarted. Until the test ends no other test gets them, in any process.
func Ports(t testing.TB, n int) (first int) {
	t.Helper()
	for first := firstPort; first+n <= endPort; first++ {
		if signs := take(first, n); signs != nil {
			t.Cleanup(func() { closeAll(signs) })
			return first
		}
	}
	t.Fatalf("there are no %d free ports in a row from %d to %d", n, firstPort, endPort-1)
	return 0
}

// Address returns an address of Ports.
func Address(t testing.TB) string {
	t.Helper()
	return local(Ports(t, 1))
}

// local is the address of a port.
func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// take returns the markers of n ports, or nil if one of them is not free.
func take(first, n int) (signs []net.Listener) {
	for port := first; port < first+n; port++ {
		sign, err := net.Listen("tcp", local(port-below))
		if err != nil {
			closeAll(signs)
			return nil
		}
		signs = append(signs, sign)
		l, err := net.Listen("tcp", local(port))
		if err != nil {
			closeAll(signs)
			return nil
		}
		l.Close()
	}
	return signs
}

func closeAll(listeners []net.Listener) {
	for _, l := range listeners {
		l.Close()
	}
}
