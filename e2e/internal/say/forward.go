package say

import (
	"context"
	"errors"
	"io"

	"github.com/anser-rpc/anser"
)

// ServeForward is Serve for a server that forwards all calls to the server at an address.
func ServeForward(to string, commands io.Reader, answers io.Writer) error {
	c, err := anser.Dial(to)
	if err != nil {
		return err
	}
	defer c.Close()
	s := anser.NewServer(anser.NoSignals(), anser.Forward(func(context.Context, *anser.ForwardCall) (*anser.Client, string, error) {
		return c, "", nil
	}))
	return serveOn(s, commands, answers)
}

// serveOn runs the server on a free port of the loopback.
func serveOn(s *anser.Server, commands io.Reader, answers io.Writer) error {
	l, err := s.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	err = answerCommands(commands, answers, func() (Stat, error) { return stat(s, l.Addr().String()) })
	if err := errors.Join(err, s.Close()); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, anser.ErrServerClosed) {
		return err
	}
	return nil
}
