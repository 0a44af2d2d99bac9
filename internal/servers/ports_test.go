package servers_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/servers"
)

// Nobody gets the ports of somebody else, however many it asks for, and afterwards they are free again.
func TestPorts(t *testing.T) {
	seen := make(map[int]bool)
	t.Run("taken", func(t *testing.T) {
		for _, n := range []int{3, 1, 5, 1, 3} {
			first := servers.Ports(t, n)
			for port := first; port < first+n; port++ {
				if seen[port] {
					t.Errorf("port %d was given away twice", port)
				}
				seen[port] = true
			}
		}
	})
	t.Run("free", func(t *testing.T) {
		// Another process may have taken some of them by now, and have given back others that come first.
		for range 100 {
			if seen[servers.Ports(t, 1)] {
				return
			}
		}
		t.Error("the ports of the test before are not free again")
	})
}
