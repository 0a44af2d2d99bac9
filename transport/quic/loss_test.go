package quic_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/transport/quic"
	"github.com/anser-rpc/anser/transport/transporttest"
)

// relay forwards datagrams between one client and a server with a delay, and drops those to the
// server for which lose is true.
type relay struct {
	delay  time.Duration
	lose   atomic.Pointer[func(size int) bool]
	lost   atomic.Int64 // not counting probes
	front  *net.UDPConn // the client sends to it
	back   *net.UDPConn // connected to the server
	client atomic.Pointer[net.UDPAddr]
	wg     sync.WaitGroup
}

// probe is larger than the packets with data here: the packets of path MTU discovery are larger
// than the 1280 bytes with which QUIC begins.
const probe = 1200

func newRelay(t *testing.T, server string, delay time.Duration) *relay {
	t.Helper()
	at, err := net.ResolveUDPAddr("udp", server)
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{delay: delay}
	if r.front, err = net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	if r.back, err = net.DialUDP("udp", nil, at); err != nil {
		t.Fatal(err)
	}
	r.wg.Go(func() { r.pass(r.toServer) })
	r.wg.Go(func() { r.pass(r.toClient) })
	t.Cleanup(func() {
		r.front.Close()
		r.back.Close()
		r.wg.Wait()
	})
	return r
}

func (r *relay) pass(one func(b []byte) error) {
	for b := make([]byte, 64<<10); ; {
		if one(b) != nil {
			return
		}
	}
}

func (r *relay) toServer(b []byte) error {
	n, from, err := r.front.ReadFromUDP(b)
	if err != nil {
		return err
	}
	r.client.Store(from)
	if lose := r.lose.Load(); lose != nil && (*lose)(n) {
		if n < probe {
			r.lost.Add(1)
		}
		return nil
	}
	r.later(func(b []byte) { r.back.Write(b) }, b[:n])
	return nil
}

func (r *relay) toClient(b []byte) error {
	n, err := r.back.Read(b)
	if err != nil {
		return err
	}
	r.later(func(b []byte) { r.front.WriteToUDP(b, r.client.Load()) }, b[:n])
	return nil
}

func (r *relay) later(send func([]byte), b []byte) {
	b = append([]byte(nil), b...)
	r.wg.Go(func() {
		time.Sleep(r.delay)
		send(b)
	})
}

// order records the order in which handlers ran.
type order struct {
	mu   sync.Mutex // guards list
	list []byte
}

func (o *order) note(b byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = append(o.list, b)
}

// await waits until n handlers ran, or long enough to conclude that they will not.
func (o *order) await(n int) {
	for end := time.Now().Add(10 * time.Second); o.size() < n && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}

func (o *order) size() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.list)
}

func (o *order) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := string(o.list)
	o.list = nil
	return s
}

// lossy makes a call A whose packets are lost for a while and then calls B, over one QUIC
// connection with that number of streams, and returns the order in which their handlers ran. Each
// datagram takes delay.
func lossy(t *testing.T, streams int, delay time.Duration) string {
	a := transporttest.NewAuthority(t)
	l, err := quic.Listen("127.0.0.1:0", a.Server(t, false))
	if err != nil {
		t.Fatal(err)
	}
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	server := anser.NewServer(silent)
	var ran order
	anser.Handle(server, "Test.Note", func(_ context.Context, in *[]byte) (*[]byte, error) {
		if len(*in) > 0 {
			ran.note((*in)[0])
		}
		return new([]byte), nil
	}, anser.Inline())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-ended
		l.Wait()
	}()
	r := newRelay(t, l.Addr().String(), delay)
	// The clients share a QUIC connection, and each has a stream of its own.
	config, below := a.Client(t), quic.Transport()
	config.ServerName = "127.0.0.1"
	var clients []*anser.Client
	for range streams {
		c, err := anser.Dial("tcp://"+r.front.LocalAddr().String(), anser.Conns(1), anser.Timeout(time.Minute), silent,
			anser.Dialer(func(ctx context.Context, _, address string) (net.Conn, error) {
				return below.Dial(ctx, address, config)
			}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Call(t.Context(), "Test.Note", new([]byte), new([]byte)); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	lose := func(size int) bool { return size > 900 }
	r.lose.Store(&lose)
	var wg sync.WaitGroup
	call := func(c *anser.Client, in []byte) {
		wg.Go(func() {
			if err := c.Call(t.Context(), "Test.Note", &in, new([]byte)); err != nil {
				t.Error(err)
			}
		})
	}
	call(clients[0], append([]byte("A"), make([]byte, 1000)...))
	for end := time.Now().Add(time.Minute); r.lost.Load() == 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was lost")
		}
	}
	// These are sent before the client can know of the loss, after a round trip.
	for range 8 {
		call(clients[streams-1], []byte("B"))
	}
	if streams > 1 {
		ran.await(8)
	} else {
		time.Sleep(8 * delay) // enough time for calls to overtake A
	}
	r.lose.Store(nil)
	wg.Wait()
	return ran.take()
}

