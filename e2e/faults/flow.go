package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/anser-rpc/anser"
)

// feedBytes is the size of the messages that feed sends.
const feedBytes = 16 << 10

// feed sends messages until the stream ends.
func (s *server) feed(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
	s.running.n.Add(1)
	s.running.feeds.Add(1)
	defer s.running.n.Add(-1)
	msg := make([]byte, feedBytes)
	for {
		if err := st.Send(&msg); err != nil {
			return err
		}
	}
}

// pour receives all messages, and answers with the number of their bytes.
func (s *server) pour(_ context.Context, st *anser.Stream[[]byte, []byte]) error {
	n := uint64(0)
	for msg := []byte(nil); ; n += uint64(len(msg)) {
		err := st.RecvInto(&msg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	sum := binary.LittleEndian.AppendUint64(nil, n)
	return st.Send(&sum)
}

// flowOptions are of streams that a client has open at the same time.
type flowOptions struct {
	Streams int
	Bytes   int // of what pour sends
}

// flow are streams on which something is always on its way.
type flow struct {
	cancel  context.CancelFunc
	streams sync.WaitGroup
	bytes   atomic.Int64

	mu  sync.Mutex // guards err
	err error      // the first that does not come from the end
}

// flowed is what came of streams.
type flowed struct {
	Bytes int64
	Error string // of the first that failed; empty: none did
}

// flow opens the streams. Those of pour are opened again when they are done.
func (s *client) flow(kind string, o flowOptions) (*flow, error) {
	if s.streams != nil {
		return nil, errors.New("there are streams already")
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &flow{cancel: cancel}
	for range o.Streams {
		f.streams.Go(func() {
			var err error
			msg := make([]byte, o.Bytes)
			for err == nil && ctx.Err() == nil {
				if kind == "feed" {
					err = f.receive(ctx, s.Client)
				} else {
					err = f.send(ctx, s.Client, &msg)
				}
			}
			if ctx.Err() == nil {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.err = errors.Join(f.err, err)
			}
		})
	}
	return f, nil
}

// receive reads one stream until it fails.
func (f *flow) receive(ctx context.Context, c *anser.Client) error {
	st, err := feed.Open(ctx, c)
	if err != nil {
		return err
	}
	defer st.Close()
	for {
		msg, err := st.Recv()
		if err != nil {
			return err
		}
		f.bytes.Add(int64(len(*msg)))
	}
}

// send sends one message and compares what the server has received.
func (f *flow) send(ctx context.Context, c *anser.Client, msg *[]byte) error {
	st, err := pour.Open(ctx, c)
	if err != nil {
		return err
	}
	defer st.Close()
	n := len(*msg)
	if err := errors.Join(st.Send(msg), st.CloseSend()); err != nil {
		return err
	}
	sum, err := st.Recv()
	if err != nil {
		return err
	}
	if len(*sum) != 8 || binary.LittleEndian.Uint64(*sum) != uint64(n) {
		return fmt.Errorf("the server has received % x bytes of %d", *sum, n)
	}
	if _, err := st.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after the end of a stream: %w", err)
	}
	f.bytes.Add(int64(n))
	return nil
}

// stop ends the streams.
func (f *flow) stop() (flowed, error) {
	if f == nil {
		return flowed{}, errors.New("there are no streams")
	}
	f.cancel()
	f.streams.Wait()
	out := flowed{Bytes: f.bytes.Load()}
	if f.err != nil {
		out.Error = f.err.Error()
	}
	return out, nil
}
