package zookeeper_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/anser-rpc/anser/internal/servers"
	"github.com/anser-rpc/anser/registry/internal/regtest"
	"github.com/anser-rpc/anser/registry/zookeeper"
)

// classes is the path of the server, which scripts/servers zookeeper installs.
const classes = "/usr/share/java/zookeeper.jar"

// shared is the server of most tests, each of which uses its own prefix. Tests run one after the
// other, so a test may kill it.
var shared *server

func TestMain(m *testing.M) {
	servers.Main(m, func(t testing.TB) {
		shared = newServer(t)
		shared.start(t)
	})
}

// server is a ZooKeeper process.
type server struct {
	servers.Process
	dir      string
	endpoint string
}

// newServer returns a server that runs until the end of the test.
func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{dir: t.TempDir(), endpoint: servers.Address(t)}
	t.Cleanup(s.Stop)
	return s
}

func (s *server) start(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(classes); err != nil {
		t.Fatalf("%v: run scripts/servers zookeeper, which gets the server that these tests need", err)
	}
	_, port, _ := net.SplitHostPort(s.endpoint)
	file := filepath.Join(s.dir, "zoo.cfg")
	// Short ticks allow short sessions.
	text := fmt.Sprintf("tickTime=200\nminSessionTimeout=400\nmaxSessionTimeout=60000\nmaxClientCnxns=0\n"+
		"dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n4lw.commands.whitelist=*\n",
		filepath.Join(s.dir, "data"), port)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("java", "-Xmx128m", "-Dzookeeper.forceSync=no", "-cp", classes,
		"org.apache.zookeeper.server.quorum.QuorumPeerMain", file)
	cmd.Dir = s.dir
	s.Start(t, cmd, func() error {
		text, err := s.ask("srvr") // it accepts connections before it serves
		if err == nil && !strings.Contains(text, "Mode: standalone") {
			err = fmt.Errorf("it says %q", text)
		}
		return err
	})
}

// ask sends one of the four-letter commands, which need no authentication.
func (s *server) ask(word string) (string, error) {
	conn, err := net.DialTimeout("tcp", s.endpoint, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// ownerLine matches a session with ephemeral nodes in the server's answer to "dump".
var ownerLine = regexp.MustCompile(`(?m)^(0x[0-9a-f]+):$`)

// forgetLeases ends all sessions that have announced something, as the server does when they
// expire.
func (s *server) forgetLeases(t *testing.T) {
	t.Helper()
	old := s.owners(t)
	regtest.Eventually(t, regtest.Patience, "the end of the sessions", func() bool {
		for _, id := range s.owners(t) {
			if slices.Contains(old, id) {
				if err := s.endSession(id); err != nil { // the server closes the connections on both sides
					t.Logf("end session %#x: %v", id, err)
				}
			}
		}
		return !slices.ContainsFunc(s.owners(t), func(id uint64) bool { return slices.Contains(old, id) })
	})
}

// owners returns the sessions that have announced something.
func (s *server) owners(t *testing.T) (ids []uint64) {
	t.Helper()
	var text string
	regtest.Eventually(t, regtest.Patience, "the sessions of the server", func() (ok bool) {
		var err error
		text, err = s.ask("dump")
		return err == nil
	})
	_, ephemerals, _ := strings.Cut(text, "Sessions with Ephemerals")
	for _, m := range ownerLine.FindAllStringSubmatch(ephemerals, -1) {
		id, err := strconv.ParseUint(m[1], 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// endSession joins a session from another connection, and closes it.
func (s *server) endSession(id uint64) error {
	conn, err := net.DialTimeout("tcp", s.endpoint, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	var join []byte
	join = binary.BigEndian.AppendUint32(join, 0)   // version of the protocol
	join = binary.BigEndian.AppendUint64(join, 0)   // last transaction seen
	join = binary.BigEndian.AppendUint32(join, 400) // timeout in ms
	join = binary.BigEndian.AppendUint64(join, id)
	join = binary.BigEndian.AppendUint32(join, 16)
	join = append(join, sessionPassword(id)...)
	leave := binary.BigEndian.AppendUint32(nil, 1)
	leave = binary.BigEndian.AppendUint32(leave, 0xffff_fff5) // closeSession, -11
	// Both packets at once: the owner reconnects as soon as it has lost the session, and takes it
	// over again.
	if _, err := conn.Write(append(packet(join), packet(leave)...)); err != nil {
		return err
	}
	for range 2 {
		if _, err = readPacket(conn); err != nil {
			return err
		}
	}
	return nil
}

// sessionPassword computes the password of a session as the server does: with java.util.Random and
// a constant.
func sessionPassword(id uint64) []byte {
	const multiplier, mask = 0x5DEECE66D, 1<<48 - 1
	seed := (id ^ 0xB3415C00 ^ multiplier) & mask
	var password []byte
	for range 4 {
		seed = (seed*multiplier + 0xB) & mask
		password = binary.LittleEndian.AppendUint32(password, uint32(seed>>16))
	}
	return password
}

func packet(data []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...)
}

func readPacket(conn net.Conn) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return nil, err
	}
	data := make([]byte, binary.BigEndian.Uint32(size[:]))
	_, err := io.ReadFull(conn, data)
	return data, err
}

// use returns a connection of the library for the test.
func (s *server) use(t *testing.T) *zk.Conn {
	t.Helper()
	c, events, err := zk.Connect([]string{s.endpoint}, 5*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		for range events {
		}
	})
	return c
}

// dial returns a registry on the server that is closed at the end of the test.
func (s *server) dial(t *testing.T, opts ...zookeeper.Option) *zookeeper.Registry {
	t.Helper()
	return dial(t, s.endpoint, opts...)
}

func dial(t *testing.T, endpoint string, opts ...zookeeper.Option) *zookeeper.Registry {
	t.Helper()
	r, err := zookeeper.Dial([]string{endpoint}, append([]zookeeper.Option{zookeeper.TTL(testTTL)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

var prefixes atomic.Int64

// freshPrefix returns a prefix that no other test uses.
func freshPrefix() string { return fmt.Sprintf("/test%d", prefixes.Add(1)) }

// forwarder copies bytes between clients and the server, and can be made to stop.
type forwarder struct {
	listener net.Listener
	to       string

	mu    sync.Mutex // guards the fields below
	cut   bool       // bytes are dropped silently
	conns []net.Conn
	wg    sync.WaitGroup
}

func forward(t *testing.T, l net.Listener, to string) *forwarder {
	f := &forwarder{listener: l, to: to}
	f.wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			f.wg.Go(func() { f.serve(in) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		f.reset()
		f.wg.Wait()
	})
	return f
}

func (f *forwarder) serve(in net.Conn) {
	out, err := net.Dial("tcp", f.to)
	if err != nil {
		in.Close()
		return
	}
	f.mu.Lock()
	f.conns = append(f.conns, in, out)
	f.mu.Unlock()
	var both sync.WaitGroup
	pump := func(to, from net.Conn) {
		buf := make([]byte, 32<<10)
		for {
			n, err := from.Read(buf)
			if err != nil {
				break
			}
			if f.isCut() {
				continue
			}
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		in.Close()
		out.Close()
	}
	both.Go(func() { pump(in, out) })
	both.Go(func() { pump(out, in) })
	both.Wait()
}

func (f *forwarder) isCut() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cut
}

func (f *forwarder) setCut(cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = cut
}

// reset closes all connections.
func (f *forwarder) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}
