//go:build unix

package systemd_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/transport/systemd"
)

// asService makes the test binary behave like a service started by systemd.
const asService = "ANSER_TEST_AS_SERVICE"

func TestMain(m *testing.M) {
	if os.Getenv(asService) != "" {
		service()
		return
	}
	ansertest.Main(m)
}

// service serves on the sockets until its standard input ends.
func service() {
	os.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid())) // systemd sets it between fork and exec
	listeners, err := systemd.Listeners()
	if err != nil {
		fmt.Println("error:", err)
		return
	}
	again, err := systemd.Listeners()
	var names []string
	for _, l := range listeners {
		names = append(names, l.Name)
	}
	fmt.Println(len(listeners), strings.Join(names, ","), len(again), err, os.Getenv("LISTEN_FDS")+os.Getenv("LISTEN_PID")+os.Getenv("LISTEN_FDNAMES") == "")
	s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
	anser.Handle(s, "Echo.Say", func(_ context.Context, in *[]byte) (*[]byte, error) { return in, nil })
	for _, l := range listeners {
		go s.Serve(l)
	}
	systemd.Notify(systemd.Ready + "\nSTATUS=serving")
	os.Stdin.Read(make([]byte, 1))
	systemd.Notify(systemd.Stopping)
	s.Close()
}

// start starts the service with the sockets, as systemd does, and returns its first line of
// output.
func start(t *testing.T, env []string, sockets ...*os.File) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), append(env, asService+"=1", "GORACE=atexit_sleep_ms=0", "LISTEN_FDS="+strconv.Itoa(len(sockets)), "LISTEN_FDNAMES=rpc.socket:local")...)
	c.ExtraFiles = sockets
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	b := make([]byte, 1000)
	n, _ := out.Read(b)
	return strings.TrimSpace(string(b[:n]))
}

func TestSocketActivation(t *testing.T) {
	dir, err := os.MkdirTemp("", "sd") // the path of t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	unix, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "s"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close()
	notify, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "n"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	a, err := tcp.File()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := unix.File()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	// A client that calls before the service runs waits in the queue of the socket.
	c, err := anser.Dial(tcp.Addr().String(), anser.Logger(slog.New(slog.DiscardHandler)), anser.Timeout(time.Minute), anser.HandshakeTimeout(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	early := make(chan error, 1)
	go func() { early <- c.Call(context.Background(), "Echo.Say", new([]byte("early")), new([]byte)) }()
	if said := start(t, []string{"NOTIFY_SOCKET=" + filepath.Join(dir, "n")}, a, b); said != "2 rpc.socket,local 0 <nil> true" {
		t.Errorf("the service says %q", said)
	}
	msg := make([]byte, 100)
	if n, err := notify.Read(msg); err != nil || string(msg[:n]) != "READY=1\nSTATUS=serving" {
		t.Errorf("systemd was told %q, %v", msg[:n], err)
	}
	if err := <-early; err != nil {
		t.Error(err)
	}
	for _, target := range []string{tcp.Addr().String(), "unix://" + filepath.Join(dir, "s")} {
		c, err := anser.Dial(target, anser.Logger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Call(t.Context(), "Echo.Say", new([]byte("x")), new([]byte)); err != nil {
			t.Errorf("%s: %v", target, err)
		}
		c.Close()
	}
}

func TestNoListener(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if said := start(t, nil, f); !strings.Contains(said, `error: systemd: socket 0 ("rpc.socket")`) || !strings.Contains(said, "ListenStream=") {
		t.Error(said)
	}
}

// Variables meant for another process are ignored, but removed.
func TestNotActivated(t *testing.T) {
	t.Setenv("LISTEN_FDS", "1")
	t.Setenv("LISTEN_PID", "1")
	if l, err := systemd.Listeners(); len(l) != 0 || err != nil || os.Getenv("LISTEN_FDS") != "" {
		t.Error(l, err)
	}
	for count, want := range map[string]bool{"": true, "0": true, "-1": false, "many": false, "99999999": false} {
		t.Setenv("LISTEN_FDS", count)
		t.Setenv("LISTEN_PID", strconv.Itoa(os.Getpid()))
		if l, err := systemd.Listeners(); len(l) != 0 || (err == nil) != want {
			t.Errorf("%q: %v, %v", count, l, err)
		}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := systemd.Notify(systemd.Ready); err != nil {
		t.Error(err)
	}
	t.Setenv("NOTIFY_SOCKET", "/nowhere/at/all")
	if err := systemd.Notify(systemd.Ready); err == nil {
		t.Error("nobody listens, and it is not an error")
	}
}
