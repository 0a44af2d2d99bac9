package doctor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/demo/arith"
	"github.com/anser-rpc/anser/cmd/anser/internal/doctor"
)

// narrowVariable makes the test binary examine a server over an interface with small packets.
const narrowVariable = "ANSER_DOCTOR_TEST_NARROW"

// The kernel knows of an interface that its packets are small. The examination is in a process with
// a network of its own, whose loopback interface is made so.
func TestSmallPackets(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), narrowVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 { // a user of its own may change the network
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("a process with a network of its own, which the kernel may forbid: %v\n%s", err, out)
	}
	var g doctor.Group
	if err := json.Unmarshal(out, &g); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	expect(t, &g, "mtu", doctor.Warn, "packets to 127.0.0.1:", "have at most 1000 bytes", "raise the MTU", "QUIC")
	expect(t, &g, "description", doctor.Pass, "describes 2 methods")
	without(t, &g, doctor.Fail)
}

// narrow prints the findings about a server behind an interface with packets of that size.
func narrow(bytes uint32) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	r, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	r.SetUint32(bytes)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFMTU, r); err != nil {
		return fmt.Errorf("set the MTU: %w", err)
	}
	r.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("start the interface: %w", err)
	}
	s := anser.NewServer(silent, anser.NoSignals())
	if err := arith.Register(s); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() { s.Close(); <-served }()
	groups, err := patient.Target(context.Background(), l.Addr().String())
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(groups[0])
}

// runsAlone does what a process that a test has started is for, and reports whether this is one.
func runsAlone() bool {
	if os.Getenv(narrowVariable) == "" {
		return false
	}
	if err := narrow(1000); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}
