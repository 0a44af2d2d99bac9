package mdns_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

// inside is the environment variable that marks the process inside the network namespace.
const inside = "ANSER_MDNS_INSIDE"

// TestMain runs the tests in a network namespace, in which the loopback supports multicast and no
// other host is.
func TestMain(m *testing.M) {
	if announcing := os.Getenv(childEnv); announcing != "" {
		announceAsChild(announcing)
		return
	}
	if flag.Parse(); flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run()) // the target needs no network, and its workers talk to this process
	}
	if os.Getenv(inside) == "" {
		os.Exit(runInside())
	}
	if err := configure(); err != nil {
		fmt.Println("these tests need a network namespace with multicast on its loopback; run them as root, with iproute2 installed:", err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// runInside runs this program again in a new network namespace, which ends with the program.
func runInside() int {
	runtime.LockOSThread() // the child must die with this process, which for Linux means with this thread
	self := exec.Command(os.Args[0], os.Args[1:]...)
	self.Env = append(os.Environ(), inside+"=1")
	self.Stdin, self.Stdout, self.Stderr = os.Stdin, os.Stdout, os.Stderr
	self.SysProcAttr = ownNetwork()
	if self.SysProcAttr == nil {
		fmt.Println("these tests need network namespaces: run them on Linux")
		return 1
	}
	err := self.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Println("these tests need a network namespace: run them as root:", err)
		return 1
	}
	return 0
}

func configure() error {
	return errors.Join(ip("link", "set", "lo", "up", "multicast", "on"), ip("route", "add", "224.0.0.0/4", "dev", "lo"))
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, out)
	}
	return nil
}
