package anser_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/ansertest"
	"github.com/anser-rpc/anser/internal/wirepeer"
	"github.com/anser-rpc/anser/wire"
)

// script builds frames from bytes: each step takes three bytes, so that most inputs of the fuzzer
// are meaningful.
type script []byte

// next returns the next step: an operation, a small id, and a number.
func (s *script) next() (op, id, n byte, ok bool) {
	if len(*s) < 3 {
		return 0, 0, 0, false
	}
	op, id, n = (*s)[0], (*s)[1]%12, (*s)[2]
	*s = (*s)[3:]
	return op, id, n, true
}

// handshake performs the handshake, for a connection with checksums if one byte is left over at the
// end.
func (s script) handshake(p *wirepeer.Peer) (wire.Settings, error) {
	if len(s)%3 == 1 {
		return p.SealedHandshake()
	}
	return p.Handshake()
}

// scripted returns a frame that either side may send.
func scripted(op, id, n byte) []byte {
	stream := uint64(id)
	switch op % 8 {
	case 0, 1:
		return dataFrame(stream, 0, make([]byte, int(n)*300))
	case 2:
		return dataFrame(stream, wire.FlagMore, make([]byte, int(n)*300))
	case 3:
		return wire.AppendEnd(nil, stream, nil)
	case 4:
		return wire.AppendEnd(nil, stream, wire.AppendMetadata(nil, []wire.Pair{{Key: "k", Value: "v"}}))
	case 5:
		return wire.AppendWindow(nil, stream, uint32(n)*1000)
	case 6:
		f := dataFrame(stream, 0, make([]byte, int(n)))
		f[wire.HeaderSize+int(n)%2] = n
		return f
	}
	return wire.AppendWindow(nil, stream, uint32(n)<<24)
}

// FuzzServerStreams lets an arbitrary client use streams. The connection ends with a reason, or it
// continues; in the end no handler is running and all credit is returned.
func FuzzServerStreams(f *testing.F) {
	f.Add([]byte{8, 1, 0, 0, 1, 9, 2, 1, 100, 3, 1, 0, 9, 2, 1, 0, 2, 200, 10, 2, 0})
	f.Add([]byte{8, 1, 2, 0, 1, 250, 0, 1, 250, 0, 1, 250, 0, 1, 250})
	f.Add([]byte{11, 1, 0, 5, 1, 0, 7, 0, 127, 7, 0, 127})
	f.Add([]byte{8, 1, 0, 0, 1, 9, 2, 1, 100, 3, 1, 0, 9, 2, 1, 0, 2, 200, 10, 2, 0, 1})
	f.Add([]byte{8, 1, 2, 0, 1, 250, 0, 1, 250, 0, 1, 250, 0, 1, 250, 1})
	f.Add([]byte{8, 1, 3, 3, 1, 0, 3, 1, 0, 8, 2, 1, 6, 2, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			network := new(ansertest.Network)
			s := serveStreams(t, network.Listen("a:1"), map[string]streamHandler{
				"Chat.Talk": talk, "Chat.Sink": sink, "Chat.Idle": idle,
				"Chat.Quit": func(context.Context, *bytesStream) error { return nil },
			}, anser.MaxStreams(4), anser.MaxMessage(100_000), anser.FlowControlWindows(32<<10, 64<<10))
			nc, err := network.Dial(context.Background(), "tcp", "a:1")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			p := wirepeer.New(nc)
			if _, err := script(data).handshake(p); err != nil {
				t.Fatal(err)
			}
			for i, name := range []string{"Chat.Talk", "Chat.Sink", "Chat.Idle", "Chat.Quit", "Echo.Say"} {
				p.Send(wire.AppendMethod(nil, uint32(i+1), name))
			}
			out := make(chan wire.Type, 1)
			go func() {
				f, err := p.NextOf(wire.TypePong, wire.TypeClose)
				if err != nil {
					f.Type = 0
				}
				out <- f.Type
			}()
			last := uint64(0)
			for steps := script(data); ; {
				op, id, n, ok := steps.next()
				if !ok {
					break
				}
				var frame []byte
				switch op % 16 {
				case 8, 9:
					last++
					frame = openRequest(last, 1+uint32(n)%6, make([]byte, int(id)*10))
				case 10:
					frame = wire.AppendCancel(nil, uint64(id))
				case 11:
					last++
					frame = wirepeer.Request(last, 1+uint32(n)%6, nil)
				case 12:
					synctest.Wait()
				case 13:
					time.Sleep(time.Second)
				default:
					frame = scripted(op, id, n)
				}
				if p.Send(frame) != nil {
					break
				}
			}
			p.Send(wire.AppendPing(nil, wire.TypePing, 7))
			if typ := <-out; typ != wire.TypePong && typ != wire.TypeClose {
				t.Error("the connection ended without a reason")
			}
			p.Close()
			synctest.Wait()
			if st := s.Stats(); st.Streams != 0 || st.InFlight != 0 || st.Panics != 0 || s.Unread() != 0 {
				t.Errorf("%+v, %d bytes of credit", st, s.Unread())
			}
		})
	})
}

