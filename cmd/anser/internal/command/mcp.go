package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anser-rpc/anser"
	"github.com/anser-rpc/anser/cmd/anser/internal/target"
	"github.com/anser-rpc/anser/mcp"
	"github.com/anser-rpc/anser/registry"
)

// mcpFlags are the flags of "anser mcp".
type mcpFlags struct {
	registry sourceFlags
	tls      tlsFlags
	follow   followFlags
	metadata []string
	targets  []string
	allow    []string
	compact  bool
	timeout  time.Duration
}

func newMCP(s streams) *cobra.Command {
	var f mcpFlags
	c := &cobra.Command{
		Use:   "mcp --allow PATTERN [--target TARGET]...",
		Short: "Offer methods of services as tools for agents, over the standard input and output",
		Long: strings.TrimSpace(`
Speak the Model Context Protocol over the standard input and output, so that an agent that starts this command can call
methods as tools. Without --target they are those of all services of the registry.

A method is a tool only if a pattern of --allow fits its name; * takes the place of any characters, and a pattern that
begins with ! takes methods away. The calls are made with the token and the certificate of the flags, so the agent may
do what their owner may, and follow the traffic rules of the service. Servers say what they serve; methods of servers
that do not, or whose clients send streams, are no tools.

The tools are one for each method, or with --compact three that search, describe and call methods. The services, the
traffic rules and the instances that calls would reach are resources of the protocol.

Exit codes: 0 the agent has ended it; 1 it failed; 2 wrong use.`),
		Example: strings.Trim(`
  anser mcp --allow 'Arith.*'
  anser mcp --target arith --target 127.0.0.1:8972 --allow 'Arith.*' --allow '*.Get*' --allow '!Secrets.*'
  anser mcp --allow '*' --compact --token-file agent.token`, "\n"),
		Args: takes(0, 0),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c.Context(), s) },
	}
	f.registry.add(c)
	f.tls.add(c)
	f.follow.add(c)
	c.Flags().StringArrayVar(&f.targets, "target", nil, "service or address whose methods are offered; may be repeated (default: all services of the registry)")
	c.Flags().StringArrayVar(&f.allow, "allow", nil, "pattern for the methods that are tools, such as 'Orders.Get*'; may be repeated")
	c.Flags().BoolVar(&f.compact, "compact", false, "offer three tools, to search, describe and call methods, in place of one for each")
	c.Flags().StringArrayVarP(&f.metadata, "header", "H", nil, "metadata to send with each call, as key:value; may be repeated")
	timeoutFlag(c, &f.timeout, time.Minute, "how long a call may take")
	return c
}

func (f *mcpFlags) run(ctx context.Context, s streams) error {
	if len(f.allow) == 0 {
		return usagef("no method may be called: allow some with --allow, such as --allow 'Orders.Get*'")
	}
	for _, p := range f.allow {
		if err := mcp.CheckPattern(p); err != nil {
			return &usageError{err}
		}
	}
	md, err := parseMetadata(f.metadata)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	services := &mcp.Services{
		Names: func(context.Context) ([]string, error) { return f.targets, nil },
		Dial: func(ctx context.Context, name string) (*anser.Client, error) {
			opts, err := f.follow.options(name, &f.registry)
			if err != nil {
				return nil, err
			}
			return dial(ctx, name, &f.registry, &f.tls, opts...)
		},
		Single: len(f.targets) == 1, Metadata: md, Logger: log,
	}
	defer services.Close()
	var store registry.Store
	if len(f.targets) == 0 {
		r, err := f.registry.open()
		if err != nil {
			return err
		}
		defer r.Close()
		if !r.CanList() {
			return usagef("%s cannot list services: name some with --target", f.registry.url)
		}
		if err := target.Reach(ctx, f.registry.url); err != nil {
			return err
		}
		services.Names = r.Services
		store, _ = r.Resolver.(registry.Store)
	}
	server := mcp.New(mcp.Options{
		Allow: f.allow, Compact: f.compact, Version: version().Version, Timeout: f.timeout, Resources: true, Logger: log,
	})
	err = server.Serve(ctx, &mcpSource{services, server, store}, io.NopCloser(s.in), nopCloser{s.out})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// nopCloser is an output that stays open.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
