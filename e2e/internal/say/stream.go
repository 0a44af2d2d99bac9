package say

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/anser-rpc/anser"
)

// The streams of the server. Sink receives as fast as it can, Drip a message now and then.
const (
	methodSink anser.StreamMethod[[]byte, []byte] = "Hello.Sink"
	methodDrip anser.StreamMethod[[]byte, []byte] = "Hello.Drip"
)

const (
	dripEvery = 10 * time.Millisecond
	dripSize  = 16 << 10
	pourSize  = 64 << 10
)

func sink(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
	var msg []byte
	for {
		if err := st.RecvInto(&msg); err != nil {
			return ended(err)
		}
	}
}

func drip(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
	for _, err := range st.All() {
		if err != nil {
			return err
		}
		time.Sleep(dripEvery)
	}
	return nil
}

// ended takes the good end of a stream for no error.
func ended(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// Stream sends o.Calls messages of o.Size bytes one way on one stream and returns when the server
// has received all of them. There are no percentiles.
func Stream(o Options) (Result, error) {
	c, err := anser.Dial(o.Addr)
	if err != nil {
		return Result{}, err
	}
	defer c.Close()
	st, err := methodSink.Open(context.Background(), c)
	if err != nil {
		return Result{}, err
	}
	defer st.Close()
	msg := make([]byte, o.Size)
	return timed(o.Calls, func() error {
		for range o.Calls {
			if err := st.Send(&msg); err != nil {
				return err
			}
		}
		if err := st.CloseSend(); err != nil {
			return err
		}
		_, err := st.Recv()
		return ended(err)
	})
}

// Pour sends the same bytes over a bare connection to Drain, in large writes.
func Pour(o Options) (Result, error) {
	nc, err := net.Dial("tcp", o.Addr)
	if err != nil {
		return Result{}, err
	}
	defer nc.Close()
	buf := make([]byte, pourSize)
	return timed(o.Calls, func() error {
		for left := o.Calls * o.Size; left > 0; {
			n, err := nc.Write(buf[:min(left, len(buf))])
			if err != nil {
				return err
			}
			left -= n
		}
		if err := nc.(*net.TCPConn).CloseWrite(); err != nil {
			return err
		}
		_, err := nc.Read(buf) // Drain closes when it has read all
		return ended(err)
	})
}

// Drain accepts connections on l and reads each to its end, until l is closed.
func Drain(l net.Listener) error {
	for {
		nc, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer nc.Close()
			buf := make([]byte, pourSize)
			for {
				if _, err := nc.Read(buf); err != nil {
					return
				}
			}
		}()
	}
}

// timed measures how long f takes for n messages.
func timed(n int, f func() error) (Result, error) {
	began, cpu := time.Now(), cpuTime()
	if err := f(); err != nil {
		return Result{}, err
	}
	elapsed, cpu := time.Since(began), cpuTime()-cpu
	return Result{
		Calls: n, Seconds: elapsed.Seconds(), CallsPerS: float64(n) / elapsed.Seconds(), ClientCPU: cpu.Seconds() * 1e6 / float64(n),
	}, nil
}

// besideSlow opens a stream with a slow reader and sends on it as fast as possible, until stop is
// called.
func besideSlow(c *anser.Client) (stop func() error, err error) {
	st, err := methodDrip.Open(context.Background(), c)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() {
		msg := make([]byte, dripSize)
		for {
			if err := st.Send(&msg); err != nil {
				done <- err
				return
			}
		}
	}()
	return func() error {
		st.Close()
		if err := <-done; anser.CodeOf(err) != anser.Canceled {
			return fmt.Errorf("the slow stream ended by itself: %w", err)
		}
		return nil
	}, nil
}
