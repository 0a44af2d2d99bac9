package badinput_test

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/testusage"
)

// Row 113: connections that stop in the middle of a handshake, before TLS and before
// authentication, with the default limits of a server. They are closed after HandshakeTimeout at
// the latest; existing connections are as fast as those of a server without such peers, and good
// newcomers are served.
func TestStalledHandshakes(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for handshakes to time out")
	}
	for name, row := range map[string]struct {
		begin   []byte
		stalled int
	}{
		"row113":  {nil, 10_000},
		"row113b": {[]byte("\xA5NSR\x01"), 1_000},
		"row113c": {[]byte{0x16, 3, 1}, 1_000},
	} {
		for _, over := range transports {
			t.Run(name+"/"+over.name, func(t *testing.T) {
				held.note(t, 113)
				standard := anser.HandshakeTimeout(handshakeTimeout)
				g, quiet := guardedTarget(t, over, standard), guardedTarget(t, over, standard)
				before := g.Stats()
				crowd := stallAll(t, g.addr, row.begin, row.stalled)
				holdRatio(t, func() time.Duration { return g.window(t, func() {}) },
					func() time.Duration { return quiet.window(t, func() {}) })
				newcomer := g.client(t)
				defer newcomer.Close()
				in := []byte("hello")
				if _, err := anser.Call[[]byte](t.Context(), newcomer, "Good.Echo", &in); err != nil {
					t.Errorf("a good newcomer: %v", err)
				}
				crowd.Wait()
				if !testusage.Soon(func() bool { return g.Stats().HandshakeFailed == before.HandshakeFailed+int64(row.stalled) }) {
					t.Errorf("%d handshakes failed, want %d more than %d", g.Stats().HandshakeFailed, row.stalled, before.HandshakeFailed)
				}
				g.others(t)
			})
		}
	}
}

// Row 113 for servers of netrpc, with and without TLS, whose clients must log in.
func TestStalledNetRPCHandshakes(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for handshakes to time out")
	}
	for name, row := range map[string]struct {
		begin   []byte
		stalled int
	}{
		"row113d": {nil, 10_000},
		"row113e": {[]byte{0x16, 3, 1}, 1_000}, // to a server without TLS, the beginning of a message of 22 bytes
	} {
		for _, over := range transports {
			t.Run(name+"/"+over.name, func(t *testing.T) {
				held.note(t, 113)
				login := oldRow{auth: true, impatient: true}
				g, quiet := newOldTarget(t, over, login), newOldTarget(t, over, login)
				crowd := stallAll(t, g.addr, row.begin, row.stalled)
				holdRatio(t, func() time.Duration { return g.window(t) }, func() time.Duration { return quiet.window(t) })
				newcomer := g.client(t)
				defer newcomer.Close()
				var sum int
				if err := newcomer.Call("Good.Add", &OldArgs{1, 2}, &sum); err != nil || sum != 3 {
					t.Errorf("a good newcomer: %d, %v", sum, err)
				}
				crowd.Wait()
				if !testusage.Soon(func() bool { return g.Stats().Conns == neighbours+1 }) {
					t.Errorf("%d connections are left, want %d", g.Stats().Conns, neighbours+1)
				}
				g.others(t)
			})
		}
	}
}

// handshakeTimeout is the default of servers.
const handshakeTimeout = 5 * time.Second

// stallAll opens connections that send begin and no more, and returns when all are open. The
// returned function waits until the server has closed them, which it does in time.
func stallAll(t *testing.T, addr net.Addr, begin []byte, n int) *sync.WaitGroup {
	t.Helper()
	var opened, closed sync.WaitGroup
	dialing := make(chan struct{}, 64)
	for range n {
		opened.Add(1)
		dialing <- struct{}{}
		closed.Go(func() {
			nc, err := net.Dial(addr.Network(), addr.String())
			for errors.Is(err, syscall.EAGAIN) { // the listener's queue is full: dialling a Unix socket does not wait
				time.Sleep(time.Millisecond)
				nc, err = net.Dial(addr.Network(), addr.String())
			}
			opened.Done()
			<-dialing
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			nc.Write(begin)
			b := make([]byte, 512)
			for err == nil {
				// A delay is tolerated, also that of a busy server; a connection that stays open is
				// not.
				nc.SetReadDeadline(time.Now().Add(time.Minute))
				_, err = nc.Read(b)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("a connection that stalls is still open")
			}
		})
	}
	opened.Wait()
	return &closed
}