// FuzzClientStreams lets an arbitrary server answer the streams and calls of a client. All of them
// end, at the latest with the connection.
func FuzzClientStreams(f *testing.F) {
	f.Add([]byte{0, 1, 9, 2, 1, 100, 3, 1, 0, 9, 2, 1, 0, 2, 200, 8, 3, 0})
	f.Add([]byte{5, 0, 9, 7, 0, 127, 7, 0, 127, 0, 1, 0})
	f.Add([]byte{0, 1, 9, 2, 1, 100, 3, 1, 0, 9, 2, 1, 0, 2, 200, 8, 3, 0, 1})
	f.Add([]byte{3, 1, 0, 3, 2, 0, 8, 3, 0, 4, 4, 0, 0, 5, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			network := new(ansertest.Network)
			l := network.Listen("a:1")
			var wg sync.WaitGroup
			opened := make(chan struct{})
			wg.Go(func() {
				nc, err := l.Accept()
				if err != nil {
					return
				}
				defer nc.Close()
				p := wirepeer.New(nc)
				if _, err := script(data).handshake(p); err != nil {
					return
				}
				go func() {
					for {
						if _, err := p.Next(); err != nil {
							return
						}
					}
				}()
				<-opened
				for steps := script(data); ; {
					op, id, n, ok := steps.next()
					if !ok {
						break
					}
					var frame []byte
					switch op % 16 {
					case 8:
						frame = wirepeer.Fault(uint64(id), wire.ErrorBody{Code: wire.Aborted, Outcome: wire.Executed})
					case 9:
						frame = wirepeer.Reply(uint64(id), make([]byte, int(n)))
					case 10:
						synctest.Wait()
					case 11:
						frame = wire.AppendDrain(nil, 0, 1000)
					default:
						frame = scripted(op, id, n)
					}
					if p.Send(frame) != nil {
						return
					}
				}
				synctest.Wait()
			})
			c := dial(t, "a:1", anser.Dialer(network.Dial), anser.Conns(1), anser.MaxMessage(100_000), anser.FlowControlWindows(32<<10, 64<<10), anser.Timeout(time.Minute))
			for i := range 6 {
				st := open(t, context.Background(), c, "Chat.Talk", anser.Timeout(time.Minute))
				wg.Go(func() {
					if i < 4 {
						msg := make([]byte, 10_000)
						for range i {
							st.Send(&msg)
						}
						for range st.All() {
							continue
						}
					}
					st.Close()
				})
			}
			wg.Go(func() { call(context.Background(), c, "Echo.Say", "hello", anser.WithFailMode(anser.Failfast)) })
			synctest.Wait()
			close(opened)
			l.Close()
			wg.Wait()
			if n := c.Unread(); n != 0 {
				t.Errorf("%d bytes of credit are left", n)
			}
		})
	})
}
