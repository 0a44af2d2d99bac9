package servers_test

import (
	"testing"

	"github.com/anser-rpc/anser/internal/servers"
)

// Nobody gets the ports of somebody else, and afterwards they are free again.
func TestPorts(t *testing.T) {
	seen := make(map[int]bool)
	t.Run("taken", func(t *testing.T) {
		for range 5 {
			first := servers.Ports(t, 3)
			for port := first; port < first+3; port++ {
				if seen[port] {
					t.Errorf("port %d was given away twice", port)
				}
				seen[port] = true
			}
		}
	})
	t.Run("free", func(t *testing.T) {
		if first := servers.Ports(t, 3); !seen[first] {
			t.Errorf("the ports from %d on: those of the test before are not free again", first)
		}
	})
}
