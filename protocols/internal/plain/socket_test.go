package plain_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/protocols/internal/exchange"
	"github.com/anser-rpc/anser/protocols/internal/host"
	"github.com/anser-rpc/anser/protocols/internal/plain"
)

func TestMain(m *testing.M) { ansertest.Main(m) }

type word struct{ Text string }

// The socket of a client that does not answer pings ends, and that of one that answers them does
// not.
func TestSilentClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := anser.NewServer(anser.Logger(slog.New(slog.DiscardHandler)))
		defer s.Close()
		ended := make(chan error, 2)
		anser.StreamMethod[word, word]("Words.Wait").Handle(s, func(ctx context.Context, st *anser.Stream[word, word]) error {
			_, err := st.Recv()
			ended <- err
			if err != nil {
				return err
			}
			return st.Send(&word{"done"})
		})
		h := plain.New(exchange.NewDirectory(s))
		local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
		at, err := host.Open(s, "HTTP/1.1", anser.Peer{Addr: local, Local: local}, func() {}, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		defer at.End(nil)
		network := new(ansertest.Network)
		l := network.Listen("a:80")
		site := &http.Server{Handler: h, BaseContext: func(net.Listener) context.Context { return host.NewContext(context.Background(), at) }}
		var served sync.WaitGroup
		served.Go(func() { site.Serve(l) })
		defer served.Wait()
		defer site.Close()
		client := &http.Client{Transport: &http.Transport{DialContext: network.Dial}}
		defer client.CloseIdleConnections()
		there, _, err := websocket.Dial(t.Context(), "ws://a:80/Words.Wait", &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		defer there.CloseNow()
		answers := make(chan string, 1)
		go func() { // reading answers the pings
			_, b, err := there.Read(context.Background())
			if err != nil {
				b = []byte(err.Error())
			}
			answers <- string(b)
		}()
		silent, err := network.Dial(t.Context(), "tcp", "a:80")
		if err != nil {
			t.Fatal(err)
		}
		defer silent.Close()
		io.WriteString(silent, "GET /Words.Wait HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
		time.Sleep(10 * h.PingEvery)
		synctest.Wait()
		select {
		case got := <-answers:
			t.Fatalf("a client that answers pings: %s", got)
		default:
		}
		select {
		case err := <-ended:
			if err == nil {
				t.Error("the handler of a silent client gets a message")
			}
		default:
			t.Fatal("the socket of a silent client is open after ten pings")
		}
		if err := there.Write(t.Context(), websocket.MessageText, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
		if got := <-answers; got != `{"Text":"done"}` {
			t.Errorf("a client that answers pings: %s", got)
		}
	})
}
