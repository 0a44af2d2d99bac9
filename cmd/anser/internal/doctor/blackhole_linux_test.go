package doctor_test

import (
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
)

// blackHole returns an address that drops the packets of new connections: the queue of its listener
// is full.
func blackHole(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", name.(*syscall.SockaddrInet4).Port)
	nc, err := net.Dial("tcp", address) // takes the one place
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return address
}

func TestBlackHole(t *testing.T) {
	t.Parallel()
	g := examine(t, hasty, blackHole(t))
	expect(t, g, "tcp", doctor.Fail, "has not answered within 3s", "a firewall drops the packets")
	if steps := g.Timings[0].Steps; len(steps) != 1 || steps[0].Name != "connect" || steps[0].Error == "" {
		t.Errorf("%+v", steps)
	}
}
