package servers_test

import (
	"testing"
	"time"

	"github.com/anser-rpc/anser/internal/servers"
)

// A port is never given to two tests, however many they ask for, and afterwards it is free again.
// Tests of other packages, which run at the same time, may get some of them first, and free lower
// ones.
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
		for late := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			for port := range seen {
				if servers.Free(port) {
					return
				}
			}
			if time.Now().After(late) {
				t.Fatal("none of the ports of the test before is free again")
			}
		}
	})
}