// shortest is the delay of a datagram at first.
const shortest = 50 * time.Millisecond

// While the packets of one stream are lost, calls on another continue. On the same stream they
// wait.
func TestNoHeadOfLineBlocking(t *testing.T) {
	if got := lossy(t, 1, shortest); got != "ABBBBBBBB" {
		t.Errorf("in one stream the handlers ran in the order %s: nothing overtakes there, so the test shows nothing", got)
	}
	// If the machine pauses for a round trip, lost packets may be retransmitted together with the
	// rest: the next one takes longer.
	var got string
	for i := range 10 {
		if got = lossy(t, 2, shortest<<min(i, 4)); got == "BBBBBBBBA" {
			return
		}
		t.Logf("the handlers ran in the order %s", got)
	}
	t.Errorf("in streams of their own the handlers ran in the order %s: want BBBBBBBBA", got)
}

// Streams of one client never wait for each other's packets: each is a QUIC stream.
func TestNoHeadOfLineBlockingOfStreams(t *testing.T) {
	var got string
	for i := range 10 { // as above
		if got = lossyStreams(t, shortest<<min(i, 4)); got == "BBBBBBBBA" {
			return
		}
		t.Logf("the messages arrived in the order %s", got)
	}
	t.Errorf("the messages arrived in the order %s: want BBBBBBBBA", got)
}

// lossyStreams sends a message A on a stream, whose packets are lost for a while, and then
// messages B on another stream of the same client. It returns the order in which they arrived. Each
// datagram takes delay.
func lossyStreams(t *testing.T, delay time.Duration) string {
	a := transporttest.NewAuthority(t)
	l, err := quic.Listen("127.0.0.1:0", a.Server(t, false))
	if err != nil {
		t.Fatal(err)
	}
	silent := anser.Logger(slog.New(slog.DiscardHandler))
	server := anser.NewServer(silent)
	var ran order
	ready := make(chan struct{}, 2)
	anser.HandleStream(server, "Test.Note", func(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
		ready <- struct{}{}
		for in, err := range st.All() {
			if err != nil {
				return err
			}
			ran.note((*in)[0])
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	defer func() {
		server.Close()
		<-ended
		l.Wait()
	}()
	r := newRelay(t, l.Addr().String(), delay)
	config := a.Client(t)
	config.ServerName = "127.0.0.1"
	c, err := anser.Dial("quic://"+r.front.LocalAddr().String(), quic.Transport(), anser.TLS(config), anser.Timeout(time.Minute), silent)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var streams []*anser.Stream[[]byte, []byte]
	for range 2 {
		st, err := anser.Open[[]byte, []byte](t.Context(), c, "Test.Note")
		if err != nil {
			t.Fatal(err)
		}
		<-ready
		streams = append(streams, st)
	}
	lose := func(size int) bool { return size > 900 }
	r.lose.Store(&lose)
	if err := streams[0].Send(new(append([]byte("A"), make([]byte, 1000)...))); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); r.lost.Load() == 0; time.Sleep(100 * time.Microsecond) {
		if time.Now().After(end) {
			t.Fatal("nothing was lost")
		}
	}
	for range 8 {
		if err := streams[1].Send(new([]byte("B"))); err != nil {
			t.Fatal(err)
		}
	}
	ran.await(8)
	r.lose.Store(nil)
	for _, st := range streams {
		st.CloseSend()
		if _, err := st.Recv(); err != io.EOF {
			t.Error(err)
		}
	}
	return ran.take()
}
