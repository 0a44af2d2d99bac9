package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/child"
	"github.com/anser-rpc/anser/cmd/anser/internal/load"
)

// serving is the report of a child that serves.
type serving struct {
	Address string `json:"address"`
	PID     int    `json:"pid"`
}

func newBenchServe(s streams) *cobra.Command {
	var listen string
	var asJSON, asChild, public bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the methods that benchmarks call",
		Long: strings.TrimSpace(`
Serve the methods that benchmarks call, until interrupted:

  Hello.Say        the protobuf message of 581 bytes, decoded, changed in two fields, encoded
  Echo.Bytes       bytes, echoed
  MathService.Add  two numbers in protobuf`),
		Example: strings.Trim(`
  anser bench serve
  anser bench serve --listen 0.0.0.0:8972 --insecure-public`, "\n"),
		Args: takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			opts := []anser.ServerOption{anser.MaxMessage(64 << 20), anser.NoSignals()}
			if public {
				opts = append(opts, anser.InsecurePublic())
			}
			server := load.NewServer(opts...)
			l, err := server.Listen(listen)
			if err != nil {
				return fmt.Errorf("%w\nchoose another address with --listen", err)
			}
			ctx, cancel := context.WithCancel(c.Context())
			defer cancel()
			if asChild {
				gone := child.Orphaned(s.in)
				go func() { <-gone; cancel() }()
			}
			address := l.Addr().String()
			served := make(chan error, 1)
			go func() { served <- server.Serve(l) }()
			if asJSON || asChild {
				err = child.SayReady(s.out, serving{address, os.Getpid()})
			} else {
				_, err = fmt.Fprintf(s.out,
					"serving Hello.Say, Echo.Bytes and MathService.Add at %s; try\n\n  anser bench %s Hello.Say\n\n", address, address)
			}
			if err != nil {
				cancel()
			}
			return errors.Join(err, serveUntil(ctx, server, served))
		},
	}
	c.Flags().StringVar(&listen, "listen", "127.0.0.1:8972", "address to listen on; port 0 chooses one")
	c.Flags().BoolVar(&public, "insecure-public", false, "allow an address that other machines can reach, without TLS and authentication")
	c.Flags().BoolVar(&asChild, "child", false, "end with the standard input")
	c.Flags().MarkHidden("child")
	jsonFlag(c, &asJSON)
	return c
}

// serveUntil drains the server when ctx is done.
func serveUntil(ctx context.Context, server *anser.Server, served <-chan error) error {
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if end := <-served; !errors.Is(end, anser.ErrServerClosed) {
		return end
	}
	return err
}

const shutdownGrace = 10 * time.Second
