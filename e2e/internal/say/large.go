package say

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/internal/benchpb"
)

// methodSwap takes bytes and returns as many others.
const methodSwap anser.Method[[]byte, []byte] = "Hello.Swap"

// largest is the size of the largest message of Swap.
const largest = 256 << 20

// ServeLarge is Serve with large messages, and with Swap next to Say.
func ServeLarge(commands io.Reader, answers io.Writer) error {
	reply := make([]byte, largest)
	touch(reply)
	s := anser.NewServer(anser.NoSignals(), anser.MaxMessage(largest))
	err := errors.Join(
		methodSay.Handle(s, func(_ context.Context, m *Message) (*Message, error) {
			benchpb.Answer(m)
			return m, nil
		}),
		methodSwap.Handle(s, func(_ context.Context, in *[]byte) (*[]byte, error) {
			out := reply[:len(*in)]
			return &out, nil
		}),
	)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	err = answerCommands(commands, answers, func() (Stat, error) { return stat(s, l.Addr().String()) })
	err = errors.Join(err, s.Close())
	if e := <-served; !errors.Is(e, anser.ErrServerClosed) {
		err = errors.Join(err, e)
	}
	return err
}

// touch writes to each page: memory that was never written to is not copied, but made up.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4 << 10 {
		b[i] = 1
	}
}

// ServeBareLarge is ServeLarge without RPC: bytes that arrive behind their number are answered in
// the same way.
func ServeBareLarge(commands io.Reader, answers io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	reply := make([]byte, largest)
	touch(reply)
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				for {
					in, err := receive(nc)
					if err == nil {
						err = send(nc, reply[:len(in)])
					}
					if err != nil {
						return
					}
				}
			}()
		}
	}()
	err = answerCommands(commands, answers, func() (Stat, error) {
		return Stat{Addr: l.Addr().String(), CPU: cpuTime().Seconds()}, nil
	})
	return errors.Join(err, l.Close())
}

// send writes bytes behind their number, without a copy.
func send(nc net.Conn, b []byte) error {
	bufs := net.Buffers{binary.LittleEndian.AppendUint64(nil, uint64(len(b))), b}
	_, err := bufs.WriteTo(nc)
	return err
}

// receive reads such bytes into new memory, as a message has.
func receive(nc net.Conn) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return nil, err
	}
	b := make([]byte, min(binary.LittleEndian.Uint64(head[:]), largest))
	_, err := io.ReadFull(nc, b)
	return b, err
}

// Swap swaps messages of o.Size, one at a time.
func Swap(o Options) (Result, error) {
	c, err := anser.Dial(o.Addr, anser.Conns(1), anser.MaxMessage(largest))
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	return swapInTurn(o, func(in []byte) error { return swap(c, in) })
}

func swap(c *anser.Client, in []byte) error {
	out, err := methodSwap.Call(context.Background(), c, &in, anser.Timeout(0))
	if err == nil && len(*out) != len(in) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// SwapBare does so over a bare connection.
func SwapBare(o Options) (Result, error) {
	nc, err := net.Dial("tcp", o.Addr)
	if err != nil {
		return Result{}, err
	}
	defer nc.Close()
	return swapInTurn(o, func(in []byte) error {
		if err := send(nc, in); err != nil {
			return err
		}
		_, err := receive(nc)
		return err
	})
}

// swapInTurn swaps messages of o.Size one after the other. The first one, which makes the
// connection and the heap grow, does not count.
func swapInTurn(o Options, swap func(in []byte) error) (Result, error) {
	in := make([]byte, o.Size)
	touch(in)
	o.Callers = 1
	return together(o, func(int) error { return swap(in) }, func(int) (took []time.Duration, err error) {
		for range o.Calls {
			began := time.Now()
			if err := swap(in); err != nil {
				return nil, err
			}
			took = append(took, time.Since(began))
		}
		return took, nil
	})
}

// SayBeside calls Say, while messages of o.Size are swapped on the same connection, with o.Own on
// another one, if it is not 0.
func SayBeside(o Options) (Result, error) {
	c, err := dialOne(o)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	large := c
	if o.Own {
		if large, err = dialOne(o); err != nil {
			return Result{}, err
		}
		defer large.Close()
	}
	var others sync.WaitGroup
	var failed error
	stop := make(chan struct{})
	return together(o, func(int) error {
		if err := errors.Join(warmUp(c), warmUp(large)); err != nil || o.Size == 0 {
			return err
		}
		in := make([]byte, o.Size)
		touch(in)
		others.Go(func() {
			for failed == nil {
				select {
				case <-stop:
					return
				default:
					failed = swap(large, in)
				}
			}
		})
		return nil
	}, func(int) ([]time.Duration, error) {
		took, err := callInTime(c, o.Calls)
		close(stop)
		others.Wait()
		return took, errors.Join(err, failed)
	})
}

// dialOne makes a client with one connection, also under load.
func dialOne(o Options) (*anser.Client, error) {
	var made atomic.Bool
	return anser.Dial(o.Addr, anser.Conns(1), anser.MaxMessage(largest), anser.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		if made.Swap(true) {
			return nil, errors.New("there is one already")
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}))
}

// sayEvery is the time from one call of SayBeside to the next, unless that takes longer. Calls
// without a pause would be the more numerous the less they wait.
const sayEvery = 2 * time.Millisecond

func callInTime(c *anser.Client, calls int) (took []time.Duration, err error) {
	message := benchpb.Filled()
	ticks := time.NewTicker(sayEvery)
	defer ticks.Stop()
	for range calls {
		<-ticks.C
		began := time.Now()
		if _, err := methodSay.Call(context.Background(), c, message); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}
