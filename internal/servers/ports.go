package servers

import (
	"fmt"
	"net"
	"testing"
)

// The ports that Ports gives away. Linux takes those of connections from 32768 on, so a server that is started again
// finds its port free. As many below each of them is the port that is kept open as the sign that it was given away.
const (
	firstPort = 24_000
	endPort   = 32_000
	below     = 8_000
)

// Ports returns the first of n free ports in a row on 127.0.0.1, for servers that cannot say at which port they serve,
// or that are started again. Until the test ends no other test gets them, in no process.
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

// take returns the signs of n ports, or nil where one of them is not free.
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
